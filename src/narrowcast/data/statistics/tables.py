"""What planning needs, each a table made from the workers' sums. Function name = table name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from narrowcast.data.statistics import partials as p
from narrowcast.data.statistics import profile_tables
from narrowcast.data.statistics.merge import merged
from narrowcast.data.statistics.partials import Ints
from narrowcast.data.statistics.sparse_sums import COLUMN_BYTES, SparseSums

if TYPE_CHECKING:
    import pyarrow as pa

SUMS = ("messages", "bytes", "weight")


@dataclass(frozen=True, slots=True)
class Span:
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

    @property
    def per(self) -> float:
        return self.seconds or 1.0

    def of_profiles(self, profiles: Ints) -> Ints:
        """The rows of these profiles; zeros for one that matched nothing."""
        known = profiles < len(self.by_profile)
        found = np.zeros((profiles.size, 3), np.int64)
        found[known] = self.by_profile[profiles[known]]
        return found


def span(partials: DataFrame, seconds: float | None) -> Span:
    """The totals, collected, and those of each profile, in one job over all partials."""
    profile_of = F.when(F.col("kind") == p.PROFILE, F.col("a")).alias("a")
    counts = (F.lit(1).alias("n"), F.coalesce(F.length("others"), F.lit(0)).alias("packed"))
    rows = _summed(partials.select("kind", profile_of, *SUMS, *counts), "kind", "a", also=("n", "packed")).toArrow()
    kinds = rows["kind"].to_numpy()
    sums = np.column_stack([rows[name].to_numpy() for name in SUMS]).reshape(-1, 3)
    profile = rows["a"].to_numpy()[kinds == p.PROFILE].astype(np.int64)
    by_profile = np.zeros((int(profile.max(initial=-1)) + 1, 3), np.int64)
    by_profile[profile] = sums[kinds == p.PROFILE]
    messages, size, weight = sums[kinds == p.TOTAL].sum(axis=0).tolist()
    packed = rows["packed"].to_numpy()
    most = {kind: int(packed[kinds == kind].sum()) // COLUMN_BYTES for kind in (p.PAIR, p.OVERLAP)}
    return Span(messages, size, weight, seconds, sum(rows["n"].to_pylist()), most, by_profile)


def _summed(frame: DataFrame, *by: str, also: Sequence[str] = ()) -> DataFrame:
    return frame.groupBy(*by).agg(*(F.sum(name).alias(name) for name in (*SUMS, *also)))


def _of(partials: DataFrame, kind: str) -> DataFrame:
    return partials.where(F.col("kind") == kind)


def _bytes() -> Column:
    return F.col("bytes") / F.lit(float(p.BYTE))


def profile_rates(partials: DataFrame, profiles: DataFrame, over: Span) -> DataFrame:
    """How fast what each profile matches flows: profile, messages, bytes, rate, rate_bytes_s."""
    return partials.sparkSession.createDataFrame(profile_tables.profile_rates(_numbers(profiles), over))


def selectivity(partials: DataFrame, profiles: DataFrame, over: Span) -> DataFrame:
    """The decayed share of the messages in the window that each profile matches: profile, weight, selectivity."""
    return partials.sparkSession.createDataFrame(profile_tables.selectivity(_numbers(profiles), over))


def _numbers(profiles: DataFrame) -> Ints:
    found: Ints = profiles.select("profile").toArrow()["profile"].to_numpy()
    return found


def overlap(partials: DataFrame, over: Span | None = None) -> DataFrame:
    """How much of what one profile matches another matches too, decayed; only pairs that do occur.

    profile < other; `share` is O[profile][other] of the profile's own weight, `share_of_other` the
    other way round. `over` are the totals, if they are known already.
    """
    totals = over or span(partials, None)
    own = partials.sparkSession.sparkContext.broadcast(totals.by_profile[:, 2])

    def rows(profile: pa.Array, sums: SparseSums) -> pa.RecordBatch:
        import pyarrow as pa

        mine = np.repeat(profile.to_numpy(), np.diff(sums.start))
        both, weight = sums.values[:, 0], own.value
        shares = {"share": both / weight[mine], "share_of_other": both / weight[sums.cols]}
        return pa.RecordBatch.from_pydict(
            {"profile": mine, "other": sums.cols.astype(np.int64), "weight": both / float(p.WEIGHT), **shares}
        )

    schema = "profile bigint, other bigint, weight double, share double, share_of_other double"
    return merged(_of(partials, p.OVERLAP), "a", 1, rows, schema)


def classes(partials: DataFrame) -> DataFrame:
    """The content classes: flow, profiles (ascending), and their sums. Numbered by their profiles."""
    sums = _summed(_of(partials, p.CLASS), "members")
    number = F.row_number().over(Window.orderBy("members"))
    return sums.select(
        F.format_string("class%07d", number).alias("flow"),
        F.col("members").alias("profiles"),
        "messages",
        "bytes",
        "weight",
    )


def flows(partials: DataFrame, over: Span, found_classes: DataFrame | None = None) -> DataFrame:
    """The flows that came by: flow, rate (messages a second), size (mean bytes), messages, bytes."""
    sums = _summed(_of(partials, p.FLOW), "flow") if found_classes is None else found_classes
    size = F.when(F.col("messages") > 0, _bytes() / F.col("messages"))
    rate = F.col("messages") / F.lit(over.per)
    return sums.select("flow", rate.alias("rate"), size.alias("size"), "messages", _bytes().alias("bytes"))


def flow_profile(partials: DataFrame, found_classes: DataFrame | None = None) -> DataFrame:
    """Which profiles match messages of which flow, and how many: flow, profile, messages, bytes."""
    if found_classes is not None:
        return found_classes.select(
            "flow",
            F.explode(F.col("profiles").cast("array<bigint>")).alias("profile"),
            "messages",
            _bytes().alias("bytes"),
        )
    return pair_sums(partials).select("flow", "profile", "messages", _bytes().alias("bytes"))


def pair_sums(partials: DataFrame) -> DataFrame:
    """Messages and bytes (in whole 1/1024) of each flow that each profile matches: flow, profile, messages, bytes."""

    def rows(flow: pa.Array, sums: SparseSums) -> pa.RecordBatch:
        import pyarrow as pa

        named = flow.take(pa.array(np.repeat(np.arange(len(flow)), np.diff(sums.start))))
        messages, size = sums.values[:, 0].copy(), sums.values[:, 1].copy()
        return pa.RecordBatch.from_pydict(
            {"flow": named, "profile": sums.cols.astype(np.int64), "messages": messages, "bytes": size}
        )

    return merged(_of(partials, p.PAIR), "flow", 3, rows, "flow string, profile bigint, messages bigint, bytes bigint")


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


def audiences(of_flow: DataFrame, flows: DataFrame) -> DataFrame:
    """Flows with identical subscribers as one: audience, n_flows, n_subscribers, rate, subscribers."""
    joined = of_flow.join(flows.select("flow", "rate"), "flow")
    return joined.groupBy("audience").agg(
        F.count("*").alias("n_flows"),
        F.first(F.size("members")).alias("n_subscribers"),
        exact_sum("rate").alias("rate"),
        F.first("members").alias("subscribers"),
    )


def exact_sum(column: str) -> Column:
    """A sum of numbers to twelve places that does not depend on the order of adding."""
    return F.sum(F.col(column).cast("decimal(38,12)")).cast("double")
