"""The backbone by itself: which content shares which channel, and on which tree of links.

Flows with the same source, the same sites and the same bounds are one class. A channel is an undirected tree of
links: every message of it enters at its source's gateway and crosses each link once, unless a filter on the way
lets through only what somebody beyond wants (`docs/decisions/0151`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.network.steiner import tree as steiner
from narrowcast.plans.network.decisions import NetworkProblem

#: Links up to which every tree of the backbone is listed.
FEW_LINKS = 10
KINDS = ("nearest", "spt", "steiner", "starts")
MOST_TREES = 4  # that are tried under filters, of a large backbone

Filters = frozenset[int]


@dataclass(frozen=True, eq=False)
class Classes:
    """Content as the backbone sees it: source site, sites that need it, bytes a second, bounds in ms (inf: none)."""

    source: Ints
    needs: Bools
    bytes_s: Floats
    bound: Floats
    of_flow: Ints  # −1: needs no backbone

    @property
    def n(self) -> int:
        return int(self.source.size)


def classes_of(problem: NetworkProblem, direct: Ints) -> Classes:
    """The classes that are left when some (flow, site) go straight from the source."""
    d = problem.demand
    needs = problem.remote.copy()
    needs.ravel()[direct] = False
    some = np.flatnonzero(needs.any(axis=1))
    of_flow = np.full(d.interest.n_flows, -1)
    if some.size == 0:
        return Classes(np.zeros(0, np.int64), needs[:0], np.zeros(0), np.zeros((0, d.n_sites)), of_flow)
    bound = np.where(needs[some], problem.tightest[some], -1.0)
    rows = np.column_stack((d.source[some].astype(np.float64), bound))
    _, first, at = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    of_flow[some] = at.ravel()
    total: Floats = np.bincount(at.ravel(), d.bytes_s[some], minlength=first.size).astype(np.float64)
    chosen = some[first]
    least = np.where(needs[chosen], problem.tightest[chosen], np.inf)
    return Classes(d.source[chosen], needs[chosen], total, least, of_flow)


@dataclass(frozen=True, eq=False)
class RootedTree:
    """A tree seen from one broker: nodes from the root outward, with the place of each one's parent and its link."""

    nodes: Ints
    parent: Ints
    link: Ints
    delay: Floats  # of that link


Carried = list[tuple[RootedTree, Floats, Floats]]


