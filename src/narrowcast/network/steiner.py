"""Trees made at once from all members: a central Steiner approximation, shortest paths, or the best of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from narrowcast.errors import InputError
from narrowcast.network.kernels.paths import OUTSIDE, join_at_broker, join_in_order, nearest_first, shortest_path_tree
from narrowcast.network.paths import Paths

Edges = list[tuple[int, int]]

_SEVERAL = {"best": ("nearest", "spt", "steiner", "starts"), "cheaper": ("nearest", "spt")}
#: So many members are tried as the start of a tree.
MOST_STARTS = 8
_KERNELS = {"join": join_in_order, "join-broker": join_at_broker, "nearest": nearest_first, "spt": shortest_path_tree}


def tree_edges(paths: Paths, root: int, members: Sequence[int] | NDArray[np.int64], kind: str = "nearest") -> Edges:
    """The (parent, child) links of a tree from the root to the members.

    `join`: members join in the given order, each at its nearest member so far (SemCast §4);
    `join-broker`: each at its nearest broker of the tree, as a DisseminationTree does;
    `nearest`: the member nearest to the tree joins next (at most twice the least cost);
    `spt`: the union of the shortest paths; `steiner`: a central approximation over the metric
    closure (SemCast-O); `starts`: as `nearest`, but grown from the member where that is cheapest;
    `best`: the cheapest of the last four; `cheaper`: of `nearest` and `spt`, quickly.

    >>> from narrowcast.model import Topology
    >>> from narrowcast.network.paths import shortest_paths
    >>> star = shortest_paths(Topology([(0, 1), (0, 2), (0, 3), (2, 3)], cost=[1, 3, 3, 1]))
    >>> tree_edges(star, 0, [2, 3], "spt"), tree_edges(star, 0, [2, 3], "nearest")
    ([(0, 2), (0, 3)], [(0, 2), (2, 3)])
    """
    return [(u, v) for u, v in tree(paths, root, members, kind)[0].tolist()]


def tree(
    paths: Paths, root: int, members: Sequence[int] | NDArray[np.int64], kind: str = "nearest"
) -> tuple[NDArray[np.int32], float]:
    """The same as an array, links sorted, with the sum of their costs."""
    wanted = np.asarray(members, np.int64)
    if wanted.size and not np.isfinite(paths.distance[root, wanted]).all():
        far = int(wanted[np.argmax(~np.isfinite(paths.distance[root, wanted]))])
        raise InputError(
            f"no path joins brokers {root} and {far}", name="topology", hint="add a link between the parts"
        )
    if kind in _SEVERAL:
        return min((tree(paths, root, wanted, each) for each in _SEVERAL[kind]), key=lambda found: found[1])
    if kind in ("steiner", "starts"):
        edges = _steiner(paths, root, wanted) if kind == "steiner" else _grown_elsewhere(paths, root, wanted)
        return np.array(edges, np.int32).reshape(-1, 2), edges_cost(paths, edges)
    parent = np.full(paths.n_brokers, OUTSIDE, np.int32)
    cost = _KERNELS[kind](paths.distance, paths.next_hop, root, wanted, parent)
    inside = np.flatnonzero(parent >= 0)
    links = np.column_stack((parent[inside], inside.astype(np.int32)))
    return links[np.argsort(links[:, 0], kind="stable")], float(cost)


def edges_cost(paths: Paths, edges: Sequence[tuple[int, int]]) -> float:
    """The sum of the links' costs."""
    return float(sum(paths.links[u, v][0] for u, v in edges))


def _steiner(paths: Paths, root: int, members: NDArray[np.int64]) -> Edges:
    import rustworkx as rx

    terminals = sorted({root, *members.tolist()})
    if len(terminals) == 1:
        return []
    return _rooted(sorted(rx.steiner_tree(paths.graph, terminals, float).edge_list()), root)


def _grown_elsewhere(paths: Paths, root: int, members: NDArray[np.int64]) -> Edges:
    """`nearest_first` from the member, of the first few, where the tree to all others and the root is cheapest."""
    ends = np.unique(np.append(members, root))
    parent, best, least = np.full(paths.n_brokers, OUTSIDE, np.int32), Edges(), np.inf
    for start in members[:MOST_STARTS].tolist():
        parent[:] = OUTSIDE
        cost = nearest_first(paths.distance, paths.next_hop, start, ends, parent)
        if cost < least:
            inside = np.flatnonzero(parent >= 0)
            least, best = cost, list(zip(parent[inside].tolist(), inside.tolist(), strict=True))
    return _rooted(best, root)


def _rooted(links: Iterable[tuple[int, int]], root: int) -> Edges:
    """The links of an unrooted tree, each from the root outward."""
    around: dict[int, list[int]] = {}
    for u, v in links:
        around.setdefault(u, []).append(v)
        around.setdefault(v, []).append(u)
    edges, seen, front = [], {root}, [root]
    while front:
        u = front.pop()
        for v in around.get(u, ()):
            if v not in seen:
                seen.add(v)
                edges.append((u, v))
                front.append(v)
    return sorted(edges)
