"""Replay a plan over a message log: what it really carries, beside what it was planned to.

The log is added up by flow once; a plan says for each flow its session and group, or who gets it by
unicast. What a group, a link and a subscriber get then follows from the flows alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from narrowcast.data.ingest.misfits import without_misfits
from narrowcast.data.ingest.read import FILE, ROW
from narrowcast.data.ingest.take_in import ingest
from narrowcast.data.planning.replay_kinds import REPLAYS, SUMS, attributes_of
from narrowcast.data.planning.replay_sums import AMOUNTS, flow_sums, wanted_sums
from narrowcast.data.spark.home import job_named, keep
from narrowcast.data.spark.output import Output, TableStep, write_manifest, writing
from narrowcast.data.spark.progress import TaskReporter, watched
from narrowcast.data.spark.sizing import sized
from narrowcast.data.statistics.partials import BYTE
from narrowcast.errors import InputError, UnsupportedError
from narrowcast.model.folder import read_tables
from narrowcast.model.tables import read_table
from narrowcast.plans.kinds import kind_of
from narrowcast.plans.verbs import load
from narrowcast.version import __version__

PLAN_TABLES = {
    "flow_session": ("flow", "session"),
    "session_group": ("session", "group"),
    "subscriber_group": ("subscriber", "group"),
    "unicast": ("flow", "subscriber"),
}


@dataclass(frozen=True)
class Replayed:
    """What a plan carried on a log. `cost` is in messages: c1, c2, useful, excess, unicast, missed.

    c1 and c2 have weights α = β = 1: what receivers get from their groups, and what of it passes their
    sessions. `missed` counts messages that a subscriber wanted and the plan has no way for. `predicted`
    is what the plan said of itself.
    """

    cost: Mapping[str, float]
    predicted: Mapping[str, float]
    folder: Path | None
    steps: tuple[TableStep, ...]


def read_plan(
    spark: SparkSession, folder: str | Path
) -> tuple[dict[str, DataFrame], dict[str, float], tuple[str, ...]]:
    """The tables of a channels plan as Spark rows of text, the cost it predicts, and its flow key."""
    place = Path(folder)
    if (place / "plan.json").is_file():
        plan = read_tables(place)
        if kind_of(plan.kind).name != "channels":
            works = ("channels", *REPLAYS)
            raise UnsupportedError(f"{place}: replay does not support {plan.kind} plans yet", works=works)
        tables, cost, key = dict(plan.tables), dict(plan.cost), plan.key
    else:
        names = [n for n in PLAN_TABLES if n != "unicast" or (place / "unicast.parquet").exists()]
        tables, cost = {n: read_table(place / f"{n}.parquet", name=n, columns=PLAN_TABLES[n]) for n in names}, {}
        key = ()
    frames = {}
    for name, columns in PLAN_TABLES.items():
        schema = ", ".join(f"`{c}` string" for c in columns)
        if name not in tables:
            frames[name] = spark.createDataFrame([], schema)
            continue
        texts = [[str(v) for v in tables[name].column(c).to_pylist()] for c in columns]
        frames[name] = spark.createDataFrame(sorted(set(zip(*texts, strict=True))), schema)
    return frames, cost, key


def replay(
    spark: SparkSession,
    plan: str | Path,
    messages: str | Path,
    *,
    key: Sequence[str] = (),
    subscriptions: str | Path | None = None,
    interest: str | Path | None = None,
    out: str | Path | None = None,
    overwrite: bool = False,
    explain: Callable[[TableStep], None] | None = None,
    progress: TaskReporter | None = None,
) -> Replayed:
    """Evaluate a plan on traffic, which need not be what it was planned from.

    `key` names the columns that make a flow, by default the plan's own. Who wants what comes from
    `subscriptions` (each message against their profiles) or from `interest` (whole flows). Writes
    replay_flows, replay_groups, replay_subscribers and replay_links into `out` if given.

    Plans of other kinds are replayed by content: queries and semantic plans know who wants what, filters plans need
    `subscriptions` with the column node, network plans count with them what nobody planned for. They write tables by
    set, query, node, channel, link or site.
    """
    if check_replay(plan, key, subscriptions, interest) in REPLAYS:
        return _by_content(spark, plan, messages, subscriptions, out, overwrite, explain, progress)
    read = [messages, subscriptions or str(interest)]
    with watched(spark, progress), sized(spark, read) as spark, job_named(spark, "replaying"):
        tables, predicted, own = read_plan(spark, plan)
        key = tuple(key) or own
        if not key:
            raise InputError(
                f"{plan}: the plan does not say which attributes make a flow",
                name="key",
                hint="name them: --key symbol",
            )
        asked = None if subscriptions is None else ingest(spark, subscriptions, "subscriptions")
        named = {*key, *(() if asked is None else (name for name, _ in asked.uses))}
        log = ingest(spark, messages, "messages", wanted=lambda: named)
        flows = keep(flow_sums(log.rows, key))
        if asked is not None:
            fitting = without_misfits({"subscriptions": asked}, log, strict=False)
            wants = wanted_sums(spark, log.rows, fitting["subscriptions"], key)
        else:
            wants = (
                ingest(spark, str(interest), "interest").rows.join(flows, "flow").select("flow", "subscriber", *AMOUNTS)
            )
        wants = keep(wants)
        found = replayed(tables, flows, wants)
        # Both are added up for the cost and then written.
        for name in ("replay_groups", "replay_subscribers"):
            found[name] = keep(found[name])
        cost = _cost(found)
        if out is None:
            return Replayed(cost, predicted, None, ())
        with writing(out, overwrite=overwrite, explain=explain) as output:
            _write(output, found)
            about = {"plan": str(plan), "cost": cost, "predicted": predicted, "messages": log.n_accepted}
            write_manifest(output, {"narrowcast": __version__, **about})
        return Replayed(cost, predicted, Path(out), tuple(output.steps))


def check_replay(
    plan: str | Path, key: Sequence[str], subscriptions: str | Path | None, interest: str | Path | None
) -> str:
    """Refuse what cannot be replayed before Spark starts.

    Returns
    -------
    str
        The plan's kind.

    Raises
    ------
    InputError
        If the plan needs another table, or cannot use one that is given.
    """
    place = Path(plan)
    kind = kind_of(read_tables(place).kind).name if (place / "plan.json").is_file() else "channels"
    if kind not in REPLAYS:
        if (subscriptions is None) == (interest is None):
            raise InputError("replay needs exactly one of subscriptions and interest", name="subscriptions")
    elif interest is not None or key:
        given = "key" if interest is None else "interest"
        raise InputError(f"{given} must be left out: a {kind} plan says it itself", name=given)
    return kind


def _by_content(
    spark: SparkSession,
    folder: str | Path,
    messages: str | Path,
    subscriptions: str | Path | None,
    out: str | Path | None,
    overwrite: bool,
    explain: Callable[[TableStep], None] | None,
    progress: TaskReporter | None,
) -> Replayed:
    """The same for the kinds that route by content."""
    plan = load(folder)
    read = [messages, *([] if subscriptions is None else [subscriptions])]
    with watched(spark, progress), sized(spark, read) as spark, job_named(spark, "replaying"):
        asked = None if subscriptions is None else ingest(spark, subscriptions, "subscriptions")
        named = {*attributes_of(plan), *(() if asked is None else (name for name, _ in asked.uses))}
        log = ingest(spark, messages, "messages", wanted=lambda: named)
        if asked is not None:
            asked = without_misfits({"subscriptions": asked}, log, strict=False)["subscriptions"]
        found = REPLAYS[kind_of(plan.kind).name](plan, log.rows.drop(FILE, ROW), asked)
        predicted = {"total": plan.cost.total, **plan.cost.terms}
        if out is None:
            return Replayed(found.cost, predicted, None, ())
        with writing(out, overwrite=overwrite, explain=explain) as output:
            for name, rows in found.tables.items():
                output.write(name, spark.createDataFrame(rows, SUMS), ("name",))
            about = {"plan": str(folder), "cost": found.cost, "predicted": predicted, "messages": log.n_accepted}
            write_manifest(output, {"narrowcast": __version__, **about})
        return Replayed(found.cost, predicted, Path(out), tuple(output.steps))


def _sums() -> list[Column]:
    return [F.sum(name).alias(name) for name in AMOUNTS]


def replayed(tables: Mapping[str, DataFrame], flows: DataFrame, wants: DataFrame) -> dict[str, DataFrame]:
    """The four result tables of a replay, from a plan's tables and what flowed and was wanted."""
    placed = flows.join(tables["flow_session"], "flow", "left").join(tables["session_group"], "session", "left")
    groups = placed.where(F.col("group").isNotNull()).groupBy("group").agg(*_sums())
    members = tables["subscriber_group"].groupBy("group").agg(F.count("*").alias("members"))
    all_groups = tables["session_group"].select("group").union(tables["subscriber_group"].select("group")).distinct()
    by_group = all_groups.join(groups, "group", "left").join(members, "group", "left").na.fill(0)
    return {
        "replay_flows": placed.select("flow", "session", "group", *AMOUNTS),
        "replay_groups": by_group.select("group", "members", *AMOUNTS),
        "replay_subscribers": _subscribers(tables, placed, by_group, wants),
        "replay_links": _links(tables, flows, by_group, wants),
    }


