"""Filters at a price each: the placement with the least cost plus price, in O(n log n) at any depth.

Let g(v, x) be the least cost below v when flow x arrives at v (the paper's D(v, p) and T(v, ·, p)
without the count, x = f(p)). With a filter at v the flow below does not depend on x, so
g(v, x) = min(N(v, x), Y(v)) with N(v, x) = Σ_ch weight·x + g(ch, x): sums and minima of concave
rising functions with straight pieces. Each vertex adds at most one bend, the flow above which a
filter there pays, and removes every bend beyond it. Bends sit in two meldable heaps per subtree:
f falls towards the leaves, so bends at or below f(v) are never asked for again above v and leave
from the low end; the others leave from the high end when a filter caps them. Each enters and
leaves once. The paper's table of (vertex, ancestor) states is never built.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit
from narrowcast.plans.filters.kernels.core import Core

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Heap = NDArray[np.int32]

# A filter must pay by more than rounding.
EPSILON = 1e-12


@jit
def _meld(left: Heap, right: Heap, key: Floats, sign: float, a: int, b: int) -> int:
    """Meld two skew heaps (least sign·key on top), top down."""
    if a < 0:
        return b
    if b < 0:
        return a
    if sign * key[b] < sign * key[a]:
        a, b = b, a
    top = a
    while True:
        c = right[a]
        right[a] = left[a]
        if c < 0:
            left[a] = b
            return top
        if sign * key[b] < sign * key[c]:
            left[a] = b
            a, b = b, c
        else:
            left[a] = c
            a = c


@jit
def bends(core: Core, price: Floats) -> Floats:
    """For each vertex the arriving flow above which a filter there pays (inf: never)."""
    n = core.parent.size
    flow = core.flow
    bend = np.full(n, np.inf)
    drop = np.zeros(n)  # by how much the slope falls at the bend
    gone = np.zeros(n, np.bool_)
    low_l, low_r = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    high_l, high_r = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    low, high = np.full(n, -1, np.int32), np.full(n, -1, np.int32)
    # g is slope·x + base left of its first bend (0) and right of its last one (1).
    slope0, base0 = core.bare.copy(), np.zeros(n)
    slope1, base1 = core.bare.copy(), np.zeros(n)
    filtered = price + core.bare_flow
    for v in range(n - 1, -1, -1):
        top = low[v]
        while top >= 0 and (gone[top] or bend[top] <= flow[v]):
            if not gone[top]:
                gone[top] = True
                slope0[v] -= drop[top]
                base0[v] += drop[top] * bend[top]
            top = _meld(low_l, low_r, bend, 1.0, low_l[top], low_r[top])
        Y = filtered[v]
        if core.can[v] and slope0[v] * flow[v] + base0[v] > Y:
            bend[v] = -np.inf
            top, high[v] = -1, -1
            slope0[v], base0[v], slope1[v], base1[v] = 0.0, Y, 0.0, Y
        elif core.can[v]:
            end = high[v]
            while end >= 0 and (gone[end] or slope1[v] * bend[end] + base1[v] >= Y):
                if not gone[end]:
                    gone[end] = True
                    slope1[v] += drop[end]
                    base1[v] -= drop[end] * bend[end]
                end = _meld(high_l, high_r, bend, -1.0, high_l[end], high_r[end])
            at = (Y - base1[v]) / slope1[v] if slope1[v] > 0 else np.inf
            if at < flow[0]:
                bend[v], drop[v] = at, slope1[v]
                slope1[v], base1[v] = 0.0, Y
                top = _meld(low_l, low_r, bend, 1.0, top, v)
                end = _meld(high_l, high_r, bend, -1.0, end, v)
            high[v] = end
        u = core.parent[v]
        if u < 0:
            break
        weight = core.weight[v]
        filtered[u] += (weight + slope0[v]) * flow[v] + base0[v]
        slope0[u] += weight + slope0[v]
        base0[u] += base0[v]
        slope1[u] += weight + slope1[v]
        base1[u] += base1[v]
        low[u] = _meld(low_l, low_r, bend, 1.0, low[u], top)
        high[u] = _meld(high_l, high_r, bend, -1.0, high[u], high[v])
    return bend


@jit
def priced(core: Core, price: Floats) -> Bools:
    """The placement with the least Σ weight · flow + Σ price, with few filters among equals."""
    bend = bends(core, price)
    n = bend.size
    chosen = np.zeros(n, np.bool_)
    arriving = np.empty(n)
    for v in range(n):
        u = core.parent[v]
        arriving[v] = core.flow[v] if u < 0 or chosen[u] else arriving[u]
        chosen[v] = core.can[v] and arriving[v] > bend[v] * (1.0 + EPSILON)
    return chosen
