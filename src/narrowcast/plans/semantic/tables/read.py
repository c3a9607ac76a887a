"""The tables of a plan folder read back as a semantic plan: its rule, its trees, and what it was made for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model.arrays import Bools, Ints, frozen
from narrowcast.model.cost import Compared, Cost
from narrowcast.model.plan import Tables
from narrowcast.model.topology import Topology
from narrowcast.network import edges_cost
from narrowcast.plans.semantic.channel import Channel, ChannelRule
from narrowcast.plans.semantic.content import Both, Content, Either, Less, Wants, same
from narrowcast.plans.semantic.demand import OverlayDemand
from narrowcast.plans.semantic.methods.bounds import Bounds, read_bounds
from narrowcast.plans.semantic.methods.rendezvous import Rooted, rooted, ways
from narrowcast.plans.semantic.methods.trees import tree_kind
from narrowcast.plans.semantic.routers.audience import AudienceContents, AudienceRouter
from narrowcast.plans.semantic.routers.content import ContentRouter
from narrowcast.plans.semantic.statistics import UNKNOWN, Statistics
from narrowcast.plans.semantic.tables.write import SAMPLE
from narrowcast.plans.semantic.window import OverlaySystem, system
from narrowcast.profiles import Profile

Place = Mapping[str, int]


def fields_of(tables: Tables) -> dict[str, Any]:
    """The fields of a SemanticPlan that routes as the one did which was written.

    The sources that set the prices of ways are those of `sample`, which holds the whole window if it is short, else
    those of `window` too. A source of a long window that only sent what nobody wants is not there any more: it
    sends as its nearest does.
    """
    t = {name: table.to_pydict() for name, table in tables.tables.items() if name != "sample"}
    topology = _topology(t)
    place: Place = {name: i for i, name in enumerate(topology.names or ())}
    demand = _demand(tables, t, topology, place)
    made = system(topology, demand.profiles, demand.clients)
    _, bounds = read_bounds(made, demand.bounds)
    sources = _sources(t["window"], tables.tables["sample"], place)
    rows = _rows(t, made, bounds, place, last=tables.parameters.get("rule") == "audience")
    router, contents = _rule(tables.parameters.get("rule"), t, made, bounds, sources, rows)
    channels = tuple(_channel(row, tell, made) for row, tell in zip(rows, contents, strict=True))
    return {
        "demand": demand,
        "cost": _cost(tables),
        "parameters": tables.parameters,
        "seed": tables.seed,
        "inputs": tables.inputs,
        "checks": tables.checks,
        "written": tables,
        "system": made,
        "channels": channels,
        "router": router,
        "sources": frozen(sources),
        "quick": None if bounds is None else bounds.quick,
    }


def _cost(tables: Tables) -> Cost:
    terms = {name: float(tables.cost[name]) for name in ("tree", "full") if name in tables.cost}
    baselines = {name: Cost(float(cost)) for name, cost in tables.baselines.items()}
    return Cost(terms["tree"], terms, Compared(baselines, tables.lower_bound, tables.gap))


def _topology(t: Mapping[str, Any]) -> Topology:
    nodes, roles, links = t["nodes"]["node"], t["nodes"]["role"], t["topology"]
    place = {name: i for i, name in enumerate(nodes)}
    ends = [(place[u], place[v]) for u, v in zip(links["u"], links["v"], strict=True)]
    known = None if None in roles else roles
    return Topology(ends, links["cost"], links["delay"], n_brokers=len(nodes), names=nodes, roles=known)


def _demand(tables: Tables, t: Mapping[str, Any], topology: Topology, place: Place) -> OverlayDemand:
    """The clients, the messages that were kept, and the whole window as statistics."""
    number = {p: i for i, p in enumerate(t["profiles"]["profile"])}
    clients = t["clients"]
    bounds = np.array([np.inf if b is None else b for b in clients["latency_bound"]], np.float64)
    sample = tables.tables["sample"]
    messages = sample.drop_columns(["_broker", "_channels"])
    brokers = sample["_broker"].to_pylist()
    return OverlayDemand(
        topology,
        tuple(Profile.parse(text, limits=None) for text in t["profiles"]["text"]),
        np.array([(number[p], place[g]) for p, g in zip(clients["profile"], clients["gateway"], strict=True)]),
        messages if messages.num_columns else None,
        None if None in brokers or not messages.num_columns else np.array([place[b] for b in brokers], np.int64),
        names=tuple(clients["client"]),
        bounds=None if np.isinf(bounds).all() else bounds,
        key=tables.key,
        statistics=_statistics(t, number, place),
    )


def _statistics(t: Mapping[str, Any], number: Mapping[int, int], place: Place) -> Statistics:
    window = t["window"]
    classes = tuple(tuple(number[p] for p in some) for some in window["profiles"])
    source = np.array([UNKNOWN if name is None else place[name] for name in window["source"]], np.int64)
    return Statistics.of_classes(t["profiles"]["text"], classes, np.array(window["weight"], np.float64), source)


def _sources(window: Mapping[str, Any], sample: Any, place: Place) -> Ints:
    """The brokers that published, busiest first."""
    kept = Counter(place[name] for name in sample["_broker"].to_pylist() if name is not None)
    sent: Counter[int] = Counter()
    for name, weight in zip(window["source"], window["weight"], strict=True):
        if name is not None:
            sent[place[name]] += weight
    whole = 0 < sample.num_rows < SAMPLE
    order = sorted(kept.keys() | sent.keys(), key=lambda broker: (-kept[broker] if whole else -sent[broker], broker))
    return np.array(order, np.int64)


class _Row(NamedTuple):
    """A channel of the tables: its members, those in its core, and its tree."""

    number: int
    kind: str
    rate: float
    part: int | None
    members: tuple[int, ...]
    core: tuple[int, ...]
    tree: Rooted


def _rows(t: Mapping[str, Any], made: OverlaySystem, bounds: Bounds | None, place: Place, *, last: bool) -> list[_Row]:
    """The channels in their order; `last`: those of the fallback after all others, as their rule has it."""
    members: dict[int, list[tuple[int, bool]]] = {}
    links: dict[int, list[tuple[int, int]]] = {}
    for c, gateway, core in zip(*(t["channel_members"][n] for n in ("channel", "gateway", "core")), strict=True):
        members.setdefault(c, []).append((place[gateway], core))
    for c, u, v in zip(*(t["trees"][name] for name in ("channel", "u", "v")), strict=True):
        links.setdefault(c, []).append((place[u], place[v]))
    columns = ("channel", "kind", "rate", "content", "rendezvous")
    n_audiences = t["channels"]["kind"].count("audience")
    found = []
    for c, kind, rate, part, root in zip(*(t["channels"][name] for name in columns), strict=True):
        here = members.get(c, [])
        reach, core = tuple(g for g, _ in here), tuple(g for g, inside in here if inside)
        tree = _tree(made, place[root], reach, links.get(c, []), tree_kind(kind, n_audiences) if last else None)
        tree = tree if bounds is None else replace(tree, allowed=bounds.allowed(tree))
        found.append(_Row(c, kind, rate, part, reach, core, tree))
    return sorted(found, key=lambda row: row.kind == "fallback") if last else found


def _tree(
    made: OverlaySystem, root: int, members: tuple[int, ...], links: list[tuple[int, int]], kind: str | None
) -> Rooted:
    """The tree with its cost; where it is a tree of this kind, summed as it was then.

    Sums in another order differ in their last digits, which may decide between two channels of one price.
    """
    edges = np.array(links, np.int32).reshape(-1, 2)
    edges.flags.writeable = False
    if kind is not None and members:
        again = rooted(made.paths, root, np.array(members, np.int64), kind)
        if np.array_equal(again.edges, edges):
            return again
    return Rooted(root, edges, edges_cost(made.paths, links))


def _channel(row: _Row, tell: Callable[[], Content], made: OverlaySystem) -> Channel:
    tree = row.tree
    return Channel(
        row.members, tree.rendezvous, tree.edges, row.rate, tree.link_cost, row.kind, tell, made.profiles, tree.allowed,
        row.number,
    )  # fmt: skip


def _rule(
    rule: Any, t: Mapping[str, Any], made: OverlaySystem, bounds: Bounds | None, sources: Ints, rows: list[_Row]
) -> tuple[ChannelRule, Sequence[Callable[[], Content]]]:
    """The rule, and what each channel carries under it."""
    if rule == "audience":
        router = _audience_router(made, bounds, sources, rows)
        contents = AudienceContents(router, made.wants)
        return router, [partial(contents.of, c) for c in range(len(rows))]
    if rule != "content":
        raise InputError(f"rule must be one of audience, content, got {rule!r}", name="rule", got=rule)
    number = {p: i for i, p in enumerate(t["profiles"]["profile"])}
    parts: dict[int | None, Content] = {}
    for part, operation, some in zip(*(t["contents"][name] for name in ("part", "operation", "operands")), strict=True):
        parts[part] = _part(operation, some, parts, number)
    carried = tuple(parts[row.part] for row in rows)
    return ContentRouter(carried), [partial(same, content) for content in carried]


def _part(
    operation: str, operands: list[int], parts: Mapping[int | None, Content], number: Mapping[int, int]
) -> Content:
    if operation == "any":
        return Wants(tuple(number[p] for p in operands))
    inner = tuple(parts[part] for part in operands)
    if operation == "all":
        return Both(inner)
    if operation == "any of":
        return Either(inner)
    if operation == "less" and len(inner) == 2:
        return Less(*inner)
    raise InputError(f"operation must be any, all, any of, or less of two parts, got {operation!r} of {len(inner)}")


def _audience_router(made: OverlaySystem, bounds: Bounds | None, sources: Ints, rows: Sequence[_Row]) -> AudienceRouter:
    n = sum(row.kind != "fallback" for row in rows)
    quick = None if bounds is None else bounds.quick
    trees = [row.tree for row in rows]
    way, block_way = (ways(made.paths, quick, sources, some) for some in (trees[:n], trees[n:]))
    core = _marked(made, [row.core for row in rows[:n]])
    reach, blocks = (_marked(made, [row.members for row in some]) for some in (rows[:n], rows[n:]))
    return AudienceRouter(way, block_way, core, reach, blocks)


def _marked(made: OverlaySystem, sets: Sequence[Sequence[int]]) -> Bools:
    """(set × gateway): which gateways with clients are in each set of brokers."""
    return np.array([np.isin(made.gateways, some) for some in sets], np.bool_).reshape(len(sets), made.gateways.size)
