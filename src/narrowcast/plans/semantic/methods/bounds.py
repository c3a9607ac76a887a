"""Latency bounds: how late a message may come to each gateway, and trees that keep to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from narrowcast.errors import InfeasibleError, InputError
from narrowcast.model.arrays import Floats, Ints
from narrowcast.model.topology import Topology
from narrowcast.network import DisseminationTree, Paths, shortest_paths
from narrowcast.plans.semantic.methods.rendezvous import Rooted
from narrowcast.plans.semantic.window import OverlaySystem, Window

#: Where a gateway joins: at the nearest broker of the tree, or at its nearest member, as published.
Nearest = Literal["broker", "member"]
#: Sums of delays along different ways differ in their last digits.
ROUNDING = 1 + 5e-10


@dataclass(frozen=True, eq=False)
class Bounds:
    """`limit[broker]` is the delay from a publisher's broker that clients there allow, inf for any.

    A message goes to the rendezvous by the cheapest way, or the quickest where the cheapest is too slow,
    and then down the tree. `quick` holds the paths by delay.
    """

    limit: Floats
    quick: Paths

    def allowed(self, tree: Rooted) -> float:
        """The largest delay to the rendezvous with which the tree keeps every member's bound."""
        delay = {tree.rendezvous: 0.0}
        allowed = float(self.limit[tree.rendezvous])
        links = self.quick.links
        for u, v in _outward(tree):
            delay[v] = delay[u] + links[u, v][1]
            allowed = min(allowed, float(self.limit[v]) - delay[v])
        return allowed

    def needed(self, members: Ints, users: Ints) -> Floats:
        """By broker as the rendezvous: how much too late the last member would be, over its bound (≤ 0: none)."""
        far = self.quick.delay[users].max(axis=0) if users.size else np.zeros(self.limit.size)
        return np.asarray((far[:, None] + self.quick.delay[:, members] - self.limit[members]).max(axis=1))


def read_bounds(made: OverlaySystem, latency_bound: ArrayLike | None) -> tuple[Floats | None, Bounds | None]:
    """The bound of each client, from one for all or one each (nan or inf for none), and by broker."""
    if latency_bound is None:
        return None, None
    given = np.asarray(latency_bound, np.float64)
    n = len(made.clients)
    if given.ndim and given.shape != (n,):
        raise InputError(f"latency_bound must be one bound or {n}, got shape {given.shape}", name="latency_bound")
    each = np.where(np.isnan(given), np.inf, given) * np.ones(n)
    if (each <= 0).any():
        raise InputError(
            f"latency_bound must be above 0, got {each.min()}", name="latency_bound", got=float(each.min())
        )
    limit = np.full(made.topology.n_brokers, np.inf)
    np.minimum.at(limit, made.clients[:, 1], each)
    return each, Bounds(limit * ROUNDING, shortest_paths(made.topology, by="delay"))


def check_reachable(made: OverlaySystem, seen: Window, bounds: Bounds) -> None:
    """Refuse a bound that even the quickest way from a source breaks."""
    if not seen.sources.size or not made.gateways.size:
        return
    delay = bounds.quick.delay[np.ix_(seen.sources, made.gateways)]
    late = delay > bounds.limit[made.gateways]
    if late.any():
        s, g = np.unravel_index(np.argmax(np.where(late, delay, -1.0)), delay.shape)
        where = f"from {name_of(made.topology, int(seen.sources[s]))}"
        raise too_slow(bounds, int(made.gateways[g]), float(delay[s, g]), where)


def within_reach(topology: Topology, clients: Ints, sources: Ints, bounds: Floats) -> Floats:
    """The bounds, those that no plan can keep raised to what the quickest way from the sources takes.

    >>> line = Topology([(0, 1), (1, 2)], delay=[3, 4])
    >>> within_reach(line, np.array([[0, 1], [0, 2]]), np.array([0]), np.array([5.0, 5.0]))
    array([5., 7.])
    """
    quick = shortest_paths(topology, by="delay")
    least = quick.delay[np.unique(sources)].max(axis=0)[clients[:, 1]]
    return np.maximum(bounds, np.where(np.isfinite(least), least, 0.0))


def name_of(topology: Topology, broker: int) -> str:
    """What people call a broker."""
    return f"broker {topology.names[broker] if topology.names else broker}"


def too_slow(bounds: Bounds, gateway: int, least: float, where: str) -> InfeasibleError:
    said = float(bounds.limit[gateway] / ROUNDING)
    return InfeasibleError(
        f"latency_bound {said:g} cannot be kept at {name_of(bounds.quick.topology, gateway)}: "
        f"the quickest way {where} takes {least:g}",
        budget="latency_bound",
        smallest=least,
    )


def bounded(
    paths: Paths, bounds: Bounds, free: Rooted, members: Ints, users: Ints, ways: Floats, nearest: Nearest = "broker"
) -> Rooted:
    """The tree as it is if it keeps the bounds for these users, else one that does (SemCast §4).

    `ways[r]` is what the users pay to a rendezvous r. If the given rendezvous is too far for any tree, the
    cheapest that is not takes its place.
    """
    tree = free
    if _far(bounds.quick, users, free.rendezvous) > bounds.allowed(free):
        root = _root(paths, bounds, free.rendezvous, members, users, ways)
        tree = _joined(paths, bounds, root, members, users, nearest)
    return replace(tree, allowed=bounds.allowed(tree))


def _far(quick: Paths, users: Ints, root: int) -> float:
    return float(quick.delay[users, root].max()) if users.size else 0.0


def _root(paths: Paths, bounds: Bounds, root: int, members: Ints, users: Ints, ways: Floats) -> int:
    """The given rendezvous if a tree from it can keep the bounds, else the cheapest that can."""
    needed = bounds.needed(members, users)
    if needed[root] <= 0:
        return root
    able = np.flatnonzero(needed <= 0)
    if able.size:
        return int(able[np.argmin(ways[able] + paths.distance[np.ix_(able, members)].mean(axis=1))])
    at = int(np.argmin(needed))
    delay = _far(bounds.quick, users, at) + bounds.quick.delay[at, members]
    worst = int(np.argmax(delay - bounds.limit[members]))
    raise too_slow(bounds, int(members[worst]), float(delay[worst]), "over a rendezvous that several sources share")


def _joined(paths: Paths, bounds: Bounds, root: int, members: Ints, users: Ints, nearest: Nearest) -> Rooted:
    """Members join nearest first, each within what the way of the users leaves."""
    cheap, quick = (_far(each, users, root) for each in (paths, bounds.quick))
    slack = bounds.limit[members] - cheap
    if (bounds.quick.delay[root, members] > slack).any():
        slack = bounds.limit[members] - quick
    tree = DisseminationTree(paths, root, nearest)
    for at in np.argsort(paths.distance[root, members], kind="stable"):
        tree.join_within(int(members[at]), float(slack[at]), bounds.quick, anyway=True)
    edges: NDArray[np.int32] = np.array(tree.edges, np.int32).reshape(-1, 2)
    edges.flags.writeable = False
    return Rooted(root, edges, tree.cost)


def _outward(tree: Rooted) -> list[tuple[int, int]]:
    """The links in an order in which each starts where another ended."""
    children: dict[int, list[int]] = {}
    for u, v in tree.edges.tolist():
        children.setdefault(u, []).append(v)
    order, front = [], [tree.rendezvous]
    while front:
        u = front.pop()
        for v in children.get(u, ()):
            order.append((u, v))
            front.append(v)
    return order
