"""The best partition by dynamic programming over subsets (Crespo et al., §6.1, their Partition Algorithm)."""

from __future__ import annotations

from typing import Any

import numpy as np

from narrowcast.jit import jit


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
def _useful(cost: Any, n: int) -> Any:
    """Sets that may be in a best partition, grouped by their lowest query: (offsets, masks).

    A set that costs more than a part of it with the rest of its queries alone is in none.
    """
    least = cost.copy()  # of a set: the best of it and its parts with single queries
    keep = np.zeros(cost.size, np.bool_)
    offsets = np.zeros(n + 1, np.int64)
    for s in range(1, cost.size):
        for q in range(n):
            if s >> q & 1 and s != 1 << q:
                least[s] = min(least[s], least[s ^ (1 << q)] + cost[1 << q])
        # A little more is kept than need be, so that rounding drops nothing.
        keep[s] = cost[s] <= least[s] + 1e-12 * abs(least[s])
        if keep[s]:
            offsets[_lowest(s) + 1] += 1
    for q in range(n):
        offsets[q + 1] += offsets[q]
    at, masks = offsets.copy(), np.empty(offsets[n], np.int64)
    for s in range(1, cost.size):
        if keep[s]:
            q = _lowest(s)
            masks[at[q]] = s
            at[q] += 1
    return offsets, masks


@jit
def _lowest(s: int) -> int:
    q = 0
    while not s >> q & 1:
        q += 1
    return q


@jit
def _subsets(s: int, n: int) -> int:
    total = 1
    for q in range(n):
        total <<= s >> q & 1
    return total


@jit
def partition(cost: Any, n: int) -> Any:
    """The least total cost and its sets as bit masks, given the cost of every subset.

    The set that holds a remainder's lowest query is chosen first, so no partition is tried twice. Only
    useful sets are chosen and only remainders that they can leave are solved. Where a remainder has fewer
    subsets than there are useful sets, its subsets are tried instead: O(3^n) at worst.
    """
    offsets, masks = _useful(cost, n)
    full = cost.size - 1
    reached = np.zeros(cost.size, np.bool_)
    reached[full] = True
    for s in range(full, 0, -1):  # a remainder is a smaller number than what it remains of
        if reached[s]:
            q = _lowest(s)
            rest = s ^ (1 << q)
            if _subsets(rest, n) < offsets[q + 1] - offsets[q]:
                t = rest
                while True:
                    reached[rest ^ t] = True
                    if t == 0:
                        break
                    t = (t - 1) & rest
                continue
            for i in range(offsets[q], offsets[q + 1]):
                if masks[i] & s == masks[i]:
                    reached[s ^ masks[i]] = True
    best, choice = np.zeros(cost.size), np.zeros(cost.size, np.int32)
    for s in range(1, cost.size):
        if not reached[s]:
            continue
        least, q = np.inf, _lowest(s)
        rest = s ^ (1 << q)
        if _subsets(rest, n) < offsets[q + 1] - offsets[q]:
            t = rest
            while True:
                value = cost[s ^ rest ^ t] + best[rest ^ t]
                if value < least:
                    least, choice[s] = value, s ^ rest ^ t
                if t == 0:
                    break
                t = (t - 1) & rest
            best[s] = least
            continue
        for i in range(offsets[q], offsets[q + 1]):
            t = masks[i]
            if t & s == t:
                value = cost[t] + best[s ^ t]
                if value < least:
                    least, choice[s] = value, t
        best[s] = least
    sets = np.empty(n, np.int64)
    m, s = 0, full
    while s > 0:
        sets[m] = choice[s]
        s ^= choice[s]
        m += 1
    return best[full], sets[:m].copy()
