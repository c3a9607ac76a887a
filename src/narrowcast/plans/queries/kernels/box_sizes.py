"""How much data a closed box holds: by area, by a grid histogram, or by counting points.

All three are monotone: a box inside another is never larger. Everything that prunes relies on it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from narrowcast.jit import jit

AREA, HISTOGRAM, POINTS = 0, 1, 2
POINT_LEAF = 16


class Measure(NamedTuple):
    """What `box_size` needs, in few arrays: every one of them makes every kernel slower to compile.

    Histogram: `whole` is where each axis begins in `real` (d + 1) and the strides of the prefix sums (d);
    `real` holds the edges of every axis end to end, then the prefix sums. Points: `rows` holds the n
    points in k-d order, then each node's low corner, then each node's high corner; `whole` is (n, nodes).
    """

    kind: int
    whole: Any
    real: Any
    rows: Any


@jit
def _area(low: Any, high: Any) -> float:
    product = 1.0
    for j in range(low.size):
        product *= high[j] - low[j]
    return product


@jit
def _histogram(low: Any, high: Any, m: Any) -> float:
    """Signed sum over the 4^d corners around the box: prefix sums, linear inside a cell."""
    d = low.size
    at = np.empty((d, 4), np.int64)
    weight = np.empty((d, 4))
    for j in range(d):
        cuts = m.real[m.whole[j] : m.whole[j + 1]]
        for side in range(2):
            x = high[j] if side else low[j]
            x = min(max(x, cuts[0]), cuts[-1])
            cell = min(np.searchsorted(cuts, x, side="right"), cuts.size - 1) - 1
            part = (x - cuts[cell]) / (cuts[cell + 1] - cuts[cell])
            sign = 1.0 if side else -1.0
            at[j, 2 * side], weight[j, 2 * side] = cell, sign * (1.0 - part)
            at[j, 2 * side + 1], weight[j, 2 * side + 1] = cell + 1, sign * part
    total = 0.0
    for code in range(4**d):
        index, product, rest = m.whole[d], 1.0, code
        for j in range(d):
            digit = rest & 3
            rest >>= 2
            product *= weight[j, digit]
            index += at[j, digit] * m.whole[d + 1 + j]
        if product != 0.0:
            total += product * m.real[index]
    return max(total, 0.0)


@jit
def _count(low: Any, high: Any, m: Any) -> float:
    """Points inside the closed box, by the k-d tree. O(n^(1 − 1/d) + 1)."""
    n, d = m.whole[0], low.size
    lows, highs = n, n + m.whole[1]
    stack = np.empty((64, 3), np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = 0, 0, n
    top, total = (1 if n else 0), 0
    while top > 0:
        top -= 1
        node, s, e = stack[top, 0], stack[top, 1], stack[top, 2]
        apart, inside = False, True
        for j in range(d):
            if m.rows[lows + node, j] > high[j] or m.rows[highs + node, j] < low[j]:
                apart = True
            if m.rows[lows + node, j] < low[j] or m.rows[highs + node, j] > high[j]:
                inside = False
        if apart:
            continue
        if inside:
            total += e - s
        elif e - s <= POINT_LEAF:
            for i in range(s, e):
                keep = True
                for j in range(d):
                    keep &= low[j] <= m.rows[i, j] <= high[j]
                total += keep
        else:
            mid = (s + e) // 2
            stack[top, 0], stack[top, 1], stack[top, 2] = 2 * node + 1, s, mid
            stack[top + 1, 0], stack[top + 1, 1], stack[top + 1, 2] = 2 * node + 2, mid, e
            top += 2
    return float(total)


@jit
def box_size(low: Any, high: Any, m: Any) -> float:
    """The size of one closed box under a measure."""
    if m.kind == AREA:
        return _area(low, high)
    if m.kind == HISTOGRAM:
        return _histogram(low, high, m)
    return _count(low, high, m)


@jit
def box_sizes(low: Any, high: Any, m: Any) -> Any:
    """The size of each of (n, d) lows and highs."""
    sizes = np.empty(low.shape[0])
    for i in range(low.shape[0]):
        sizes[i] = box_size(low[i], high[i], m)
    return sizes


@jit
def node_boxes(points: Any, nodes: int) -> Any:
    """Bounding boxes of the k-d nodes over points already in k-d order: (nodes, d) lows and highs."""
    n, d = points.shape
    low = np.full((nodes, d), np.inf)
    high = np.full((nodes, d), -np.inf)
    span = np.zeros((nodes, 2), np.int64)
    span[0, 1] = n
    for node in range(nodes):
        s, e = span[node, 0], span[node, 1]
        for i in range(s, e):
            for j in range(d):
                low[node, j] = min(low[node, j], points[i, j])
                high[node, j] = max(high[node, j], points[i, j])
        if e - s > POINT_LEAF:
            mid = (s + e) // 2
            span[2 * node + 1, 0], span[2 * node + 1, 1] = s, mid
            span[2 * node + 2, 0], span[2 * node + 2, 1] = mid, e
    return low, high
