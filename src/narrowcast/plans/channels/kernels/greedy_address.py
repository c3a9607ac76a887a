"""Each flow in turn to the group address with the least cost over its present receivers."""

from __future__ import annotations

from typing import Any

import numpy as np

from narrowcast.jit import jit
from narrowcast.plans.channels.kernels.kmeans import overlaps

Array = np.ndarray[Any, Any]


@jit
def greedy_address(
    offsets: Array, users: Array, n_users: int, groups: int, discarded: float, delivered: float
) -> Array:
    """A receiver that would throw the flow away costs `discarded`, one that wants it earns `delivered`."""
    n = offsets.size - 1
    chosen = np.zeros(n, np.int64)
    member, size = np.zeros((n_users, groups), np.uint8), np.zeros(groups, np.int64)
    narrow, inter = np.zeros(groups, np.uint8), np.zeros(groups, np.int32)
    for k in range(n):
        V = users[offsets[k] : offsets[k + 1]]
        overlaps(member, V, narrow, inter)
        best, least = 0, np.inf
        for g in range(groups):
            value = discarded * (size[g] - inter[g]) - delivered * inter[g]
            if value < least:
                best, least = g, value
        chosen[k] = best
        for u in V:
            size[best] += member[u, best] == 0
            member[u, best] = 1
    return chosen
