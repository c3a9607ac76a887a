"""What planning needs, each a table made from the workers' sums. Function name = table name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from narrowcast.data.spark.home import share
from narrowcast.data.statistics import partials as p
from narrowcast.data.statistics.definitions import (
    OVERLAP_SCHEMA,
    flow_columns,
    overlap_columns,
    pair_columns,
    per_second,
)
from narrowcast.data.statistics.merge import merged
from narrowcast.data.statistics.partials import Ints
from narrowcast.data.statistics.sparse_sums import COLUMN_BYTES, SparseSums
from narrowcast.data.statistics.tally import HANDED, VERDICT

if TYPE_CHECKING:
    import pyarrow as pa

SUMS = ("messages", "bytes", "weight")


@dataclass(frozen=True, slots=True)
class Totals:
    """What the messages amount to: how many, their bytes and weight, over how many seconds.

    Without times `seconds` is None and rates are messages of the whole log. `by_profile` has a row
    (messages, bytes, weight) for every profile that matched anything, and maybe more. `most_rows` bounds how
    many sums there are of a kind that travels packed.
    """

    messages: int
    bytes: int
    weight: int
    seconds: float | None
    n_partials: int = 0
    most_rows: Mapping[str, int] = field(default_factory=dict)
    by_profile: Ints = field(default_factory=lambda: np.zeros((0, 3), np.int64), compare=False)

    def of_profiles(self, n: int) -> tuple[Ints, Ints, Ints]:
        """Messages, bytes and weight of the first n profiles; zeros for one that matched nothing."""
        found = np.zeros((3, n), np.int64)
        known = self.by_profile[:n]
        found[:, : len(known)] = known.T
        return found[0], found[1], found[2]


def totals(partials: DataFrame, seconds: float | None) -> Totals:
    """The totals, collected, and those of each profile, in one job over all partials."""
    profile_of = F.when(F.col("kind") == p.PROFILE, F.col("a")).alias("a")
    counts = (F.lit(1).alias("n"), F.coalesce(F.length("others"), F.lit(0)).alias("packed"))
    told = partials.where(~F.col("kind").isin(VERDICT, HANDED))
    rows = _summed(told.select("kind", profile_of, *SUMS, *counts), "kind", "a", also=("n", "packed")).toArrow()
    kinds = rows["kind"].to_numpy()
    sums = np.column_stack([rows[name].to_numpy() for name in SUMS]).reshape(-1, 3)
    profile = rows["a"].to_numpy()[kinds == p.PROFILE].astype(np.int64)
    by_profile = np.zeros((int(profile.max(initial=-1)) + 1, 3), np.int64)
    by_profile[profile] = sums[kinds == p.PROFILE]
    messages, size, weight = sums[kinds == p.TOTAL].sum(axis=0).tolist()
    packed = rows["packed"].to_numpy()
    most = {kind: int(packed[kinds == kind].sum()) // COLUMN_BYTES for kind in (p.PAIR, p.OVERLAP)}
    return Totals(messages, size, weight, seconds, sum(rows["n"].to_pylist()), most, by_profile)


def _summed(frame: DataFrame, *by: str, also: Sequence[str] = ()) -> DataFrame:
    return frame.groupBy(*by).agg(*(F.sum(name).alias(name) for name in (*SUMS, *also)))


def _of(partials: DataFrame, kind: str) -> DataFrame:
    return partials.where(F.col("kind") == kind)


def overlap(partials: DataFrame, over: Totals | None = None) -> DataFrame:
    """How much of what one profile matches another matches too, decayed; only pairs that do occur.

    `over` are the totals, if they are known already.
    """
    known = over or totals(partials, None)
    own = share(partials.sparkSession, known.by_profile[:, 2])

    def rows(profile: pa.Array, sums: SparseSums) -> pa.RecordBatch:
        return overlap_rows(profile, sums, own.value)

    return merged(_of(partials, p.OVERLAP), "a", 1, rows, OVERLAP_SCHEMA)


def overlap_rows(profile: pa.Array, sums: SparseSums, own: Ints) -> pa.RecordBatch:
    """Rows of `overlap` from profiles and their merged sums; `own` is the weight of each profile."""
    import pyarrow as pa

    mine, other = np.repeat(profile.to_numpy(), np.diff(sums.start)), sums.cols.astype(np.int64)
    return pa.RecordBatch.from_pydict(overlap_columns(mine, other, sums.values[:, 0], own))


def classes(partials: DataFrame) -> DataFrame:
    """The content classes: flow, profiles (ascending), and their sums. Numbered by their profiles."""
    sums = _summed(_of(partials, p.CLASS), "members")
    number = F.row_number().over(Window.orderBy("members"))
    return sums.select(
        # As a column that may be null, like the flows that a key makes.
        F.when(number > 0, F.format_string("class%07d", number)).alias("flow"),
        F.col("members").alias("profiles"),
        "messages",
        "bytes",
        "weight",
    )


def flows(partials: DataFrame, over: Totals, found_classes: DataFrame | None = None) -> DataFrame:
    """The flows that came by: flow, rate (messages a second), size (mean bytes), messages, bytes."""
    sums = _summed(_of(partials, p.FLOW), "flow") if found_classes is None else found_classes
    return sums.select("flow", *_named(flow_columns(F.col("messages"), F.col("bytes"), over.seconds)))


def flow_profile(partials: DataFrame, found_classes: DataFrame | None = None) -> DataFrame:
    """Which profiles match messages of which flow, and how many: flow, profile, messages, bytes."""
    sums = pair_sums(partials) if found_classes is None else found_classes
    profile = F.col("profile")
    if found_classes is not None:
        profile = F.explode(F.col("profiles").cast("array<bigint>")).alias("profile")
    return sums.select("flow", profile, *_named(pair_columns(F.col("messages"), F.col("bytes"))))


def _named(columns: Mapping[str, Column]) -> list[Column]:
    return [column.alias(name) for name, column in columns.items()]


def pair_sums(partials: DataFrame) -> DataFrame:
    """Messages and bytes (in whole 1/1024) of each flow that each profile matches: flow, profile, messages, bytes."""
    schema = "flow string, profile bigint, messages bigint, bytes bigint"
    return merged(_of(partials, p.PAIR), "flow", 3, pair_rows, schema)


def pair_rows(flow: pa.Array, sums: SparseSums) -> pa.RecordBatch:
    """Rows of `pair_sums` from flows and their merged sums."""
    import pyarrow as pa

    named = flow.take(pa.array(np.repeat(np.arange(len(flow)), np.diff(sums.start))))
    messages, size = sums.values[:, 0].copy(), sums.values[:, 1].copy()
    return pa.RecordBatch.from_pydict(
        {"flow": named, "profile": sums.cols.astype(np.int64), "messages": messages, "bytes": size}
    )


def interest(flow_profile: DataFrame, holders: DataFrame) -> DataFrame:
    """Who wants which flow: a subscriber wants it if a profile of theirs matches any message of it."""
    return flow_profile.select("flow", "profile").join(holders, "profile").select("flow", "subscriber").distinct()


def audience_of_flow(interest: DataFrame, *, hash_bits: int = 64) -> DataFrame:
    """Each flow's audience: flow, members (ascending), audience (the first flow with the same members).

    Flows are sorted by a hash of their members (of `hash_bits` bits) and then by the members themselves,
    so that equal sets meet quickly and the answer is exact whatever the hash.
    """
    sets = interest.groupBy("flow").agg(F.sort_array(F.collect_set("subscriber")).alias("members"))
    marked = sets.withColumn("_mark", F.shiftrightunsigned(F.xxhash64("members"), 64 - hash_bits))
    # Spread by the hash alone: Spark would otherwise hash the members once more.
    spread = marked.repartition("_mark")
    same = Window.partitionBy("_mark", "members")
    return spread.select("flow", F.min("flow").over(same).alias("audience"), "members")


def audiences(of_flow: DataFrame, flows: DataFrame, over: Totals | None = None) -> DataFrame:
    """Flows with identical subscribers as one: audience, n_flows, n_subscribers, rate, subscribers.

    With the totals of the messages, a rate is that of the messages of all its flows: whole numbers until divided.
    """
    amount = "rate" if over is None else "messages"
    joined = of_flow.join(flows.select("flow", amount), "flow")
    rate = exact_sum("rate") if over is None else per_second(F.sum("messages"), over.seconds)
    return joined.groupBy("audience").agg(
        F.count("*").alias("n_flows"),
        F.first(F.size("members")).alias("n_subscribers"),
        rate.alias("rate"),
        F.first("members").alias("subscribers"),
    )


def exact_sum(column: str) -> Column:
    """A sum of numbers to twelve places that does not depend on the order of adding."""
    return F.sum(F.col(column).cast("decimal(38,12)")).cast("double")
