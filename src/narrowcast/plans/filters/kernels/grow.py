"""Add filters one by one, the most important first."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit
from narrowcast.plans.filters.kernels.core import Core

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@jit
def grow(core: Core, chosen: Bools, adds: int) -> tuple[Ints, Floats]:
    """(added, saving): each time the vertex whose filter saves most, while that is anything. O(adds · n)."""
    n = core.parent.size
    mask = chosen.copy()
    arriving = np.empty(n)
    added = np.empty(adds, np.int64)
    saving = np.empty(adds)
    for done in range(adds):
        Z = core.bare.copy()
        C = core.bare_flow.copy()
        for v in range(n):
            u = core.parent[v]
            arriving[v] = core.flow[v] if u < 0 or mask[u] else arriving[u]
        best, at = 0.0, -1
        for v in range(n - 1, -1, -1):
            gain = arriving[v] * Z[v] - C[v]
            if core.can[v] and not mask[v] and gain > best:
                best, at = gain, v
            u = core.parent[v]
            if u >= 0:
                z = core.weight[v] + (0.0 if mask[v] else Z[v])
                Z[u] += z
                C[u] += core.flow[v] * z
        if at < 0:
            return added[:done], saving[:done]
        mask[at] = True
        added[done], saving[done] = at, best
    return added, saving
