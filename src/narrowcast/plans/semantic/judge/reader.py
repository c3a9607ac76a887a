"""The tables of a semantic plan by name, as the judge reads them: by code that the planner has no part in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from narrowcast.model.plan import Tables
from narrowcast.profiles import Profile


class ReadOverlay:
    """The tables by name, and what is wrong with the names themselves (`broken`): then the rest is not all there.

    By the number of a channel: `rendezvous`, `expression` (for people), `kind`, `content`, `rate`, `members`
    (gateways) and `tree` (links outward). `link` has cost and delay both ways. `clients` are (client, profile,
    gateway, latency bound), `window` (profiles, source, weight, channels), `wanted` the gateways by profile.
    """

    def __init__(self, plan: Tables) -> None:
        t = {name: table.to_pydict() for name, table in plan.tables.items() if name != "sample"}
        self.plan, self.broken = plan, list[str]()
        self._found: dict[int, dict[str, dict[str, float]]] = {}
        self.rule = plan.parameters.get("rule")
        if self.rule not in ("audience", "content"):
            self.broken.append(f"rule must be one of audience, content, got {self.rule!r}")
        self.nodes: list[str] = t["nodes"]["node"]
        self._names = set(self.nodes)
        self.link: dict[tuple[str, str], tuple[float, float]] = {}
        for u, v, cost, delay in _rows(t["topology"], "u", "v", "cost", "delay"):
            self.link[u, v] = self.link[v, u] = (cost, delay)
        self.rendezvous = dict(_rows(t["channels"], "channel", "rendezvous"))
        self.expression = dict(_rows(t["channels"], "channel", "expression"))
        self.kind = dict(_rows(t["channels"], "channel", "kind"))
        self.content = dict(_rows(t["channels"], "channel", "content"))
        self.rate = dict(_rows(t["channels"], "channel", "rate"))
        if len(self.rendezvous) < len(t["channels"]["channel"]):
            self.broken.append("a channel appears twice")
        self.members: dict[int, set[str]] = {c: set() for c in self.rendezvous}
        self.tree: dict[int, list[tuple[str, str]]] = {c: [] for c in self.rendezvous}
        for c, gateway in _rows(t["channel_members"], "channel", "gateway"):
            if self._known(c, (gateway,)):
                self.members[c].add(gateway)
        for c, u, v in _rows(t["trees"], "channel", "u", "v"):
            if self._known(c, (u, v)):
                self.tree[c].append((u, v))
        for c, root in self.rendezvous.items():
            self._known(c, (root,))
        self.profiles = dict(_rows(t["profiles"], "profile", "text"))
        self.clients = list(_rows(t["clients"], "client", "profile", "gateway", "latency_bound"))
        for client, profile, gateway, _ in self.clients:
            if profile not in self.profiles or gateway not in self._names:
                self.broken.append(f"client {client} wants profile {profile} at {gateway}, which is not in the plan")
        self.window = list(_rows(t["window"], "profiles", "source", "weight", "channels"))
        for profiles, source, _, channels in self.window:
            if not set(profiles) <= self.profiles.keys() or not set(channels) <= self.rendezvous.keys():
                self.broken.append("a row of the window names a profile or a channel that is not in the plan")
            if source is not None and source not in self._names:
                self.broken.append(f"a row of the window comes from {source}, which is not a node")
        self.parts = list(_rows(t["contents"], "part", "operation", "operands"))
        self.wanted: dict[int, set[str]] = defaultdict(set)  # gateways by profile
        for _, profile, gateway, _ in self.clients:
            self.wanted[profile].add(gateway)

    def _known(self, channel: int, nodes: tuple[str, ...]) -> bool:
        for node in nodes:
            if node not in self._names:
                self.broken.append(f"channel {channel} is at {node}, which is not a node")
        if channel not in self.rendezvous:
            self.broken.append(f"channel {channel} has members or links but is not in table channels")
        return not self.broken

    @cached_property
    def read_profiles(self) -> dict[int, Profile]:
        return {p: Profile.parse(text, limits=None) for p, text in self.profiles.items()}

    @cached_property
    def bounded(self) -> bool:
        return any(limit is not None for _, _, _, limit in self.clients)

    def distance(self, source: str, node: str) -> float:
        """The cost of the cheapest way."""
        return float(self._least(0)[source][node])

    def delay(self, source: str, node: str) -> float:
        """The delay of the quickest way."""
        return float(self._least(1)[source][node])

    def _least(self, amount: int) -> dict[str, dict[str, float]]:
        if amount not in self._found:
            self._found[amount] = self._dijkstra(amount)
        return self._found[amount]

    def _dijkstra(self, amount: int) -> dict[str, dict[str, float]]:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import dijkstra

        names = self.nodes
        place = {name: i for i, name in enumerate(names)}
        ends = np.array([(place[u], place[v]) for u, v in self.link], np.int64).reshape(-1, 2)
        # An explicit 0 would be taken for a missing link.
        weight = np.array([max(amounts[amount], 1e-300) for amounts in self.link.values()], np.float64)
        graph = csr_array((weight, (ends[:, 0], ends[:, 1])), shape=(len(names), len(names)))
        sources = sorted({source for _, source, _, _ in self.window if source is not None})
        found = dijkstra(graph, indices=[place[s] for s in sources]) if sources else []
        return {s: dict(zip(names, row.tolist(), strict=True)) for s, row in zip(sources, found, strict=True)}


def _rows(table: dict[str, list[Any]], *columns: str) -> Iterator[Any]:
    yield from zip(*(table[name] for name in columns), strict=True)
