"""A walk order for trees in which few partial results are alive at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit

Ints = NDArray[np.int64]


@jit
def preorder(order: Ints, parent: Ints) -> tuple[Ints, Ints, Ints]:
    """(vertex, up, sizes): a preorder in which the child with the largest subtree comes last.

    `vertex[i]` is the i-th vertex, `up[i]` the place of its parent (−1 at the root), always < i,
    and its subtree fills the places i to i + sizes[i] − 1.
    Going through it backwards meets the largest child first, so at any time the path to the root
    has at most log2(n) vertices with some children done and some not. O(n), no recursion.
    """
    n = order.size
    size = np.ones(n, np.int64)
    for i in range(n - 1, 0, -1):
        size[parent[order[i]]] += size[order[i]]
    heavy = np.full(n, -1, np.int64)
    for i in range(1, n):
        v = order[i]
        u = parent[v]
        if heavy[u] < 0 or size[v] > size[heavy[u]]:
            heavy[u] = v
    place = np.zeros(n, np.int64)
    free = np.ones(n, np.int64)
    for i in range(1, n):
        v = order[i]
        u = parent[v]
        if v == heavy[u]:
            place[v] = place[u] + size[u] - size[v]
        else:
            place[v] = free[u]
            free[u] += size[v]
        free[v] = place[v] + 1
    vertex = np.empty(n, np.int64)
    sizes = np.empty(n, np.int64)
    up = np.full(n, -1, np.int64)
    for i in range(n):
        v = order[i]
        vertex[place[v]] = v
        sizes[place[v]] = size[v]
        if i > 0:
            up[place[v]] = place[parent[v]]
    return vertex, up, sizes
