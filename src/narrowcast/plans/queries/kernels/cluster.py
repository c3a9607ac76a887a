"""Clusters of queries that might ever gain together (Crespo et al., §6.4.1).

The components are grown one after another: a query that joins one leaves the tree, so that no pair
inside a dense cluster is looked at twice. The result is that of union-find over all pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from narrowcast.jit import jit
from narrowcast.plans.queries.kernels.box_sizes import box_sizes
from narrowcast.plans.queries.kernels.box_tree import LEAF, SetBoxes, build, least_union, union_size, update


@jit
def _worth(k: Any, size_a: float, size_b: float, grow_a: float, grow_b: float, gain: bool) -> Any:
    """Below zero, the two stay apart.

    The paper's heuristic is K_M + K_T·min(S_1, S_2) − K_U·(2·S_12 − S_1 − S_2); the gain of merging just
    these two has S_1 + S_2 − S_12 in place of the minimum. Both are monotone in floating point too.
    """
    shared = size_a - grow_b if gain else min(size_a, size_b)
    return k[0] + (k[1] * shared - k[2] * (grow_a + grow_b))


@jit
def _neighbours(tree: Any, sets: Any, a: int, k: Any, measure: Any, gain: bool, low: Any, high: Any, found: Any) -> int:
    """Living slots that pass the test with slot a, into `found`; returns how many."""
    span = np.empty((128, 3), np.int64)
    span[0, 0], span[0, 1], span[0, 2] = 0, 0, tree.order.size
    top, total = 1, 0
    while top > 0:
        top -= 1
        node, s, e = span[top, 0], span[top, 1], span[top, 2]
        if tree.slot_min[node] < 0:
            continue
        union = least_union(tree, sets, a, node, measure, low, high)
        largest = tree.size_max[node]
        if _worth(k, sets.size[a], largest, union - sets.size[a], max(0.0, union - largest), gain) < 0.0:
            continue
        if e - s <= LEAF:
            for at in range(s, e):
                b = tree.order[at]
                if sets.alive[b]:
                    union = union_size(sets, a, b, measure, low, high)
                    if _worth(k, sets.size[a], sets.size[b], union - sets.size[a], union - sets.size[b], gain) >= 0.0:
                        found[total] = b
                        total += 1
            continue
        mid = (s + e) // 2
        span[top, 0], span[top, 1], span[top, 2] = 2 * node + 1, s, mid
        span[top + 1, 0], span[top + 1, 1], span[top + 1, 2] = 2 * node + 2, mid, e
        top += 2
    return total


@jit
def cluster(low: Any, high: Any, k: Any, measure: Any, gain: bool) -> Any:
    """The smallest query of each query's cluster. `k` is (K_M, K_T, K_U)."""
    n, d = low.shape
    sets = SetBoxes(low, high, box_sizes(low, high, measure), np.ones(n, np.int64), np.ones(n, np.bool_))
    scratch_low, scratch_high = np.empty(d), np.empty(d)
    label = np.full(n, -1)
    if n == 0:
        return label
    tree = build(sets)
    queue, found = np.empty(n, np.int64), np.empty(n, np.int64)
    for first in range(n):
        if label[first] >= 0:
            continue
        label[first] = first
        sets.alive[first] = False
        update(tree, sets, first)
        queue[0] = first
        at, end = 0, 1
        while at < end:
            total = _neighbours(tree, sets, queue[at], k, measure, gain, scratch_low, scratch_high, found)
            at += 1
            for i in range(total):
                b = found[i]
                label[b] = first
                sets.alive[b] = False
                update(tree, sets, b)
                queue[end] = b
                end += 1
    return label
