"""Replay of plans that route by content: every batch of the log is sent through the plan in workers, sums come back.

Queries: what each merged query carries and each query wants. Filters: what is wanted below each node of the tree, from
which the traffic with the plan's filters follows. Semantic: the link traversals of each message, by its source.
Networks: the cost by term with the log's rates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from narrowcast.data.ingest.take_in import Ingested
from narrowcast.data.planning.replay_network import network_replayed
from narrowcast.data.spark.home import map_arrow
from narrowcast.errors import InputError
from narrowcast.model.plan import Plan
from narrowcast.plans.filters.api import traffic
from narrowcast.plans.filters.result import FiltersPlan
from narrowcast.plans.network.result import NetworkPlan
from narrowcast.plans.queries.problem import CostTerms, MergeAmounts
from narrowcast.plans.queries.ranges import box_profile
from narrowcast.plans.queries.result import QueriesPlan
from narrowcast.plans.semantic.result import SemanticPlan
from narrowcast.plans.semantic.result import bandwidth as link_costs
from narrowcast.profiles import Matcher, Profile

if TYPE_CHECKING:
    import pyarrow as pa

SUMS = "name string, messages double, useful double, missed double"


@dataclass(frozen=True)
class ReplayedContent:
    """What a replay found: the terms of the cost, and a table by name with the columns of `SUMS`."""

    cost: Mapping[str, float]
    tables: Mapping[str, list[tuple[str, float, float, float]]]


def replay_queries(plan: QueriesPlan, log: DataFrame, _: Ingested | None = None) -> ReplayedContent:
    """Merged queries over a log: what each set sends, and how much of it each of its queries wants."""
    demand = plan.demand
    contents = [Profile.any_of(box_profile(p, demand.attributes) for p in pieces) for pieces in plan.pieces]
    asked = [box_profile(box, demand.attributes) for box in demand.boxes]
    n, m = len(contents), len(asked)
    home = np.full(m, -1, np.int64)
    for at, members in reversed(list(enumerate(plan.sets))):
        home[list(members)] = at
    matcher = Matcher([*contents, *asked])

    def count(batch: pa.RecordBatch) -> np.ndarray:
        row, found = matcher.match(batch, threads=1)
        sums = np.zeros((2, n + m))
        sums[0] = np.bincount(found, minlength=n + m)
        wanted = found >= n
        reach = np.isin(row[wanted] * n + home[found[wanted] - n], row[~wanted] * n + found[~wanted])
        sums[1] = np.bincount(found[wanted][~reach], minlength=n + m)
        return sums.ravel()

    sums = _summed(log, count, 2 * (n + m)).reshape(2, n + m)
    sent, useful, missed = sums[0, :n], sums[0, n:], sums[1, n:]
    heard = np.array([len(members) * sent[at] for at, members in enumerate(plan.sets)])
    own = np.array([useful[list(members)].sum() for members in plan.sets])
    exact = plan.procedure == "exact"
    amounts = MergeAmounts(plan.terms.amounts.channels if exact else n, float(sent.sum()),
                           0.0 if exact else float((heard - own).sum()))  # fmt: skip
    terms = CostTerms.of(amounts, plan.constants)
    cost = {"total": terms.total, **terms.by_name, "sent": float(sent.sum()), "useful": float(useful.sum()),
            "irrelevant": amounts.irrelevant, "missed": float(missed.sum())}  # fmt: skip
    sets = [(str(number), float(sent[at]), float(own[at]), 0.0) for at, number in enumerate(plan.numbers)]
    labels = [
        (label, float(sent[home[q]]), float(useful[q]), float(missed[q])) for q, label in enumerate(demand.labels)
    ]
    return ReplayedContent(cost, {"replay_sets": sets, "replay_queries": labels})


def replay_filters(plan: FiltersPlan, log: DataFrame, subscriptions: Ingested | None) -> ReplayedContent:
    """Filters on a tree over a log: the messages wanted below each node, and the traffic that follows."""
    if subscriptions is None or "node" not in subscriptions.rows.columns:
        raise InputError(
            "replay of a filters plan needs --subscriptions with the columns subscriber, profile and node",
            name="subscriptions",
        )
    place = {name: at for at, name in enumerate(plan.node_names)}
    pairs = [(r["profile"], r["node"]) for r in subscriptions.rows.select("profile", "node").distinct().collect()]
    unknown = sorted({str(node) for _, node in pairs if node not in place})
    if unknown:
        raise InputError(f"subscriptions must be at nodes of the tree, got {unknown[0]!r}", name="node", got=unknown[0])
    texts = sorted({text for text, _ in pairs})
    number = {text: at for at, text in enumerate(texts)}
    wants = np.zeros((len(texts), plan.tree.n), np.bool_)
    for text, node in pairs:
        wants[number[text], place[node]] = True
    for v in plan.tree.order[::-1].tolist():
        if plan.tree.parents[v] >= 0:
            wants[:, plan.tree.parents[v]] |= wants[:, v]
    matcher, nodes = Matcher(texts), plan.tree.n

    def count(batch: pa.RecordBatch) -> np.ndarray:
        row, found = matcher.match(batch, threads=1)
        below = np.zeros((batch.num_rows, nodes), np.bool_)
        np.logical_or.at(below, row, wants[found])
        return np.asarray(below.sum(axis=0), np.float64)

    flow = _summed(log, count, nodes)
    total = traffic(plan.tree, flow, plan.filters)
    apart = traffic(plan.tree, flow, [])
    cost = {"traffic": float(total), "no_filter": float(apart), "wanted": float(flow[plan.tree.root])}
    rows = [(name, float(flow[v]), float(flow[v]), 0.0) for v, name in enumerate(plan.node_names)]
    return ReplayedContent(cost, {"replay_nodes": rows})


def replay_semantic(plan: SemanticPlan, log: DataFrame, _: Ingested | None = None) -> ReplayedContent:
    """Semantic channels over a log: link costs from each message's source to all who want it."""
    names = {name: at for at, name in enumerate(plan.broker_names)}
    known = plan.sent.seen.sources.tolist()
    if "source" not in log.columns and len(known) != 1:
        raise InputError(
            f"messages must have a column source, the broker of its publisher: the plan has {len(known)} of them",
            name="source",
        )
    numbers = [channel.number for channel in plan.channels]
    n = len(numbers)

    def count(batch: pa.RecordBatch) -> np.ndarray:
        import pyarrow as pa

        table = pa.table(batch)
        if "source" in table.column_names:
            at = [names.get(str(source), -1) for source in table["source"].to_pylist()]
            brokers = np.array(at, np.int64)
        else:
            brokers = np.full(table.num_rows, known[0], np.int64)
        sums = np.zeros(n + 3)
        sums[n], sums[n + 1] = table.num_rows, (brokers < 0).sum()
        if (brokers >= 0).any():
            table, brokers = table.filter(pa.array(brokers >= 0)), brokers[brokers >= 0]
            sums[n + 2] = link_costs(plan, table, brokers)
            _, channel = plan.route(table, brokers)
            sums[:n] = np.bincount(channel, minlength=n)
        return sums

    sums = _summed(log, count, n + 3)
    cost = {"total": float(sums[n + 2]), "messages": float(sums[n]), "unknown_source": float(sums[n + 1])}
    rows = [(str(number), float(sums[at]), float(sums[at]), 0.0) for at, number in enumerate(numbers)]
    return ReplayedContent(cost, {"replay_channels": rows})


