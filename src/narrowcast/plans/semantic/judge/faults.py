"""Semantic plans judged from their tables alone: who could be missed by any message, and what it all costs.

Nothing here comes from the planner. That nobody can be missed is proven from the rule: under `audience` every
gateway with a client must be in a fallback channel, since a message goes to the fallback of every gateway that
its other channel leaves out; under `content` the channels that reach a client must together carry its profile.
What cannot be proven counts as a fault. Beside the proof, the messages kept with the plan are matched again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model.plan import Plan
from narrowcast.plans.semantic.judge.proof import Formulas
from narrowcast.profiles import Profile
from narrowcast.profiles.xpath.xpath import XPath

TOLERANCE = 1e-9


def semantic_faults(plan: Plan) -> list[str]:
    """Every way in which the plan is unsound; an empty list is a sound plan. O(tables), and a proof per client."""
    read = _Read(plan)
    if read.broken:
        return read.broken
    return [*_tree_faults(read), *_rule_faults(read), *_window_faults(read), *_sample_faults(read)]


def semantic_cost(plan: Plan) -> dict[str, float]:
    """The window's cost: `tree`, the links below each rendezvous; `full`, the way from the sources added.

    `full` is there if the plan knows its sources; `total` is it, or else `tree`. Under latency bounds, where
    some messages go by the quickest way instead of the cheapest, only `tree` is.
    """
    read = _Read(plan)
    if read.broken:
        return {}
    below = {c: sum(read.link[edge][0] for edge in read.tree[c]) for c in read.rendezvous}
    tree, way = 0.0, 0.0
    for _, source, weight, channels in read.window:
        tree += weight * sum(below[c] for c in channels)
        if source is not None:
            way += weight * sum(read.distance(source, read.rendezvous[c]) for c in channels)
    if read.bounded:
        return {"tree": tree}
    if any(source is None for _, source, _, _ in read.window) or "full" not in plan.cost:
        return {"total": tree, "tree": tree}
    return {"total": tree + way, "tree": tree, "full": tree + way}


class _Read:
    """The tables by name, and what is wrong with the names themselves."""

    def __init__(self, plan: Plan) -> None:
        t = {name: table.to_pydict() for name, table in plan.tables.items() if name != "sample"}
        self.plan, self.broken = plan, list[str]()
        self._found: dict[int, dict[str, dict[str, float]]] = {}
        self.rule = plan.parameters.get("rule")
        if self.rule not in ("audience", "content"):
            self.broken.append(f"there is no rule {self.rule!r}; there are audience and content")
        self.nodes = set(t["nodes"]["node"])
        self.link: dict[tuple[str, str], tuple[float, float]] = {}
        for u, v, cost, delay in _rows(t["topology"], "u", "v", "cost", "delay"):
            self.link[u, v] = self.link[v, u] = (cost, delay)
        self.rendezvous = dict(_rows(t["channels"], "channel", "rendezvous"))
        self.kind = dict(_rows(t["channels"], "channel", "kind"))
        self.content = dict(_rows(t["channels"], "channel", "content"))
        self.rate = dict(_rows(t["channels"], "channel", "rate"))
        if len(self.rendezvous) < len(t["channels"]["channel"]):
            self.broken.append("a channel stands twice")
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
            if profile not in self.profiles or gateway not in self.nodes:
                self.broken.append(f"client {client} wants profile {profile} at {gateway}, which is not there")
        self.window = list(_rows(t["window"], "profiles", "source", "weight", "channels"))
        for profiles, source, _, channels in self.window:
            if not set(profiles) <= self.profiles.keys() or not set(channels) <= self.rendezvous.keys():
                self.broken.append("a row of the window names a profile or a channel that is not there")
            if source is not None and source not in self.nodes:
                self.broken.append(f"a row of the window comes from {source}, which is no node")
        self.parts = list(_rows(t["contents"], "part", "operation", "operands"))
        self.wanted: dict[int, set[str]] = defaultdict(set)  # gateways by profile
        for _, profile, gateway, _ in self.clients:
            self.wanted[profile].add(gateway)

    def _known(self, channel: int, nodes: tuple[str, ...]) -> bool:
        for node in nodes:
            if node not in self.nodes:
                self.broken.append(f"channel {channel} is at {node}, which is no node")
        if channel not in self.rendezvous:
            self.broken.append(f"channel {channel} has members or links and is not there")
        return not self.broken

    @cached_property
    def read_profiles(self) -> dict[int, Profile | XPath]:
        return {p: _profile(text) for p, text in self.profiles.items()}

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

        names = sorted(self.nodes)
        place = {name: i for i, name in enumerate(names)}
        ends = np.array([(place[u], place[v]) for u, v in self.link], np.int64).reshape(-1, 2)
        # An explicit 0 would be taken for a missing link.
        weight = np.array([max(amounts[amount], 1e-300) for amounts in self.link.values()], np.float64)
        graph = csr_array((weight, (ends[:, 0], ends[:, 1])), shape=(len(names), len(names)))
        sources = sorted({source for _, source, _, _ in self.window if source is not None})
        found = dijkstra(graph, indices=[place[s] for s in sources]) if sources else []
        return {s: dict(zip(names, row.tolist(), strict=True)) for s, row in zip(sources, found, strict=True)}


def _tree_faults(read: _Read) -> Iterator[str]:
    """Every link is in the overlay, and a walk from the rendezvous comes to every member, nowhere twice."""
    for c, root in read.rendezvous.items():
        children: dict[str, list[str]] = defaultdict(list)
        for u, v in read.tree[c]:
            if (u, v) not in read.link:
                yield f"channel {c} uses a link {u} to {v} that the overlay does not have"
            children[u].append(v)
        seen, front = {root}, [root]
        while front:
            for v in children.get(front.pop(), ()):
                if v in seen:
                    yield f"the tree of channel {c} comes to {v} twice"
                    return
                seen.add(v)
                front.append(v)
        if len(seen) != len(read.tree[c]) + 1:
            yield f"the tree of channel {c} has links that do not start at its rendezvous {root}"
        for gateway in sorted(read.members[c] - seen):
            yield f"channel {c} has the member {gateway}, which its tree does not reach"


def _rule_faults(read: _Read) -> Iterator[str]:
    if read.rule == "audience":
        served = set().union(*(read.members[c] for c, kind in read.kind.items() if kind == "fallback"))
        for gateway in sorted({g for _, _, g, _ in read.clients} - served):
            yield f"gateway {gateway} is in no fallback channel: a message of an unknown audience would miss it"
        return
    try:
        formulas = Formulas(read.parts, read.content, read.read_profiles)
    except InputError as error:
        yield str(error)
        return
    at: dict[str, list[int]] = defaultdict(list)
    for c, members in read.members.items():
        for gateway in members:
            at[gateway].append(c)
    for profile, gateways in sorted(read.wanted.items()):
        for gateway in sorted(gateways):
            if not formulas.carried(profile, at[gateway]):
                yield f"nothing proves that the channels to {gateway} carry all of profile {profile}"


def _window_faults(read: _Read) -> Iterator[str]:
    """Rates are those of the window, every audience is reached, and no later than its clients allow."""
    rate: dict[int, float] = defaultdict(float)
    used: set[tuple[str, int]] = set()
    for profiles, source, weight, channels in read.window:
        reached = set().union(*(read.members[c] for c in channels))
        missed = set().union(*(read.wanted[p] for p in profiles)) - reached
        if missed:
            yield f"messages that match profiles {profiles[:5]} do not reach {min(missed)}"
        for c in channels:
            rate[c] += weight
            if source is not None:
                used.add((source, c))
    for c, said in read.rate.items():
        if abs(rate[c] - said) > TOLERANCE * max(1.0, said):
            yield f"channel {c} carries {rate[c]} of the window, the plan says {said}"
    yield from _late(read, used)


def _late(read: _Read, used: set[tuple[str, int]]) -> Iterator[str]:
    """Gateways that a source's channel serves later than a client's bound."""
    bound: dict[str, float] = {}
    for _, _, gateway, limit in read.clients:
        if limit is not None:
            bound[gateway] = min(limit, bound.get(gateway, np.inf))
    if not bound:
        return
    for source, c in sorted(used):
        delay = {read.rendezvous[c]: read.delay(source, read.rendezvous[c])}
        front = [read.rendezvous[c]]
        while front:
            at = front.pop()
            for u, v in read.tree[c]:
                if u == at and v not in delay:
                    delay[v] = delay[u] + read.link[u, v][1]
                    front.append(v)
        for gateway in sorted(read.members[c]):
            if delay.get(gateway, 0.0) > bound.get(gateway, np.inf) * (1 + TOLERANCE):
                yield f"channel {c} takes {delay[gateway]:g} from {source} to {gateway}, bound {bound[gateway]:g}"


def _sample_faults(read: _Read) -> Iterator[str]:
    """The kept messages, matched again: each reaches whoever wants it, and goes where the formulas say."""
    sample = read.plan.tables["sample"]
    sent = sample["_channels"].to_pylist()
    matched = _matched(read, sample.drop_columns(["_broker", "_channels"]))
    for i, profiles in enumerate(matched):
        reached = set().union(*(read.members.get(c, set()) for c in sent[i]))
        missed = set().union(*(read.wanted[p] for p in profiles)) - reached
        if missed:
            yield f"sample message {i} matches a profile at {min(missed)} and does not get there"
    if read.rule == "content":
        formulas = Formulas(read.parts, read.content, read.read_profiles)
        for i, profiles in enumerate(matched):
            if sorted(sent[i]) != formulas.channels(profiles):
                yield f"sample message {i} goes to channels {sent[i]}, by its formulas to {formulas.channels(profiles)}"


def _matched(read: _Read, messages: Any) -> list[set[int]]:
    """The profiles that match each message."""
    from narrowcast.profiles import Matcher
    from narrowcast.profiles.xpath.match import XPathMatcher

    found: list[set[int]] = [set() for _ in range(messages.num_rows)]
    if not found:
        return found
    plain = {p: profile for p, profile in read.read_profiles.items() if isinstance(profile, Profile)}
    paths = {p: profile for p, profile in read.read_profiles.items() if isinstance(profile, XPath)}
    if plain:
        numbers = list(plain)
        for row, col in zip(*Matcher(list(plain.values())).match(messages), strict=True):
            found[row].add(numbers[col])
    if paths and "xml" in messages.column_names:
        numbers, documents = list(paths), messages["xml"].to_pylist()
        there = [i for i, document in enumerate(documents) if document is not None]
        for row, col in zip(*XPathMatcher(list(paths.values())).match([documents[i] for i in there]), strict=True):
            found[there[row]].add(numbers[col])
    return found


def _profile(text: str) -> Profile | XPath:
    return XPath.parse(text) if text.startswith("/") else Profile.parse(text, limits=None)


def _rows(table: dict[str, list[Any]], *columns: str) -> Iterator[Any]:
    yield from zip(*(table[name] for name in columns), strict=True)
