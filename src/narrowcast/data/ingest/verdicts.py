"""Verdicts on rows: the kind of fault and the reason, or null for a good row."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

KIND, REASON = "_kind", "_reason"


def fault_if(bad: Column, kind: str, reason: Column | str) -> Column:
    text = F.lit(reason) if isinstance(reason, str) else reason
    return F.when(F.coalesce(bad, F.lit(False)), F.struct(F.lit(kind).alias("kind"), text.alias("reason")))


def first(verdicts: list[Column]) -> Column:
    none = F.lit(None).cast("struct<kind:string,reason:string>")
    return F.coalesce(*verdicts, none)


def says(cell: Column, name: str, what: str) -> Column:
    return F.concat(F.lit(f"{name} is "), F.coalesce(F.substring(cell, 1, 60), F.lit("unreadable")), F.lit(f": {what}"))


def judged(frame: DataFrame, fault_if: Column) -> DataFrame:
    """Note the verdict on rows that have none yet."""
    if KIND not in frame.columns:
        return (
            frame.withColumn("_v", fault_if)
            .select("*", F.col("_v.kind").alias(KIND), F.col("_v.reason").alias(REASON))
            .drop("_v")
        )
    new = F.when(F.col(KIND).isNull(), fault_if)
    return (
        frame.withColumn("_v", new)
        .withColumn(KIND, F.coalesce(F.col(KIND), F.col("_v.kind")))
        .withColumn(REASON, F.coalesce(F.col(REASON), F.col("_v.reason")))
        .drop("_v")
    )