class BackboneTrees:
    """Trees and their costs, remembered; `extra` are prices on links beside their own, for what they cannot bear."""

    def __init__(self, problem: NetworkProblem, extra: Floats | None = None) -> None:
        self.problem = problem
        self.price = problem.link_price if extra is None else problem.link_price + extra
        self.extra = extra
        self._trees: dict[tuple[frozenset[int], frozenset[int]], list[tuple[float, Ints]]] = {}
        self._rooted: dict[tuple[bytes, int], RootedTree] = {}
        self.site_at = np.full(problem.demand.topology.n_brokers, -1)
        self.site_at[problem.demand.gateway] = np.arange(problem.demand.n_sites)

    # Trees

    def trees(self, ends: frozenset[int], quick: frozenset[int] = frozenset()) -> list[tuple[float, Ints]]:
        """Candidate trees over some brokers with the sum of their prices, cheapest first.

        `quick` are brokers from which there must be a tree of least delay among them.
        """
        found = self._trees.get((ends, quick))
        if found is None:
            found = self._trees[ends, quick] = self._candidates(ends, quick)
        return found

    def _candidates(self, ends: frozenset[int], quick: frozenset[int]) -> list[tuple[float, Ints]]:
        if len(ends) < 2:
            return [(0.0, np.zeros(0, np.int64))]
        if self._all is not None:
            made = [links for nodes, links, leaves in self._all if ends <= nodes and leaves <= ends]
        else:
            root, *members = sorted(ends)
            made = [self._numbers(steiner(self._paths, root, members, kind)[0]) for kind in KINDS]
            made += [self.quickest(at, ends) for at in sorted(quick)]
        distinct = {links.tobytes(): links for links in made}
        priced = [(float(self.price[links].sum()), links) for links in distinct.values()]
        return sorted(priced, key=lambda each: (each[0], each[1].tobytes()))

    def quickest(self, root: int, ends: frozenset[int]) -> Ints:
        """The tree by which everything comes from the root as soon as it can."""
        return self._numbers(steiner(self.problem.by_delay, root, sorted(ends - {root}), "spt")[0])

    def _numbers(self, links: Any) -> Ints:
        link_of = self.problem.link_of
        return np.array(sorted(link_of[u, v] for u, v in links.tolist()), np.int64)

    @cached_property
    def _paths(self) -> Any:
        if self.extra is None:
            return self.problem.by_cost
        from narrowcast.model.topology import Topology
        from narrowcast.network.paths import shortest_paths

        t = self.problem.demand.topology
        return shortest_paths(Topology(t.edges, self.price, t.delay, n_brokers=t.n_brokers))

    @cached_property
    def _all(self) -> list[tuple[frozenset[int], Ints, frozenset[int]]] | None:
        """Every tree of a small backbone: its brokers, its links, its leaves."""
        edges = self.problem.demand.topology.edges.tolist()
        if len(edges) > FEW_LINKS:
            return None
        found = []
        for n in range(1, len(edges) + 1):
            for chosen in combinations(range(len(edges)), n):
                ends = [v for at in chosen for v in edges[at]]
                nodes = frozenset(ends)
                if len(nodes) == n + 1 and _connected(nodes, [edges[at] for at in chosen]):
                    leaves = frozenset(v for v in nodes if ends.count(v) == 1)
                    found.append((nodes, np.array(chosen, np.int64), leaves))
        return found

    def rooted(self, links: Ints, root: int) -> RootedTree:
        key = links.tobytes(), root
        found = self._rooted.get(key)
        if found is None:
            found = self._rooted[key] = _rooted(self.problem, links, root)
        return found

    # What a channel carries

    def below(self, tree: RootedTree, needs: Bools) -> Bools:
        """Nodes × classes: whether somebody at or below the node needs the class."""
        below = np.zeros((tree.nodes.size, needs.shape[0]), np.bool_)
        for at in range(tree.nodes.size - 1, -1, -1):
            site = self.site_at[tree.nodes[at]]
            if site >= 0:
                below[at] |= needs[:, site]
            if at:
                below[tree.parent[at]] |= below[at]
        return below

    def delays(self, tree: RootedTree, filters: Filters) -> Floats:
        """From the root to each node; a filter delays what it forwards."""
        delay, late = tree.delay.tolist(), self.problem.filter_delay
        for at in range(1, len(delay)):
            up = int(tree.parent[at])
            delay[at] += delay[up] + (late if int(tree.nodes[up]) in filters else 0.0)
        return np.array(delay)

    def carried(self, classes: Classes, members: Ints, links: Ints) -> Carried:
        """For each source of a channel: its tree, f(v), and the tightest bound of each node."""
        found = []
        for source in np.unique(classes.source[members]).tolist():
            mine = members[classes.source[members] == source]
            tree = self.rooted(links, int(self.problem.demand.gateway[source]))
            f = self.below(tree, classes.needs[mine]) @ classes.bytes_s[mine]
            found.append((tree, f, self._node_bounds(tree, classes.bound[mine].min(axis=0))))
        return found

    def _node_bounds(self, tree: RootedTree, of_site: Floats) -> Floats:
        site = self.site_at[tree.nodes]
        return np.where(site >= 0, of_site[np.maximum(site, 0)], np.inf)

    def loads(self, carried: Carried, filters: Filters) -> tuple[Floats, bool]:
        """Bytes a second on every link, and whether every bound is kept."""
        loads = np.zeros(self.price.size)
        kept = True
        for tree, f, bound in carried:
            parents, nodes, through = tree.parent.tolist(), tree.nodes.tolist(), f.tolist()
            for at in range(1, len(nodes)):
                if nodes[parents[at]] not in filters:
                    through[at] = through[parents[at]]
            loads[tree.link[1:]] += through[1:]
            if np.isfinite(bound).any():
                kept = kept and bool((self.delays(tree, filters) <= bound * (1 + 1e-9)).all())
        return loads, kept

    def ends(self, classes: Classes, members: Ints) -> frozenset[int]:
        """The gateways that a channel of these classes must join."""
        sites = np.flatnonzero(classes.needs[members].any(axis=0))
        return frozenset(self.problem.demand.gateway[np.append(sites, classes.source[members])].tolist())

    def channel(
        self, classes: Classes, members: Ints, filters: Filters, known: Ints | None = None
    ) -> tuple[float, Ints]:
        """The cheapest tree for some classes under these filters, and its cost; inf if no tree keeps the bounds.

        `known` is a tree that is tried too, if it reaches them all.
        """
        ends = self.ends(classes, members)
        tight = members[np.isfinite(classes.bound[members]).any(axis=1)]
        roots = frozenset(self.problem.demand.gateway[classes.source[tight]].tolist())
        bounds = {s: classes.bound[tight[classes.source[tight] == s]].min(axis=0) for s in set(classes.source[tight])}
        total = float(classes.bytes_s[members].sum())
        options = self.trees(ends, roots)
        if known is not None and ends <= set(self.problem.demand.topology.edges[known].ravel().tolist()):
            kept = self.pruned(known, ends)
            options = sorted([*options, (float(self.price[kept].sum()), kept)], key=lambda each: each[0])
        best: tuple[float, Ints] = (np.inf, np.zeros(0, np.int64))
        tried = 0
        for price, links in options:
            if bounds and not self._in_time(links, bounds, filters):
                continue
            if not filters:
                return total * price, links
            cost = float(self.loads(self.carried(classes, members, links), filters)[0] @ self.price)
            if cost < best[0]:
                best = cost, links
            tried += 1
            if tried >= MOST_TREES and self._all is None:
                break
        return best

    def _in_time(self, links: Ints, bounds: dict[int, Floats], filters: Filters) -> bool:
        for source, of_site in bounds.items():
            tree = self.rooted(links, int(self.problem.demand.gateway[source]))
            if (self.delays(tree, filters) > self._node_bounds(tree, of_site) * (1 + 1e-9)).any():
                return False
        return True

    def pruned(self, links: Ints, ends: frozenset[int]) -> Ints:
        """The tree without branches that reach none of these brokers."""
        edges, kept = self.problem.demand.topology.edges, set(links.tolist())
        while kept:
            degree = np.bincount(edges[sorted(kept)].ravel(), minlength=self.site_at.size)
            loose = {at for at in kept if any(degree[v] == 1 and v not in ends for v in edges[at].tolist())}
            if not loose:
                break
            kept -= loose
        return np.array(sorted(kept), np.int64)

    def marginal(self, classes: Classes, links: Ints, filters: Filters) -> Floats:
        """What a byte a second of each class costs on a tree in an hour; inf where the tree cannot carry it."""
        price = np.full(classes.n, np.inf)
        nodes = np.unique(self.problem.demand.topology.edges[links])
        inside = np.zeros(classes.needs.shape[1], np.bool_)
        inside[self.site_at[nodes][self.site_at[nodes] >= 0]] = True
        reached = ~classes.needs[:, ~inside].any(axis=1) & inside[classes.source]
        for source in np.unique(classes.source[reached]).tolist():
            mine = np.flatnonzero(reached & (classes.source == source))
            tree = self.rooted(links, int(self.problem.demand.gateway[source]))
            if filters:
                arrives = self.below(tree, classes.needs[mine])
                arrives[0] = True
                for at in range(1, tree.nodes.size):
                    up = int(tree.parent[at])
                    if int(tree.nodes[up]) not in filters:
                        arrives[at] = arrives[up]
                price[mine] = self.price[tree.link[1:]] @ arrives[1:]
            else:
                price[mine] = self.price[links].sum()
            if np.isfinite(classes.bound[mine]).any():
                delay, site = self.delays(tree, filters), self.site_at[tree.nodes]
                ends = np.flatnonzero(site >= 0)
                late = (delay[ends] > classes.bound[mine][:, site[ends]] * (1 + 1e-9)).any(axis=1)
                price[mine[late]] = np.inf
        return price


def _connected(nodes: frozenset[int], links: list[list[int]]) -> bool:
    reached, front = set(), [min(nodes)]
    while front:
        at = front.pop()
        reached.add(at)
        front += [w for u, v in links for w in (u, v) if at in (u, v) and w not in reached]
    return len(reached) == len(nodes)


def _rooted(problem: NetworkProblem, links: Ints, root: int) -> RootedTree:
    edges, delays = problem.demand.topology.edges, problem.demand.topology.delay
    around: dict[int, list[tuple[int, int]]] = {}
    for at in links.tolist():
        u, v = edges[at].tolist()
        around.setdefault(u, []).append((v, at))
        around.setdefault(v, []).append((u, at))
    nodes, parent, link, seen = [root], [-1], [-1], {root}
    for place, node in enumerate(nodes):
        for other, at in around.get(node, ()):
            if other not in seen:
                seen.add(other)
                nodes.append(other)
                parent.append(place)
                link.append(at)
    ways = np.array(link, np.int64)
    delay = np.where(ways >= 0, delays[np.maximum(ways, 0)], 0.0)
    return RootedTree(np.array(nodes, np.int64), np.array(parent, np.int64), ways, delay)