def _subscribers(
    tables: Mapping[str, DataFrame], placed: DataFrame, by_group: DataFrame, wants: DataFrame
) -> DataFrame:
    """What each subscriber gets from groups, keeps of it, wanted, gets by unicast, and misses."""
    joined = tables["subscriber_group"]
    unicast = tables["unicast"].withColumn("_unicast", F.lit(True))
    mine = wants.join(unicast, ["flow", "subscriber"], "left")
    reached = mine.join(placed.select("flow", "session", "group"), "flow", "left").join(
        joined.withColumn("_joined", F.lit(True)), ["subscriber", "group"], "left"
    )
    carried = F.coalesce(F.col("_joined"), F.lit(False))
    alone = F.coalesce(F.col("_unicast"), F.lit(False))
    sessions = placed.where(F.col("session").isNotNull()).groupBy("session").agg(*_sums())
    # A subscriber passes a session if it holds a flow that they want and do not get by unicast.
    passed = reached.where(carried & ~alone).select("subscriber", "session").distinct().join(sessions, "session")
    parts = {
        "received": joined.join(by_group, "group").select("subscriber", *AMOUNTS),
        "passed": passed.select("subscriber", *AMOUNTS),
        "useful": wants.select("subscriber", *AMOUNTS),
        "unicast": reached.where(alone).select("subscriber", *AMOUNTS),
        "missed": reached.where(~carried & ~alone).select("subscriber", *AMOUNTS),
    }
    everybody = wants.select("subscriber").union(joined.select("subscriber")).distinct()
    for name, part in parts.items():
        sums = part.groupBy("subscriber").agg(*(F.sum(a).alias(f"{name}_{a}") for a in AMOUNTS))
        everybody = everybody.join(sums, "subscriber", "left")
    return everybody.na.fill(0)


