"""Names that no table lists, and keys that were seen before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from narrowcast.data.ingest.read import FILE, ROW
from narrowcast.data.ingest.tables import TableSpec
from narrowcast.data.ingest.verdicts import KIND, fault_if, judged, says

if TYPE_CHECKING:
    from narrowcast.data.ingest.take_in import Ingested

# Names that are looked up without a join, which is a job of its own.
FEW = 200


def names_known(frame: DataFrame, described: TableSpec, known: Mapping[str, Ingested]) -> DataFrame:
    asked: set[str] = set()
    for column, table, other in described.known:
        if column not in frame.columns or table not in known or column in asked:
            continue
        asked.add(column)
        here = known[table].here
        if here is not None and here.table.num_rows <= FEW:
            absent = F.col(column).isNotNull() & ~F.col(column).isin(here.table[other].to_pylist())
            frame = judged(frame, _unknown(absent, column, table))
            continue
        # Each name once: what a table lists is its key.
        names = known[table].rows.select(F.col(other).alias(column), F.lit(True).alias("_known"))
        joined = frame.join(F.broadcast(names), column, "left")
        absent = F.col(column).isNotNull() & F.col("_known").isNull()
        frame = judged(joined, _unknown(absent, column, table)).drop("_known")
    if described.name == "demand" and "tree" in known:
        parents = known["tree"].rows.select(F.col("parent").alias("node")).distinct().withColumn("_inner", F.lit(True))
        joined = frame.join(F.broadcast(parents), "node", "left")
        bad = fault_if(F.col("_inner").isNotNull(), "not a leaf", says(F.col("node"), "node", "not a leaf of the tree"))
        frame = judged(joined, bad).drop("_inner")
    return frame


def _unknown(absent: Column, column: str, table: str) -> Column:
    return fault_if(absent, "unknown name", says(F.col(column), column, f"not in the {table} table"))


def first_of_key(frame: DataFrame, described: TableSpec) -> DataFrame:
    """Of the rows that share a key, the first by file and row stays."""
    if not described.key:
        return frame
    key = [F.col(c) for c in described.key]
    if described.unordered_key:
        key = [F.least(*key).alias("_low"), F.greatest(*key).alias("_high")]
    # Rows that are bad already take part in no comparison: they neither are nor make duplicates.
    order = Window.partitionBy(*key, F.col(KIND).isNull()).orderBy(FILE, ROW)
    ranked = frame.withColumn("_rank", F.row_number().over(order))
    names = F.concat_ws(", ", *(F.col(c).cast("string") for c in described.key))
    reason = F.concat(F.lit(f"{' and '.join(described.key)} seen before: "), F.substring(names, 1, 120))
    return judged(ranked, fault_if(F.col("_rank") > 1, "duplicate", reason)).drop("_rank")
