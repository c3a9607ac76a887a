"""Where two placements of the same price can be exchanged piece by piece."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit
from narrowcast.plans.filters.kernels.core import Core

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@jit
def pieces(core: Core, a: Bools, b: Bools) -> tuple[Ints, Ints]:
    """(piece, more): the piece each vertex belongs to (−1: none), and b's filters minus a's in it.

    A piece starts where the same flow arrives under both and only one has a filter, and ends at
    filters that both have. Outside it nothing changes when a's filters in it are replaced by b's;
    if both placements are cheapest at one price, so is every exchange of pieces. O(n).
    """
    n = core.parent.size
    piece = np.full(n, -1, np.int64)
    more = np.zeros(n, np.int64)
    same = np.ones(n, np.bool_)
    for v in range(n):
        u = core.parent[v]
        if u >= 0:
            if a[u] != b[u]:
                same[v] = False
            elif not a[u]:
                same[v] = same[u]
        if not same[v]:
            piece[v] = piece[u]
        elif a[v] != b[v]:
            piece[v] = v
        if piece[v] >= 0:
            more[piece[v]] += int(b[v]) - int(a[v])
    return piece, more
