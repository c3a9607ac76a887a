"""A heat bath of flows over groups alone, sessions left out: the rough part of the two-level search.

C1 is most of the cost and groups are few, so a visit here costs a fifth of one that prices sessions too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from narrowcast.jit import jit
from narrowcast.plans.channels.kernels.kmeans import insert, overlaps, remove
from narrowcast.plans.channels.kernels.two_level import TABLE, lonely

Array = np.ndarray[Any, Any]


@jit
def group_bath(
    offsets: Array, users: Array, rates: Array, orders: Array, group_of: Array, count: Array,
    heats: Array, noise: Array, starts: Array,
) -> int:  # fmt: skip
    """One sweep of all flows per heat; returns the moves of the last.

    `group_of` holds the start and receives the result; `count` is users × groups, all zero. At heat 0 a
    sweep is a pass of K-means.
    """
    m = count.shape[1]
    member = np.zeros(count.shape, np.uint8)
    sizes, Theta, held = np.zeros(m), np.zeros(m), np.zeros(m, np.int64)
    narrow, inter, value = np.zeros(m, np.uint8), np.zeros(m, np.int32), np.zeros(m)
    for k in range(rates.size):
        g = group_of[k]
        insert(count, member, sizes, users[offsets[k] : offsets[k + 1]], g, 1)
        Theta[g] += rates[k]
        held[g] += 1
    moves = 0
    for h in range(heats.size):
        heat, moves = heats[h], 0
        for i in range(rates.size):
            k, at = orders[h, i], starts[h, i]
            V = users[offsets[k] : offsets[k + 1]]
            old, rate, v = group_of[k], rates[k], float(V.size)
            overlaps(member, V, narrow, inter)
            for g in range(m):
                missing = v - inter[g]
                value[g] = Theta[g] * missing + rate * (sizes[g] + missing)
            # As if the flow were taken out; most stay, and then nothing needs to be written.
            left = Theta[old] - rate if held[old] > 1 else 0.0
            value[old] = left * lonely(count, V, old) + rate * sizes[old]
            best, least = old, value[old] * (1 - 1e-12) - heat * noise[(at + old) % TABLE]
            for g in range(m):
                drawn = value[g] - heat * noise[(at + g) % TABLE]
                if drawn < least:
                    best, least = g, drawn
            if best != old:
                remove(count, member, sizes, V, old, 1)
                insert(count, member, sizes, V, best, 1)
                held[old] -= 1
                held[best] += 1
                Theta[old] = left
                Theta[best] += rate
                group_of[k] = best
                moves += 1
    return moves