def _links(tables: Mapping[str, DataFrame], flows: DataFrame, by_group: DataFrame, wants: DataFrame) -> DataFrame:
    """Messages and bytes from the source into each group, from each group to its members, and by unicast."""
    source, carried = F.lit("source"), by_group.where(F.col("messages") > 0)
    into = carried.select(source.alias("u"), F.concat(F.lit("group "), F.col("group")).alias("v"), *AMOUNTS)
    down = carried.join(tables["subscriber_group"], "group").select(
        F.concat(F.lit("group "), F.col("group")).alias("u"), F.col("subscriber").alias("v"), *AMOUNTS
    )
    direct = wants.join(tables["unicast"], ["flow", "subscriber"]).groupBy("subscriber").agg(*_sums())
    return into.union(down).union(direct.select(source.alias("u"), F.col("subscriber").alias("v"), *AMOUNTS))


def _cost(found: Mapping[str, DataFrame]) -> dict[str, float]:
    names = ("received", "passed", "useful", "unicast", "missed")
    sums = [F.sum(f"{name}_{a}").alias(f"{name}_{a}") for name in names for a in AMOUNTS]
    row: Any = found["replay_subscribers"].agg(*sums).collect()[0].asDict()
    got = {key: (value or 0) / (BYTE if key.endswith("bytes") else 1) for key, value in row.items()}
    by_group = found["replay_groups"].agg(F.sum("messages").alias("n")).collect()[0]["n"] or 0
    covered = got["useful_messages"] - got["unicast_messages"] - got["missed_messages"]
    return {
        "c1": got["received_messages"],
        "c2": got["passed_messages"],
        "useful": got["useful_messages"],
        "excess": got["received_messages"] + got["passed_messages"] - 2 * covered,
        "sent": float(by_group) + got["unicast_messages"],
        "unicast": got["unicast_messages"],
        "missed": got["missed_messages"],
        "received_bytes": got["received_bytes"] + got["unicast_bytes"],
        "useful_bytes": got["useful_bytes"],
    }


def _write(output: Output, found: Mapping[str, DataFrame]) -> None:
    orders = {
        "replay_flows": ("flow",),
        "replay_groups": ("group",),
        "replay_subscribers": ("subscriber",),
        "replay_links": ("u", "v"),
    }
    for name, order in orders.items():
        frame = found[name]
        scaled = [c for c in frame.columns if c == "bytes" or c.endswith("_bytes")]
        for column in scaled:
            frame = frame.withColumn(column, F.col(column) / F.lit(float(BYTE)))
        output.write(name, frame, order)
