"""Semantic plans explained: a channel, a gateway or broker, a subscriber; other ways priced over the window."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.evaluate.explanation import Choice, Explanation, Unwanted, place_of, ranked, several, worst
from narrowcast.model.plan import Plan

MEASURE = "link costs of the window's messages"


class _Case:
    """The tables by name, and what any message of the window pays."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        rows = {name: plan.tables[name].to_pylist() for name in ("channels", "channel_members", "trees", "topology",
                                                                 "clients", "profiles", "window")}  # fmt: skip
        self.channels = {row["channel"]: row for row in rows["channels"]}
        self.nodes: list[str] = plan.tables["nodes"]["node"].to_pylist()
        self.link = {(r[a], r[b]): float(r["cost"]) for r in rows["topology"] for a, b in (("u", "v"), ("v", "u"))}
        self.members: dict[int, set[str]] = defaultdict(set)
        for row in rows["channel_members"]:
            self.members[row["channel"]].add(row["gateway"])
        self.tree: dict[int, list[tuple[str, str]]] = defaultdict(list)
        for row in rows["trees"]:
            self.tree[row["channel"]].append((row["u"], row["v"]))
        self.clients = rows["clients"]
        self.profiles = {row["profile"]: row["text"] for row in rows["profiles"]}
        self.window = rows["window"]
        self.gateways_of: dict[int, set[str]] = defaultdict(set)
        for row in self.clients:
            self.gateways_of[row["profile"]].add(row["gateway"])
        self.known_sources = all(row["source"] is not None for row in self.window)

    @cached_property
    def cost(self) -> float:
        return float(sum(row["weight"] * self.paid(row, c) for row in self.window for c in row["channels"]))

    def tree_cost(self, c: int) -> float:
        return sum(self.link[edge] for edge in self.tree[c])

    def paid(self, row: dict[str, Any], c: int) -> float:
        """What one message of a row costs on a channel."""
        return self.tree_cost(c) + self.way(row["source"], self.channels[c]["rendezvous"])

    def way(self, source: str | None, node: str) -> float:
        """The cheapest way from a source; nothing where sources are not known."""
        return self._distance[source][node] if source is not None and self.known_sources else 0.0

    @cached_property
    def _distance(self) -> dict[str | None, dict[str, float]]:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        place = {name: i for i, name in enumerate(self.nodes)}
        sources = sorted({row["source"] for row in self.window if row["source"] is not None})
        ends = np.array([(place[u], place[v]) for u, v in self.link], np.int64).reshape(-1, 2)
        # An explicit 0 would be taken for a missing link.
        costs = np.maximum(np.array([*self.link.values()]), 1e-300)
        graph = csr_array((costs, (ends[:, 0], ends[:, 1])), shape=(len(place), len(place)))
        found = dijkstra(graph, indices=[place[source] for source in sources]) if sources else []
        return {s: dict(zip(self.nodes, line.tolist(), strict=True)) for s, line in zip(sources, found, strict=True)}

    def wanting(self, row: dict[str, Any]) -> set[str]:
        """The gateways that want the messages of a row."""
        return set().union(*(self.gateways_of[p] for p in row["profiles"]))

    def over(self, c: int) -> list[dict[str, Any]]:
        return [row for row in self.window if c in row["channels"]]

    def explained(self, subject: str, headline: str, facts: dict[str, Any], unwanted: Any, choices: Any) -> Explanation:
        return Explanation("semantic", subject, headline, facts, MEASURE, self.cost, worst(unwanted), ranked(choices))


def explain_channel(plan: Plan, number: int) -> Explanation:
    """What goes over a channel, to whom in vain, and what other channels or another rendezvous would cost."""
    case = _Case(plan)
    if number not in case.channels:
        raise InputError(f"the plan has no channel {number}", name="channel", got=number)
    row, rows, members = case.channels[number], case.over(number), case.members[number]
    weight = sum(float(r["weight"]) for r in rows)
    vain: dict[str, float] = defaultdict(float)
    for r in rows:
        for gateway in members - case.wanting(r):
            vain[gateway] += r["weight"]
    facts = {
        "kind": row["kind"], "content": _short(row["expression"]), "rendezvous": row["rendezvous"],
        "gateways": sorted(members)[:20], "n_gateways": len(members), "links of its tree": len(case.tree[number]),
        "messages": weight, "cost of its messages": sum(r["weight"] * case.paid(r, number) for r in rows),
    }  # fmt: skip
    headline = (
        f"channel {number} ({row['kind']}) carries {weight:.4g} of the window's messages from {row['rendezvous']} to "
        f"{several(len(members), 'gateway')}"
    )
    unwanted = [Unwanted(gateway, rate, "not wanted by any client there") for gateway, rate in vain.items()]
    return case.explained(f"channel {number}", headline, facts, unwanted, _other_ways(case, number, rows))


