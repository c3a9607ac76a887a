"""The rule of a `search` plan, read from its folder: which gateways each channel was made for, and its price."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heappop, heappush

from narrowcast.deliver.routing.audience import Audiences, Made
from narrowcast.deliver.transport import Overlay
from narrowcast.model.plan import Plan

BLOCK = "fallback"  # the kind of a channel that takes what is left of an audience


def audiences_of(plan: Plan, trees: Mapping[int, Overlay]) -> Audiences:
    """Channels and blocks with what a message costs on each: the way from its source to the root, and the tree.

    Of several sources the mean way counts. Prices choose between ways that all reach the audience, so what
    they leave out costs bandwidth at worst.
    """
    number = {name: channel for channel, name in enumerate(plan.tables["channels"]["channel"].to_pylist())}
    reach: dict[int, list[str]] = {channel: [] for channel in trees}
    core: dict[int, list[str]] = {channel: [] for channel in trees}
    for row in plan.tables["channel_members"].to_pylist():
        reach[number[row["channel"]]].append(str(row["gateway"]))
        if row["core"]:
            core[number[row["channel"]]].append(str(row["gateway"]))
    price = _prices(plan, trees)
    kinds = plan.tables["channels"]["kind"].to_pylist()
    made: list[Made] = []
    blocks = []
    for channel, kind in enumerate(kinds):
        if kind == BLOCK:
            blocks.append((channel, price[channel], tuple(reach[channel])))
        else:
            made.append((channel, price[channel], tuple(core[channel]), tuple(reach[channel])))
    return Audiences(tuple(made), tuple(blocks))


def _prices(plan: Plan, trees: Mapping[int, Overlay]) -> dict[int, float]:
    costs: dict[tuple[str, str], float] = {}
    for row in plan.tables["topology"].to_pylist():
        costs[row["u"], row["v"]] = costs[row["v"], row["u"]] = float(row["cost"])
    weights: dict[str, float] = {}
    for row in plan.tables["window"].to_pylist():
        if row["source"] is not None:
            weights[row["source"]] = weights.get(row["source"], 0.0) + row["weight"]
    ways = {source: _distances(source, costs) for source in weights}
    total = sum(weights.values()) or 1.0
    found = {}
    for channel, tree in trees.items():
        way = sum(weight * ways[source].get(tree.root, 0.0) for source, weight in weights.items()) / total
        found[channel] = way + sum(costs.get(link, 0.0) for link in tree.links)
    return found


def _distances(source: str, costs: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Dijkstra from one broker."""
    neighbours: dict[str, list[tuple[str, float]]] = {}
    for (u, v), cost in costs.items():
        neighbours.setdefault(u, []).append((v, cost))
    found: dict[str, float] = {}
    waiting: list[tuple[float, str]] = [(0.0, source)]
    while waiting:
        distance, broker = heappop(waiting)
        if broker not in found:
            found[broker] = distance
            for other, cost in neighbours.get(broker, ()):
                if other not in found:
                    heappush(waiting, (distance + cost, other))
    return found
