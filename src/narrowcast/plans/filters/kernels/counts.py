"""Who wants what, counted per (vertex, item), so that one change climbs only as far as it matters.

An open-addressing table: key = vertex · n_items + item (−1: free), count = subscriptions at a leaf,
or children that want the item at an interior vertex. An item that becomes wanted at v adds its
size to f(v) and tells the parent; one more who wants it stops there. Zero counts stay as keys until
the table grows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit
from narrowcast.plans.filters.kernels.flip import FlipState
from narrowcast.plans.filters.kernels.state import shift_flow

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

# Share of the table that may be in use.
LOAD = 0.6


@jit
def slot(keys: Ints, key: int) -> int:
    """Where a key is, or the free place where it belongs."""
    mask = keys.size - 1
    # Two 30-bit multipliers on the halves of the key: mixes well and cannot overflow below 2^61.
    at = ((key & 0x7FFFFFFF) * 0x2C1B3C6D) ^ ((key >> 31) * 0x297A2D39)
    at = (at ^ (at >> 21) ^ (at >> 37)) & mask
    while keys[at] != key and keys[at] >= 0:
        at = (at + 1) & mask
    return at


@jit
def regrow(keys: Ints, counts: NDArray[np.int32], size: int) -> tuple[Ints, NDArray[np.int32], int]:
    """The same table with room for `size` (a power of two), without zero counts; and how many are in use."""
    new_keys = np.full(size, -1, np.int64)
    new_counts = np.zeros(size, np.int32)
    used = 0
    for i in range(keys.size):
        if keys[i] >= 0 and counts[i] > 0:
            at = slot(new_keys, keys[i])
            new_keys[at], new_counts[at] = keys[i], counts[i]
            used += 1
    return new_keys, new_counts, used


@jit
def change(
    s: FlipState,
    keys: Ints,
    counts: NDArray[np.int32],
    used: int,
    size: Floats,
    depth: Ints,
    leaf: Ints,
    item: Ints,
    by: int,
) -> tuple[int, int, int, float]:
    """Subscribe (by = 1) or unsubscribe (by = −1) pairs: (pairs done, keys in use, f changed, objective's change).

    Stops early where the table must grow or a leaf never wanted the item.
    """
    changed, total = 0, 0.0
    for i in range(leaf.size):
        if used + depth[leaf[i]] + 1 > LOAD * keys.size:
            return i, used, changed, total
        v = leaf[i]
        while v >= 0:
            key = v * size.size + item[i]
            at = slot(keys, key)
            if keys[at] < 0:
                if by < 0:
                    return i, used, changed, total
                keys[at] = key
                used += 1
            elif by < 0 and counts[at] == 0:
                return i, used, changed, total
            before = counts[at]
            counts[at] += by
            if before > 0 and counts[at] > 0:
                break
            total += shift_flow(s, v, by * size[item[i]])
            changed += 1
            v = s.parent[v]
    return leaf.size, used, changed, total
