"""What planning needs, each a table made from the workers' sums. Function name = table name."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from narrowcast.pipeline import partials as p


@dataclass(frozen=True, slots=True)
class Span:
    """What the messages amount to: how many, their bytes and weight, over how many seconds.

    Without times `seconds` is None and rates are messages of the whole log.
    """

    messages: int
    bytes: int
    weight: int
    seconds: float | None

    @property
    def per(self) -> float:
        return self.seconds or 1.0


def span(partials: DataFrame, seconds: float | None) -> Span:
    """The totals, collected."""
    row = _summed(partials.where(F.col("kind") == p.TOTAL)).collect()[0]
    return Span(row["messages"] or 0, row["bytes"] or 0, row["weight"] or 0, seconds)


def _summed(frame: DataFrame, *by: str) -> DataFrame:
    sums = [F.sum(name).alias(name) for name in ("messages", "bytes", "weight")]
    return frame.groupBy(*by).agg(*sums) if by else frame.agg(*sums)


def _of(partials: DataFrame, kind: str) -> DataFrame:
    return partials.where(F.col("kind") == kind)


def _bytes() -> Column:
    return F.col("bytes") / F.lit(float(p.BYTE))


def profile_rates(partials: DataFrame, profiles: DataFrame, over: Span) -> DataFrame:
    """How fast what each profile matches flows: profile, messages, bytes, rate, rate_bytes_s."""
    sums = _summed(_of(partials, p.PROFILE).withColumnRenamed("a", "profile"), "profile")
    everyone = profiles.select("profile").join(sums, "profile", "left").na.fill(0, ["messages", "bytes"])
    return everyone.select("profile", "messages", _bytes().alias("bytes"), *_rates(over))


def _rates(over: Span) -> list[Column]:
    rate = F.col("messages") / F.lit(over.per)
    return [rate.alias("rate"), (_bytes() / F.lit(over.per)).alias("rate_bytes_s")]


def selectivity(partials: DataFrame, profiles: DataFrame, over: Span) -> DataFrame:
    """The decayed share of the messages in the window that each profile matches: profile, weight, selectivity."""
    sums = _summed(_of(partials, p.PROFILE).withColumnRenamed("a", "profile"), "profile")
    everyone = profiles.select("profile").join(sums, "profile", "left").na.fill(0, ["weight"])
    weight = F.col("weight") / F.lit(float(p.WEIGHT))
    share = F.col("weight") / F.lit(float(max(over.weight, 1)))
    return everyone.select("profile", weight.alias("weight"), share.alias("selectivity"))


def overlap(partials: DataFrame) -> DataFrame:
    """How much of what one profile matches another matches too, decayed; only pairs that do occur.

    profile < other; `share` is O[profile][other] of the profile's own weight, `share_of_other` the
    other way round.
    """
    pairs = _of(partials, p.OVERLAP).select("a", F.explode(F.arrays_zip("members", "weights")).alias("_with"))
    named = pairs.select("a", F.col("_with.members").cast("bigint").alias("b"), F.col("_with.weights").alias("both"))
    both = named.groupBy("a", "b").agg(F.sum("both").alias("both"))
    own = _summed(_of(partials, p.PROFILE), "a").select("a", F.col("weight").alias("own"))
    others = own.select(F.col("a").alias("b"), F.col("own").alias("other_own"))
    return (
        both.join(F.broadcast(own), "a")
        .join(F.broadcast(others), "b")
        .select(
            F.col("a").alias("profile"),
            F.col("b").alias("other"),
            (F.col("both") / F.lit(float(p.WEIGHT))).alias("weight"),
            (F.col("both") / F.col("own")).alias("share"),
            (F.col("both") / F.col("other_own")).alias("share_of_other"),
        )
    )


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
    sums = _summed(_of(partials, p.PAIR).withColumnRenamed("a", "profile"), "flow", "profile")
    return sums.select("flow", "profile", "messages", _bytes().alias("bytes"))


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
