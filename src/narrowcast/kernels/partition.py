"""The best partition by dynamic programming over subsets (Crespo et al., §6.1, their Partition Algorithm)."""

from __future__ import annotations

from typing import Any

import numpy as np

from narrowcast.kernels._jit import jit


@jit
def subset_boxes(low: Any, high: Any) -> Any:
    """Bounding boxes of every subset, by bit mask. The empty one stays at infinity."""
    n, d = low.shape
    lows, highs = np.full((1 << n, d), np.inf), np.full((1 << n, d), -np.inf)
    for i in range(n):
        for rest in range(1 << i):
            for j in range(d):
                lows[rest | (1 << i), j] = min(lows[rest, j], low[i, j])
                highs[rest | (1 << i), j] = max(highs[rest, j], high[i, j])
    return lows, highs


@jit
def partition(cost: Any) -> Any:
    """The least total cost and its sets as bit masks, given the cost of every subset. O(3^n).

    The set that holds a subset's lowest query is chosen first, so no partition is tried twice.
    """
    total = cost.size
    best, choice = np.zeros(total), np.zeros(total, np.int64)
    for s in range(1, total):
        lowest = s & -s
        rest = s ^ lowest
        least, chosen = np.inf, s
        t = rest
        while True:
            value = cost[t | lowest] + best[rest ^ t]
            if value < least:
                least, chosen = value, t | lowest
            if t == 0:
                break
            t = (t - 1) & rest
        best[s], choice[s] = least, chosen
    masks = np.empty(64, np.int64)
    m, s = 0, total - 1
    while s > 0:
        masks[m] = choice[s]
        s ^= choice[s]
        m += 1
    return best[total - 1], masks[:m].copy()
