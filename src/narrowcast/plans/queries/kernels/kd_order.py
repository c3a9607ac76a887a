"""An order of points in which every half of every half is spatially compact (a k-d tree without pointers)."""

from __future__ import annotations

from typing import Any

import numpy as np

from narrowcast.jit import jit


@jit
def _halve(order: Any, coords: Any, axis: int, s: int, e: int) -> None:
    """Hoare's selection: the half of order[s:e] with the smaller coordinates comes first."""
    mid = (s + e) // 2
    low, high = s, e - 1
    while low < high:
        pivot = coords[order[(low + high) // 2], axis]
        i, j = low, high
        while i <= j:
            while coords[order[i], axis] < pivot:
                i += 1
            while coords[order[j], axis] > pivot:
                j -= 1
            if i <= j:
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if mid <= j:
            high = j
        elif mid >= i:
            low = i
        else:
            return


@jit
def kd_order(coords: Any, leaf: int) -> Any:
    """A permutation of the rows: node (s, e) splits at (s + e) // 2 along its widest axis, down to `leaf` rows.

    O(n log n) on average; the same rows always give the same order.
    """
    n, k = coords.shape
    order = np.arange(n)
    stack = np.empty((128, 2), np.int64)
    stack[0, 0], stack[0, 1] = 0, n
    top = 1
    while top > 0:
        top -= 1
        s, e = stack[top, 0], stack[top, 1]
        if e - s <= leaf:
            continue
        widest, axis = -1.0, 0
        for j in range(k):
            low, high = np.inf, -np.inf
            for i in range(s, e):
                x = coords[order[i], j]
                low, high = min(low, x), max(high, x)
            if high - low > widest:  # false for nan: an axis that is infinite everywhere is never split
                widest, axis = high - low, j
        _halve(order, coords, axis, s, e)
        mid = (s + e) // 2
        stack[top, 0], stack[top, 1] = s, mid
        stack[top + 1, 0], stack[top + 1, 1] = mid, e
        top += 2
    return order


@jit
def node_capacity(n: int, leaf: int) -> int:
    """How many heap-numbered nodes the halving of n rows needs (children of i are 2i+1 and 2i+2)."""
    nodes, largest = 1, n
    while largest > leaf:
        largest = (largest + 1) // 2
        nodes = 2 * nodes + 1
    return nodes
