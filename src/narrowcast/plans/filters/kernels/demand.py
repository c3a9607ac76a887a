"""The flow every vertex needs: the size of the union of the items wanted below it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@jit
def flow_of(parent: Ints, leaf: Ints, item: Ints, size: Floats) -> Floats:
    """f(v). Pairs are sorted by item: each item climbs from its leaves until it meets itself.

    O(vertices in the union of the items' paths). Items add up in one order everywhere, so f never
    rises towards the leaves, not even by rounding.
    """
    flow = np.zeros(parent.size)
    seen = np.full(parent.size, -1, np.int64)
    for i in range(leaf.size):
        v = leaf[i]
        while v >= 0 and seen[v] != item[i]:
            seen[v] = item[i]
            flow[v] += size[item[i]]
            v = parent[v]
    return flow