def explain_node(plan: Plan, name: str) -> Explanation:
    """What passes a broker, and what comes to it as a gateway without a client there who wants it."""
    case = _Case(plan)
    place_of("node", name, case.nodes)
    through = [c for c, edges in case.tree.items() if any(name in edge for edge in edges)]
    member = [c for c, gateways in case.members.items() if name in gateways]
    here = [client["client"] for client in case.clients if client["gateway"] == name]
    passed = sum(r["weight"] for c in through for r in case.over(c))
    vain = {c: sum(r["weight"] for r in case.over(c) if name not in case.wanting(r)) for c in member}
    facts = {
        "rendezvous of": [c for c, row in case.channels.items() if row["rendezvous"] == name][:20],
        "channels through it": len(through), "messages through it": passed, "clients": here[:20],
        "channels it takes": member[:20],
    }  # fmt: skip
    unwanted = [Unwanted(name, rate, f"channel {c}") for c, rate in vain.items()]
    headline = f"{name} serves {several(len(here), 'client')} and is on {several(len(through), 'channel tree')}"
    return case.explained(f"node {name}", headline, facts, unwanted, ())


def explain_client(plan: Plan, name: str) -> Explanation:
    """What a client wants, over which channels it comes, and what comes to its gateway in vain."""
    case = _Case(plan)
    place_of("subscriber", name, [client["client"] for client in case.clients])
    mine = [client for client in case.clients if client["client"] == name]
    gateways = sorted({client["gateway"] for client in mine})
    wants = {client["profile"] for client in mine}
    rows = [r for r in case.window if wants & set(r["profiles"])]
    over = sorted({c for r in rows for c in r["channels"] if case.members[c] & set(gateways)})
    facts = {
        "gateway": gateways, "profiles": [_short(case.profiles[p]) for p in sorted(wants)][:10],
        "messages wanted": sum(r["weight"] for r in rows), "over channels": over[:20],
    }  # fmt: skip
    unwanted = [
        Unwanted(gateway, sum(r["weight"] for r in case.over(c) if gateway not in case.wanting(r)), f"channel {c}")
        for gateway in gateways
        for c in case.members
        if gateway in case.members[c]
    ]
    headline = f"{name} at {', '.join(gateways)} gets {facts['messages wanted']:.4g} of the window's messages"
    return case.explained(f"subscriber {name}", headline, facts, unwanted, ())


def _other_ways(case: _Case, number: int, rows: list[dict[str, Any]]) -> Iterator[Choice]:
    """Its messages over another channel that reaches all who want them, and its tree from another rendezvous."""
    present = sum(row["weight"] * case.paid(row, number) for row in rows)
    if not rows:
        return
    needed = set().union(*(case.wanting(row) & case.members[number] for row in rows))
    for c, members in case.members.items():
        if c != number and needed <= members:
            # A message that goes there anyway is not sent twice.
            after = sum(row["weight"] * case.paid(row, c) for row in rows if c not in row["channels"])
            yield Choice(f"its messages over channel {c}", case.cost + after - present, after - present)
    root = case.channels[number]["rendezvous"]
    bound = any(client["latency_bound"] is not None for client in case.clients)
    for node in sorted({end for edge in case.tree[number] for end in edge} - {root}):
        change = sum(row["weight"] * (case.way(row["source"], node) - case.way(row["source"], root)) for row in rows)
        barred = "clients have latency bounds" if bound else ""
        yield Choice(f"the same tree from {node}", case.cost + change, change, barred)


def _short(text: str, most: int = 120) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


SEMANTIC: dict[str, Callable[[Plan, Any], Explanation]] = {
    "channel": explain_channel,
    "node": explain_node,
    "subscriber": explain_client,
}
