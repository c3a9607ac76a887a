"""All shortest paths of an overlay, as matrices that kernels can walk."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from narrowcast.errors import InputError
from narrowcast.model.topology import Topology
from narrowcast.network.kernels.paths import sum_along

MAX_BROKERS = 5_000  # four matrices of n² numbers: 700 MB at this size

Matrix = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Paths:
    """The shortest paths between all brokers of a topology, by cost or by delay.

    `distance[u, v]` is the least amount of what they are shortest by (inf where no path is),
    `cost` and `delay` are the two sums along the same path, and `next_hop[u, v]` is the broker after
    u on it (−1 at v itself and where no path is). Paths to one broker form a tree.
    """

    topology: Topology
    distance: Matrix
    next_hop: NDArray[np.int32]
    cost: Matrix
    delay: Matrix

    @property
    def n_brokers(self) -> int:
        return self.topology.n_brokers

    @cached_property
    def links(self) -> dict[tuple[int, int], tuple[float, float]]:
        """(cost, delay) of the link between two neighbours, in both directions."""
        ends, costs, delays = self.topology.edges.tolist(), self.topology.cost.tolist(), self.topology.delay.tolist()
        one_way = {(u, v): (c, d) for (u, v), c, d in zip(ends, costs, delays, strict=True)}
        return one_way | {(v, u): amounts for (u, v), amounts in one_way.items()}

    @cached_property
    def graph(self) -> Any:
        """The overlay as a rustworkx graph, its link costs as weights."""
        import rustworkx as rx

        graph = rx.PyGraph(multigraph=False)
        graph.add_nodes_from(range(self.n_brokers))
        ends = self.topology.edges.tolist()
        graph.add_edges_from([(u, v, c) for (u, v), c in zip(ends, self.topology.cost.tolist(), strict=True)])
        return graph

    def path(self, u: int, v: int) -> list[int]:
        """The brokers from u to v, both included; refuses a pair that no path joins."""
        if not np.isfinite(self.distance[u, v]):
            raise InputError(f"no path joins brokers {u} and {v}", name="topology", hint="add a link between the parts")
        walk = [u]
        while walk[-1] != v:
            walk.append(int(self.next_hop[walk[-1], v]))
        return walk


def shortest_paths(topology: Topology, by: Literal["cost", "delay"] = "cost") -> Paths:
    """All shortest paths, by cost or by delay: one Dijkstra per broker.

    Good up to a few thousand brokers (2,000 take about two seconds). O(n · links · log n) time,
    O(n²) memory.

    >>> ring = Topology([(0, 1), (1, 2), (2, 3), (3, 0)], cost=[1, 1, 1, 5], delay=[1, 1, 1, 1])
    >>> shortest_paths(ring).path(0, 3), shortest_paths(ring, by="delay").path(0, 3)
    ([0, 1, 2, 3], [0, 3])
    >>> float(shortest_paths(ring).delay[0, 3])
    3.0
    """
    n = topology.n_brokers
    if n > MAX_BROKERS:
        raise InputError(
            f"topology must have at most {MAX_BROKERS} brokers to keep all shortest paths, got {n}",
            name="topology",
            got=n,
        )
    weight = topology.cost if by == "cost" else topology.delay
    distance, before = _dijkstra(topology, weight)
    # The broker before u on the path v → u is the one after u on the path u → v.
    next_hop = np.ascontiguousarray(np.where(before < 0, -1, before).T.astype(np.int32))
    offsets, neighbours, link = adjacency(topology)
    costs = distance if by == "cost" else sum_along(next_hop, offsets, neighbours, topology.cost[link])
    delays = distance if by == "delay" else sum_along(next_hop, offsets, neighbours, topology.delay[link])
    for array in (distance, next_hop, costs, delays):
        array.flags.writeable = False
    return Paths(topology, distance, next_hop, costs, delays)


def adjacency(topology: Topology) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """(offsets, neighbours, link): links of u at `offsets[u]:offsets[u + 1]`, by neighbour."""
    u, v = topology.edges[:, 0], topology.edges[:, 1]
    ends, others = np.concatenate([u, v]), np.concatenate([v, u])
    order = np.lexsort((others, ends))
    offsets = np.zeros(topology.n_brokers + 1, np.int64)
    np.cumsum(np.bincount(ends, minlength=topology.n_brokers), out=offsets[1:])
    link = np.concatenate([np.arange(len(u)), np.arange(len(u))])
    return offsets, others[order], link[order]


def _dijkstra(topology: Topology, weight: NDArray[np.float64]) -> tuple[Matrix, NDArray[np.int32]]:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    n = topology.n_brokers
    u, v = topology.edges[:, 0], topology.edges[:, 1]
    # A sparse matrix takes an explicit 0 for a missing link here, so a delay of 0 becomes the least float.
    positive = np.maximum(weight, np.finfo(np.float64).tiny)
    graph = csr_array((positive, (u, v)), shape=(n, n))
    if n == 0:
        return np.zeros((0, 0)), np.zeros((0, 0), np.int32)
    distance, before = dijkstra(graph, directed=False, return_predecessors=True)
    return np.ascontiguousarray(distance), before
