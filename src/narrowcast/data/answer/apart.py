"""Rows that know their channel, written apart: a folder of Parquet for each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from narrowcast.data.spark.home import is_local

CHANNEL = "_channel"
_PART = "_part"


def write_apart(found: DataFrame, folder: Path) -> None:
    """Rows as Parquet, those of channel 7 in the folder `_channel=7`.

    Workers elsewhere write to disks that nobody sees here: then the driver fetches what each task has found.
    """
    if not is_local(found.sparkSession):
        _fetch_apart(found, folder)
        return
    with exact_times(found.sparkSession):
        found.write.partitionBy(CHANNEL).parquet(str(folder))


def write_nothing(found: DataFrame, folder: Path) -> None:
    """The same columns without a row, as Parquet."""
    spark = found.sparkSession
    if not is_local(spark):
        folder.mkdir(parents=True)
        _write(found.drop(CHANNEL).limit(0).toArrow(), folder / "part-0.parquet")
        return
    with exact_times(spark):
        spark.createDataFrame([], found.drop(CHANNEL).schema).coalesce(1).write.parquet(str(folder))


def _fetch_apart(found: DataFrame, folder: Path) -> None:
    """One task's rows at a time are at the driver; that none is missing is counted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kept = found.withColumn(_PART, F.spark_partition_id()).persist(StorageLevel.DISK_ONLY)
    written = 0
    try:
        folder.mkdir(parents=True)
        parts = sorted(row[_PART] for row in kept.select(_PART).distinct().collect())
        for part in parts:
            rows = kept.where(F.col(_PART) == part).drop(_PART).toArrow()
            for channel in rows[CHANNEL].unique().to_pylist():
                mine = rows.filter(pc.equal(rows[CHANNEL], pa.scalar(channel, pa.int64())))
                (folder / f"{CHANNEL}={channel}").mkdir(exist_ok=True)
                _write(mine.drop_columns([CHANNEL]), folder / f"{CHANNEL}={channel}" / f"part-{part:05d}.parquet")
                written += mine.num_rows
        if (there := kept.count()) != written:
            raise RuntimeError(f"{there:,} rows were answered and {written:,} fetched; run it again")
    finally:
        kept.unpersist()


def _write(rows: Any, path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(rows.replace_schema_metadata(None), path, store_schema=False)


@contextmanager
def exact_times(spark: SparkSession) -> Iterator[None]:
    """Timestamps as all readers understand them, not in Spark's own old form."""
    name = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(name)
    spark.conf.set(name, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        spark.conf.set(name, str(before))