def replay_network(plan: NetworkPlan, log: DataFrame, subscriptions: Ingested | None) -> ReplayedContent:
    """A whole network over a log: what it costs in an hour with the log's rates, its links and its sites."""
    return ReplayedContent(*network_replayed(plan, log, subscriptions))


def _summed(log: DataFrame, count: Callable[[pa.RecordBatch], np.ndarray], size: int) -> np.ndarray:
    """What batches count, added up: one small row of sums from each worker."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        sums = np.zeros(size)
        for batch in batches:
            if batch.num_rows:
                sums += count(batch)
        held = np.flatnonzero(sums)
        yield pa.RecordBatch.from_arrays([pa.array(held), pa.array(sums[held])], names=["at", "amount"])

    total = np.zeros(size)
    added = map_arrow(log, work, "at bigint, amount double").groupBy("at").agg(F.sum("amount").alias("amount"))
    for row in added.collect():
        total[row["at"]] = row["amount"]
    return total


REPLAYS: dict[str, Callable[[Any, DataFrame, Ingested | None], ReplayedContent]] = {
    "queries": replay_queries,
    "filters": replay_filters,
    "semantic": replay_semantic,
    "network": replay_network,
}


def attributes_of(plan: Plan) -> set[str]:
    """The attributes of messages that replaying a plan looks at."""
    if isinstance(plan, QueriesPlan):
        return set(plan.demand.attributes)
    if isinstance(plan, SemanticPlan):
        named = {name for profile in plan.system.profiles for name in getattr(profile, "attributes", ())}
        return {*named, "source"}
    return set(plan.key) if isinstance(plan, NetworkPlan) else set()
