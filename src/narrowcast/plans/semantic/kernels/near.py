"""Which channels waste least if they become one: sets of gateways as words of bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit

Array = NDArray[Any]
_A, _B, _C, _D = (
    np.uint64(x) for x in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F, 0x0101010101010101)
)
_1, _2, _4, _56 = np.uint64(1), np.uint64(2), np.uint64(4), np.uint64(56)


@jit
def ones(word: np.uint64) -> Any:
    """How many bits are set."""
    x = word - ((word >> _1) & _A)
    x = (x & _B) + ((x >> _2) & _B)
    x = (x + (x >> _4)) & _C
    return np.int64((x * _D) >> _56)


@jit
def least_waste(sets: Array, weight: Array, among: Array, new: Array, k: int) -> Array:
    """Per set in `new` the k of `among` (itself left out) with the least waste, −1 where there are fewer.

    Waste is what one channel for both would deliver in vain: weight[i] · |j − i| + weight[j] · |i − j|.
    Of equals the first of `among` comes first. O(new · among · words).
    """
    found = np.full((new.size, k), -1, np.int64)
    waste = np.empty(k)
    for row in range(new.size):
        i, n = new[row], 0
        for j in among:
            if j == i:
                continue
            mine = theirs = 0
            for w in range(sets.shape[1]):
                mine += ones(sets[i, w] & ~sets[j, w])
                theirs += ones(sets[j, w] & ~sets[i, w])
            here = weight[i] * theirs + weight[j] * mine
            if n == k and here >= waste[k - 1]:
                continue
            at = n if n < k else k - 1
            while at > 0 and waste[at - 1] > here:
                waste[at], found[row, at] = waste[at - 1], found[row, at - 1]
                at -= 1
            waste[at], found[row, at] = here, j
            n = min(n + 1, k)
    return found
