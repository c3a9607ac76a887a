"""The bounding polygon of some boxes: few boxes around them all, and how much their union holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from narrowcast.jit import jit
from narrowcast.plans.queries.kernels.box_sizes import box_size


@jit
def _within(low: Any, high: Any, outer_low: Any, outer_high: Any) -> bool:
    within = True
    for j in range(low.size):
        within &= low[j] >= outer_low[j] and high[j] <= outer_high[j]
    return within


@jit
def _outermost(low: Any, high: Any) -> Any:
    """The places of the boxes that lie in no other; of those that are the same the first stays."""
    n = low.shape[0]
    keep = np.ones(n, np.bool_)
    for i in range(n):
        for h in range(n):
            inside = h != i and _within(low[i], high[i], low[h], high[h])
            if inside and (h < i or not _within(low[h], high[h], low[i], high[i])):
                keep[i] = False
                break
    return np.flatnonzero(keep)


@jit
def _waste(low: Any, high: Any, size: Any, a: int, b: int, measure: Any, at_low: Any, at_high: Any) -> Any:
    """What the bounding box of a and b would add to the two."""
    real, overlap = True, 0.0
    for j in range(at_low.size):
        at_low[j], at_high[j] = max(low[a, j], low[b, j]), min(high[a, j], high[b, j])
        if at_low[j] > at_high[j]:
            real = False
    if real:
        overlap = box_size(at_low, at_high, measure)
    for j in range(at_low.size):
        at_low[j], at_high[j] = min(low[a, j], low[b, j]), max(high[a, j], high[b, j])
    return box_size(at_low, at_high, measure) - size[a] - size[b] + overlap


@jit
def _least(waste: Any, alive: Any, a: int, top: int) -> int:
    """Whom box a wastes least with, the first of equals; -1 if there is nobody."""
    best, found = np.inf, -1
    for b in range(top):
        if b != a and alive[b] and waste[a, b] < best:
            best, found = waste[a, b], b
    return found


@jit
def polygon(low: Any, high: Any, measure: Any, most: int) -> Any:
    """At most `most` boxes around all of these: lows and highs, in the order in which they came to be.

    While there are more, the two boxes whose bounding box wastes least become one, and what lies in it goes.
    Each row of the table of waste remembers its least: O(n²) sizes, and O(n) or so a step.
    """
    first = _outermost(low, high)
    n, d = first.size, low.shape[1]
    if n <= most:
        return low[first], high[first]
    lows, highs = np.empty((2 * n, d)), np.empty((2 * n, d))
    lows[:n], highs[:n] = low[first], high[first]
    size, alive = np.zeros(2 * n), np.zeros(2 * n, np.bool_)
    alive[:n] = True
    for a in range(n):
        size[a] = box_size(lows[a], highs[a], measure)
    at_low, at_high = np.empty(d), np.empty(d)
    waste, least = np.full((2 * n, 2 * n), np.inf), np.full(2 * n, -1)
    for a in range(n):
        for b in range(n):
            if b != a:
                waste[a, b] = _waste(lows, highs, size, a, b, measure, at_low, at_high)
        least[a] = _least(waste, alive, a, n)
    left, top = n, n
    while left > most:
        best, i = np.inf, -1
        for a in range(top):
            if alive[a] and least[a] >= 0 and waste[a, least[a]] < best:
                best, i = waste[a, least[a]], a
        if i < 0:  # sizes without an end have no least waste: the first two
            i = np.flatnonzero(alive[:top])[0]
            least[i] = np.flatnonzero(alive[:top])[1]
        j = least[i]
        for axis in range(d):
            lows[top, axis] = min(lows[i, axis], lows[j, axis])
            highs[top, axis] = max(highs[i, axis], highs[j, axis])
        for a in range(top):
            if alive[a] and (a in (i, j) or _within(lows[a], highs[a], lows[top], highs[top])):
                alive[a] = False
                left -= 1
        size[top] = box_size(lows[top], highs[top], measure)
        alive[top] = True
        left += 1
        for a in range(top):
            if alive[a]:
                waste[top, a] = waste[a, top] = _waste(lows, highs, size, top, a, measure, at_low, at_high)
        top += 1
        for a in range(top):
            if not alive[a]:
                continue
            if a == top - 1 or least[a] < 0 or not alive[least[a]]:
                least[a] = _least(waste, alive, a, top)
            elif waste[a, top - 1] < waste[a, least[a]]:
                least[a] = top - 1
    kept = np.flatnonzero(alive[:top])
    return lows[kept], highs[kept]


@jit
def _union(low: Any, high: Any, measure: Any) -> float:
    """How much the union of few boxes holds, by inclusion and exclusion: 2^n terms, right for shared borders too."""
    n, d = low.shape
    at_low, at_high = np.empty(d), np.empty(d)
    total = 0.0
    for chosen in range(1, 1 << n):
        sign, real = -1.0, True
        at_low[:], at_high[:] = -np.inf, np.inf
        for i in range(n):
            if chosen >> i & 1:
                sign = -sign
                for j in range(d):
                    at_low[j], at_high[j] = max(at_low[j], low[i, j]), min(at_high[j], high[i, j])
        for j in range(d):
            if at_low[j] > at_high[j]:
                real = False
        if real:
            total += sign * box_size(at_low, at_high, measure)
    return max(total, 0.0)


@jit
def polygon_sent(low: Any, high: Any, measure: Any, most: int) -> Any:
    """How many boxes the polygon has, and how much their union holds."""
    lows, highs = polygon(low, high, measure, most)
    return lows.shape[0], _union(lows, highs, measure)
