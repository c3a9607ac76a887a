"""Semantic plans explained: a channel, a gateway or broker, a subscriber; other ways priced over the window."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from narrowcast.errors import InputError, PlanError
from narrowcast.evaluate.explanation import Choice, Explanation, Unwanted, place_of, ranked, several, worst
from narrowcast.model.plan import Tables
from narrowcast.model.quantity import quantity
from narrowcast.plans.semantic.judge.reader import ReadOverlay

MEASURE = "link costs of the window's messages"


class _Client(NamedTuple):
    client: str
    profile: int
    gateway: str
    latency_bound: float | None


class _Seen(NamedTuple):
    """Messages that matched the same profiles, came from one source and go over the same channels."""

    profiles: list[int]
    source: str | None
    weight: float
    channels: list[int]


class _Case:
    """The tables by name, and what any message of the window pays."""

    def __init__(self, plan: Tables) -> None:
        read = ReadOverlay(plan)
        if read.broken:
            raise PlanError(f"the plan is unsound: {read.broken[0]}")
        self.read, self.members, self.tree = read, read.members, read.tree
        self.nodes, self.profiles, self.rendezvous = read.nodes, read.profiles, read.rendezvous
        self.clients = [_Client(*row) for row in read.clients]
        self.window = [_Seen(*row) for row in read.window]
        self.known_sources = all(row.source is not None for row in self.window)

    @cached_property
    def cost(self) -> float:
        return float(sum(row.weight * self.paid(row, c) for row in self.window for c in row.channels))

    def tree_cost(self, c: int) -> float:
        return sum(self.read.link[edge][0] for edge in self.tree[c])

    def paid(self, row: _Seen, c: int) -> float:
        """What one message of a row costs on a channel."""
        return self.tree_cost(c) + self.way(row.source, self.rendezvous[c])

    def way(self, source: str | None, node: str) -> float:
        """The cheapest way from a source; nothing where sources are not known."""
        return self.read.distance(source, node) if source is not None and self.known_sources else 0.0

    def wanting(self, row: _Seen) -> set[str]:
        """The gateways that want the messages of a row."""
        return set().union(*(self.read.wanted[p] for p in row.profiles))

    def over(self, c: int) -> list[_Seen]:
        return [row for row in self.window if c in row.channels]

    def explained(self, subject: str, headline: str, facts: dict[str, Any], unwanted: Any, choices: Any) -> Explanation:
        return Explanation("semantic", subject, headline, facts, MEASURE, self.cost, worst(unwanted), ranked(choices))


def explain_channel(plan: Tables, number: int) -> Explanation:
    """What goes over a channel, to whom in vain, and what other channels or another rendezvous would cost."""
    case = _Case(plan)
    if number not in case.rendezvous:
        raise InputError(f"the plan has no channel {number}", name="channel", got=number)
    kind, root = case.read.kind[number], case.rendezvous[number]
    rows, members = case.over(number), case.members[number]
    weight = sum(r.weight for r in rows)
    vain: dict[str, float] = defaultdict(float)
    for r in rows:
        for gateway in members - case.wanting(r):
            vain[gateway] += r.weight
    facts = {
        "kind": kind, "content": _short(case.read.expression[number]), "rendezvous": root,
        "gateways": sorted(members)[:20], "n_gateways": len(members), "links of its tree": len(case.tree[number]),
        "messages": weight, "cost of its messages": sum(r.weight * case.paid(r, number) for r in rows),
    }  # fmt: skip
    headline = (
        f"channel {number} ({kind}) carries {quantity(weight)} of the window's messages from {root} to "
        f"{several(len(members), 'gateway')}"
    )
    unwanted = [Unwanted(gateway, rate, "not wanted by any client there") for gateway, rate in vain.items()]
    return case.explained(f"channel {number}", headline, facts, unwanted, _other_ways(case, number, rows))


def explain_node(plan: Tables, name: str) -> Explanation:
    """What passes a broker, and what comes to it as a gateway without a client there who wants it."""
    case = _Case(plan)
    place_of("node", name, case.nodes)
    through = [c for c, edges in case.tree.items() if any(name in edge for edge in edges)]
    member = [c for c, gateways in case.members.items() if name in gateways]
    here = [client.client for client in case.clients if client.gateway == name]
    passed = sum(r.weight for c in through for r in case.over(c))
    vain = {c: sum(r.weight for r in case.over(c) if name not in case.wanting(r)) for c in member}
    facts = {
        "rendezvous of": [c for c, root in case.rendezvous.items() if root == name][:20],
        "channels through it": len(through), "messages through it": passed, "clients": here[:20],
        "channels it takes": member[:20],
    }  # fmt: skip
    unwanted = [Unwanted(name, rate, f"channel {c}") for c, rate in vain.items()]
    headline = f"{name} serves {several(len(here), 'client')} and is on {several(len(through), 'channel tree')}"
    return case.explained(f"node {name}", headline, facts, unwanted, ())


def explain_client(plan: Tables, name: str) -> Explanation:
    """What a client wants, over which channels it comes, and what comes to its gateway in vain."""
    case = _Case(plan)
    place_of("subscriber", name, [client.client for client in case.clients])
    mine = [client for client in case.clients if client.client == name]
    gateways = sorted({client.gateway for client in mine})
    wants = {client.profile for client in mine}
    rows = [r for r in case.window if wants & set(r.profiles)]
    over = sorted({c for r in rows for c in r.channels if case.members[c] & set(gateways)})
    wanted = sum(r.weight for r in rows)
    facts = {
        "gateway": gateways, "profiles": [_short(case.profiles[p]) for p in sorted(wants)][:10],
        "messages wanted": wanted, "over channels": over[:20],
    }  # fmt: skip
    unwanted = [
        Unwanted(gateway, sum(r.weight for r in case.over(c) if gateway not in case.wanting(r)), f"channel {c}")
        for gateway in gateways
        for c in case.members
        if gateway in case.members[c]
    ]
    headline = f"{name} at {', '.join(gateways)} gets {quantity(wanted)} of the window's messages"
    return case.explained(f"subscriber {name}", headline, facts, unwanted, ())


def _other_ways(case: _Case, number: int, rows: list[_Seen]) -> Iterator[Choice]:
    """Its messages over another channel that reaches all who want them, and its tree from another rendezvous."""
    present = sum(row.weight * case.paid(row, number) for row in rows)
    if not rows:
        return
    needed = set().union(*(case.wanting(row) & case.members[number] for row in rows))
    for c, members in case.members.items():
        if c != number and needed <= members:
            # A message that goes there anyway is not sent twice.
            after = sum(row.weight * case.paid(row, c) for row in rows if c not in row.channels)
            yield Choice(f"its messages over channel {c}", case.cost + after - present, after - present)
    root = case.rendezvous[number]
    bound = any(client.latency_bound is not None for client in case.clients)
    for node in sorted({end for edge in case.tree[number] for end in edge} - {root}):
        change = sum(row.weight * (case.way(row.source, node) - case.way(row.source, root)) for row in rows)
        barred = "clients have latency bounds" if bound else ""
        yield Choice(f"the same tree from {node}", case.cost + change, change, barred)


def _short(text: str, most: int = 120) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def explained(plan: Tables) -> Mapping[str, Callable[[Tables, Any], Explanation]]:
    """What can be asked about."""
    return {"channel": explain_channel, "node": explain_node, "subscriber": explain_client}
