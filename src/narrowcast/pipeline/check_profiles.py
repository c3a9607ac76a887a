"""Profiles that do not parse, and queries that are no range."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from narrowcast.errors import InputError
from narrowcast.pipeline.tables import TableSpec
from narrowcast.pipeline.verdicts import KIND, judged, verdict

if TYPE_CHECKING:
    import pyarrow as pa


def profiles_checked(frame: DataFrame, described: TableSpec) -> DataFrame:
    """Parse every profile once, on the workers."""
    if not any(c.type == "profile" for c in described.columns):
        return frame
    texts = frame.where(F.col(KIND).isNull()).select("profile").distinct()
    spread = texts.repartition(frame.sparkSession.sparkContext.defaultParallelism, "profile")
    ranges = described.name == "queries"
    faults = spread.mapInArrow(lambda batches: _faults(batches, ranges), "profile string, _fault string")
    joined = frame.join(faults, "profile", "left")
    bad = verdict(F.col("_fault").isNotNull(), "bad profile", F.concat(F.lit("profile: "), F.col("_fault")))
    return judged(joined, bad).drop("_fault")


def _faults(batches: Iterator[pa.RecordBatch], ranges: bool) -> Iterator[pa.RecordBatch]:
    """The profiles that do not parse, with the reason."""
    import pyarrow as pa

    from narrowcast.profiles import Profile
    from narrowcast.queries.intake import check_range

    for batch in batches:
        texts, faults = [], []
        for text in batch.column("profile").to_pylist():
            try:
                profile = Profile.parse(text)
                if ranges:
                    check_range(profile)
            except InputError as error:
                texts.append(text)
                faults.append(" ".join(str(error).split()).removeprefix("profile: "))
        yield pa.RecordBatch.from_pydict(
            {"profile": pa.array(texts, pa.string()), "_fault": pa.array(faults, pa.string())}
        )
