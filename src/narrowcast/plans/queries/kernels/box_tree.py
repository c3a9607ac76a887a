"""A tree over sets of queries that bounds from above what merging with anything below a node can gain.

Sets stay at their leaf while they grow: a merged box takes the place of one of its parts, so it is
still near its neighbours, and the bounds on the way up are made exact again after every change.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from narrowcast.jit import jit
from narrowcast.plans.queries.kernels.box_sizes import AREA, HISTOGRAM, box_size
from narrowcast.plans.queries.kernels.kd_order import kd_order, node_capacity

LEAF = 32


class SetBoxes(NamedTuple):
    """The sets being merged: slot i starts as query i; a merged set keeps the smaller slot."""

    low: Any
    high: Any
    size: Any
    count: Any  # queries inside
    alive: Any


class BoxTree(NamedTuple):
    """`order` lists the slots in k-d order; per node, over its living slots: see `_refresh`."""

    order: Any
    position: Any
    low_max: Any
    high_min: Any
    size_max: Any
    count_min: Any
    slot_min: Any  # −1: nothing lives below


@jit
def build(sets: Any) -> Any:
    """A tree over the living slots. O(n log² n)."""
    d = sets.low.shape[1]
    slots = np.empty(sets.alive.size, np.int64)
    coords = np.empty((sets.alive.size, 2 * d))
    n = 0
    for i in range(sets.alive.size):
        if sets.alive[i]:
            slots[n] = i
            for j in range(d):
                coords[n, j], coords[n, d + j] = sets.low[i, j], sets.high[i, j]
            n += 1
    order = kd_order(coords[:n], LEAF)
    position = np.full(sets.alive.size, -1)
    for at in range(n):
        order[at] = slots[order[at]]
        position[order[at]] = at
    nodes = node_capacity(n, LEAF)
    tree = BoxTree(
        order,
        position,
        np.empty((nodes, d)),
        np.empty((nodes, d)),
        np.empty(nodes),
        np.empty(nodes, np.int64),
        np.full(nodes, -1),
    )
    # Parents come before their children, so backwards is children first.
    span = np.zeros((nodes, 2), np.int64)
    span[0, 1] = n
    for node in range(nodes // 2):
        s, e = span[node, 0], span[node, 1]
        if e - s > LEAF:
            mid = (s + e) // 2
            span[2 * node + 1, 0], span[2 * node + 1, 1] = s, mid
            span[2 * node + 2, 0], span[2 * node + 2, 1] = mid, e
    for node in range(nodes - 1, -1, -1):
        if span[node, 1] > span[node, 0]:
            _refresh(tree, sets, node, span[node, 0], span[node, 1])
    return tree


@jit
def _refresh(tree: Any, sets: Any, node: int, s: int, e: int) -> None:
    """Make a node's bounds exact again from its slots or its two children."""
    d = sets.low.shape[1]
    for j in range(d):
        tree.low_max[node, j], tree.high_min[node, j] = -np.inf, np.inf
    tree.size_max[node], tree.count_min[node], tree.slot_min[node] = 0.0, np.iinfo(np.int64).max, -1
    if e - s <= LEAF:
        for at in range(s, e):
            i = tree.order[at]
            if sets.alive[i]:
                _widen(tree, node, sets.low[i], sets.high[i], sets.size[i], sets.count[i], i)
        return
    for child in (2 * node + 1, 2 * node + 2):
        if tree.slot_min[child] >= 0:
            _widen(
                tree,
                node,
                tree.low_max[child],
                tree.high_min[child],
                tree.size_max[child],
                tree.count_min[child],
                tree.slot_min[child],
            )


@jit
def _widen(tree: Any, node: int, low: Any, high: Any, size: float, count: int, slot: int) -> None:
    for j in range(low.size):
        tree.low_max[node, j] = max(tree.low_max[node, j], low[j])
        tree.high_min[node, j] = min(tree.high_min[node, j], high[j])
    tree.size_max[node] = max(tree.size_max[node], size)
    tree.count_min[node] = min(tree.count_min[node], count)
    if tree.slot_min[node] < 0 or slot < tree.slot_min[node]:
        tree.slot_min[node] = slot


@jit
def update(tree: Any, sets: Any, slot: int) -> None:
    """After a set grew or died: refresh its leaf and everything above. O(log n)."""
    path = np.empty((64, 3), np.int64)
    at, node, s, e, depth = tree.position[slot], 0, 0, tree.order.size, 0
    while True:
        path[depth, 0], path[depth, 1], path[depth, 2] = node, s, e
        depth += 1
        if e - s <= LEAF:
            break
        mid = (s + e) // 2
        if at < mid:
            node, e = 2 * node + 1, mid
        else:
            node, s = 2 * node + 2, mid
    for back in range(depth - 1, -1, -1):
        _refresh(tree, sets, path[back, 0], path[back, 1], path[back, 2])


@jit
def least_union(tree: Any, sets: Any, a: int, node: int, measure: Any, low: Any, high: Any) -> float:
    """No union of set a with a set below the node is smaller than this.

    Every such union holds the box from min(low of a, greatest low) to max(high of a, least high);
    `low` and `high` are scratch. Interpolated histograms are monotone only up to rounding.
    """
    area = 1.0
    for j in range(low.size):
        low[j] = min(sets.low[a, j], tree.low_max[node, j])
        high[j] = max(sets.high[a, j], tree.high_min[node, j])
        area *= high[j] - low[j]
    if measure.kind == AREA:  # without the call: half of all the time otherwise
        return area
    size = box_size(low, high, measure)
    return size * (1.0 - 1e-9) if measure.kind == HISTOGRAM else size


@jit
def union_size(sets: Any, a: int, b: int, measure: Any, low: Any, high: Any) -> float:
    """The size of the bounding box of two sets; `low` and `high` are scratch."""
    area = 1.0
    for j in range(low.size):
        low[j] = min(sets.low[a, j], sets.low[b, j])
        high[j] = max(sets.high[a, j], sets.high[b, j])
        area *= high[j] - low[j]
    if measure.kind == AREA:
        return area
    return box_size(low, high, measure)


@jit
def union_sizes(sets: Any, a: int, measure: Any, low: Any, high: Any, sizes: Any) -> None:
    """`union_size` of set a with every living set, into `sizes`: one call, where a call costs more than an area."""
    lows, highs, alive = sets.low, sets.high, sets.alive
    for b in range(sizes.size):
        if not alive[b]:
            continue
        if measure.kind == AREA:
            area = 1.0
            for j in range(low.size):
                area *= max(highs[a, j], highs[b, j]) - min(lows[a, j], lows[b, j])
            sizes[b] = area
        else:
            sizes[b] = union_size(sets, a, b, measure, low, high)
