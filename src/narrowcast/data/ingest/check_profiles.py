"""Profiles that do not parse, and queries that are no range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType, StructField, StructType

from narrowcast.data.ingest.tables import TableSpec
from narrowcast.data.ingest.verdicts import KIND, fault_if, judged
from narrowcast.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa


def profiles_checked(frame: DataFrame, described: TableSpec) -> DataFrame:
    """Parse every profile once, on the workers."""
    if not any(c.type == "profile" for c in described.columns):
        return frame
    ranges = described.name == "queries"
    # Equal profiles go to one worker, which parses them once.
    spread = frame.repartition(_parts(frame.sparkSession), "profile")
    schema = StructType([*frame.schema.fields, StructField("_fault", StringType())])
    judged_rows = spread.mapInArrow(lambda batches: _with_faults(batches, ranges), schema)
    bad = fault_if(F.col("_fault").isNotNull(), "bad profile", F.concat(F.lit("profile: "), F.col("_fault")))
    return judged(judged_rows, bad).drop("_fault")


def _parts(spark: SparkSession) -> int:
    """As many as can work at once, or fewer for small inputs (`sizing`)."""
    return min(spark.sparkContext.defaultParallelism, int(str(spark.conf.get("spark.sql.shuffle.partitions"))))


def _with_faults(batches: Iterator[pa.RecordBatch], ranges: bool) -> Iterator[pa.RecordBatch]:
    """Rows with why their profile does not parse; null if it does, or if the row is bad already."""
    import pyarrow as pa

    known: dict[str, str | None] = {}
    for batch in batches:
        faults = []
        for text, kind in zip(batch.column("profile").to_pylist(), batch.column(KIND).to_pylist(), strict=True):
            if kind is None and text not in known:
                known[text] = _fault(text, ranges)
            faults.append(known[text] if kind is None else None)
        yield batch.append_column("_fault", pa.array(faults, pa.string()))


def _fault(text: str, ranges: bool) -> str | None:
    from narrowcast.plans.queries.intake import check_range
    from narrowcast.profiles import Profile

    try:
        profile = Profile.parse(text)
        if ranges:
            check_range(profile)
    except InputError as error:
        return " ".join(str(error).split()).removeprefix("profile: ")
    return None
