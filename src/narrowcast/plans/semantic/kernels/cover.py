"""The cheapest way to an audience: one channel to some of it, and the blocks that hold the rest."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit

Array = NDArray[Any]


@jit
def cheapest_cover(
    audience: Array,
    source: Array,
    order: Array,
    way: Array,
    reach: Array,
    block_of: Array,
    block_way: Array,
    bound: Array,
) -> Array:
    """Per message the channel it is best sent to besides blocks, −1 where blocks alone cost least.

    Channel c costs way[s, c] from source s and reaches gateways reach[c]; what it leaves out goes to the
    blocks block_of[gateway], at block_way[s, block] each. order[s] lists channels by cost, so the
    search ends where a channel alone costs as much as the best so far. Of equals the first stays.
    bound[i] is what some channel to all of audience i costs, infinite if there is none: dearer ways end early.
    """
    n = audience.shape[1]
    wanted = np.empty(n, np.int64)
    stamp = np.full(block_way.shape[1], -1, np.int64)
    tick = 0
    found = np.full(source.size, -1, np.int64)
    for i in range(source.size):
        s = source[i]
        k = 0
        best = 0.0
        for g in range(n):
            if audience[i, g]:
                wanted[k] = g
                k += 1
                if stamp[block_of[g]] != tick:
                    stamp[block_of[g]] = tick
                    best += block_way[s, block_of[g]]
        tick += 1
        best = min(best, np.nextafter(bound[i], np.inf))
        for c in order[s]:
            if c < 0 or way[s, c] >= best:
                break
            cost = way[s, c]
            for j in range(k):
                b = block_of[wanted[j]]
                if not reach[c, wanted[j]] and stamp[b] != tick:
                    stamp[b] = tick
                    cost += block_way[s, b]
                    if cost >= best:
                        break
            tick += 1
            if cost < best:
                best = cost
                found[i] = c
    return found
