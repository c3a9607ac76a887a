"""The part of a tree where filters can matter, and the cost of placements on it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Core(NamedTuple):
    """The vertices with a possible host in their subtree, in preorder (parents first).

    Everything else hangs below them in subtrees without hosts: every link there carries the flow
    of its top, so `bare[v]` (Σ weight) and `bare_flow[v]` (Σ weight · f of the top) say all.
    """

    vertex: Ints  # place in the tree's preorder
    parent: Ints  # place in the core, −1 at the root
    flow: Floats
    weight: Floats  # of one unit of flow on the link into v
    bare: Floats
    bare_flow: Floats
    can: Bools


@jit
def core_of(up: Ints, flow: Floats, weight: Floats, can: Bools) -> Core:
    """Cut off the subtrees without hosts. O(n)."""
    n = up.size
    alive = can.copy()
    alive[0] = True
    z = weight.copy()
    bare = np.zeros(n)
    bare_flow = np.zeros(n)
    for v in range(n - 1, 0, -1):
        u = up[v]
        if alive[v]:
            alive[u] = True
        else:
            z[v] += bare[v]
            bare[u] += z[v]
            bare_flow[u] += z[v] * flow[v]
    size = 0
    for v in range(n):
        size += 1 if alive[v] else 0
    vertex = np.empty(size, np.int64)
    size = 0
    for v in range(n):
        if alive[v]:
            vertex[size] = v
            size += 1
    place = np.full(n, -1, np.int64)
    parent = np.full(vertex.size, -1, np.int64)
    for i in range(vertex.size):
        place[vertex[i]] = i
        if i > 0:
            parent[i] = place[up[vertex[i]]]
    return Core(vertex, parent, flow[vertex], weight[vertex], bare[vertex], bare_flow[vertex], can[vertex])


@jit
def core_cost(core: Core, chosen: Bools) -> float:
    """Sum of weight · f(A(v)) over all links of the tree, filters at no price."""
    arriving = np.empty(chosen.size)
    total = 0.0
    for v in range(chosen.size):
        u = core.parent[v]
        if u < 0:
            arriving[v] = core.flow[v]
        else:
            arriving[v] = core.flow[v] if chosen[u] else arriving[u]
            total += core.weight[v] * arriving[v]
        total += core.bare_flow[v] if chosen[v] else core.bare[v] * arriving[v]
    return total
