"""Profiles that do not parse, and queries that are no range; of the others, what they ask of the messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from narrowcast.data.ingest.tables import TableSpec
from narrowcast.data.ingest.verdicts import KIND, fault_if, judged
from narrowcast.data.spark.home import is_connect, map_arrow
from narrowcast.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

# The attributes of a profile, each after the kind it is compared with and a blank.
USES = "_uses"


def profiles_checked(frame: DataFrame, described: TableSpec) -> DataFrame:
    """Parse every profile once, on the workers; USES says what it asks."""
    if not any(c.type == "profile" for c in described.columns):
        return frame
    ranges = described.name == "queries"
    # Equal profiles go to one worker, which parses them once.
    parts = _parts(frame.sparkSession)
    spread = frame.repartition("profile") if parts is None else frame.repartition(parts, "profile")
    more = [StructField("_fault", StringType()), StructField(USES, ArrayType(StringType()))]
    schema = StructType([*frame.schema.fields, *more])
    judged_rows = map_arrow(spread, lambda batches: _with_faults(batches, ranges), schema)
    bad = fault_if(F.col("_fault").isNotNull(), "bad profile", F.concat(F.lit("profile: "), F.col("_fault")))
    return judged(judged_rows, bad).drop("_fault")


def _parts(spark: SparkSession) -> int | None:
    """As many as can work at once, or fewer for small inputs (`sizing`); None where only Spark knows."""
    if is_connect(spark):
        return None
    return min(spark.sparkContext.defaultParallelism, int(str(spark.conf.get("spark.sql.shuffle.partitions"))))


def _with_faults(batches: Iterator[pa.RecordBatch], ranges: bool) -> Iterator[pa.RecordBatch]:
    """Rows with why their profile does not parse; null if it does, or if the row is bad already."""
    import pyarrow as pa

    known: dict[str, tuple[str | None, list[str]]] = {}
    for batch in batches:
        judged_texts = []
        for text, kind in zip(batch.column("profile").to_pylist(), batch.column(KIND).to_pylist(), strict=True):
            if kind is None and text not in known:
                known[text] = _judged(text, ranges)
            judged_texts.append(known[text] if kind is None else (None, []))
        faults, uses = ([found[k] for found in judged_texts] for k in (0, 1))
        with_faults = batch.append_column("_fault", pa.array(faults, pa.string()))
        yield with_faults.append_column(USES, pa.array(uses, pa.list_(pa.string())))


def _judged(text: str, ranges: bool) -> tuple[str | None, list[str]]:
    """Why a profile does not parse, and what it asks if it does."""
    from narrowcast.plans.queries.intake import check_range
    from narrowcast.profiles import Profile

    try:
        profile = Profile.parse(text)
        if ranges:
            check_range(profile)
    except InputError as error:
        return " ".join(str(error).split()).removeprefix("profile: "), []
    return None, [f"{profile.kinds.get(name, '')} {name}" for name in profile.attributes]
