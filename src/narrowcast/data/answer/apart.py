"""Rows that know their channel, written apart: a folder of Parquet for each."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

CHANNEL = "_channel"


def write_apart(found: DataFrame, folder: Path) -> None:
    """Rows as Parquet, those of channel 7 in the folder `_channel=7`."""
    with exact_times(found.sparkSession):
        found.write.partitionBy(CHANNEL).parquet(str(folder))


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
