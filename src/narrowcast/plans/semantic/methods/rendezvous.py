"""Where a channel's tree is rooted, and the tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrowcast.model.arrays import Floats, Ints
from narrowcast.network import Paths, tree

Edges = NDArray[np.int32]
MOST_ROOTS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Rooted:
    """A tree. Messages that take at most `allowed` to its rendezvous are in time at every member."""

    rendezvous: int
    edges: Edges
    link_cost: float
    allowed: float = np.inf


def rooted(paths: Paths, root: int, members: Ints, kind: str) -> Rooted:
    """The tree of this kind from this root."""
    edges, cost = tree(paths, root, members, kind)
    edges.flags.writeable = False
    return Rooted(root, edges, cost)


def ways(paths: Paths, quick: Paths | None, brokers: Ints, trees: Sequence[Rooted]) -> Floats:
    """(broker × tree): the way to the rendezvous and the tree; of no broker the tree alone, as one row.

    The way is the cheapest, or the quickest where that is too slow; where both are it costs inf.
    """
    cost: Floats = np.array([tree.link_cost for tree in trees], np.float64)[None, :]
    if not brokers.size:
        return cost
    roots = np.array([tree.rendezvous for tree in trees], np.int64)
    allowed = np.array([tree.allowed for tree in trees], np.float64)
    pairs = np.ix_(brokers, roots)
    return np.asarray(cost + way_costs(paths, quick, pairs, allowed[None, :]))


def way_costs(paths: Paths, quick: Paths | None, pairs: Any, allowed: Floats) -> Floats:
    """What the way between brokers costs if it may take so long."""
    cheap = paths.distance[pairs]
    if quick is None:
        return np.asarray(cheap)
    hurried = np.where(quick.delay[pairs] <= allowed, quick.cost[pairs], np.inf)
    return np.where(paths.delay[pairs] <= allowed, cheap, hurried)


def best_rooted(paths: Paths, members: Ints, sources: Ints, weight: Floats, kind: str) -> Rooted:
    """The tree and root with the least total for what these sources send.

    Tried are the heaviest sources and the broker with the least sum of ways from the sources and to
    a tree of the members. With no source known it is the broker of that tree nearest to all others.
    """
    heavy = [int(s) for s in np.argsort(-weight, kind="stable")[:MOST_ROOTS] if weight[s] > 0] if sources.size else []
    if len(heavy) == 1:
        return rooted(paths, int(sources[heavy[0]]), members, kind)
    free, _ = tree(paths, int(members[0]), members, "nearest")
    inside = np.unique(np.append(free[:, 1], members[0]))
    if not heavy:
        central = int(inside[np.argmin(paths.distance[inside].sum(axis=1))])
        return rooted(paths, central, members, kind)
    ways = weight @ paths.distance[sources]
    middle = int(np.argmin(ways + weight.sum() * paths.distance[:, inside].min(axis=1)))
    roots = dict.fromkeys([*(int(sources[s]) for s in heavy), middle])
    tried = [rooted(paths, root, members, kind) for root in roots]
    return min(tried, key=lambda each: float(ways[each.rendezvous] + weight.sum() * each.link_cost))
