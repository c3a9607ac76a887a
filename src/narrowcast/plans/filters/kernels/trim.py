"""Take filters away one by one, the least missed first."""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit
from narrowcast.plans.filters.kernels.core import Core

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Filters that may be handed to the next filter above before giving up: some seconds.
RELINKS = 20_000_000


@jit
def trim(core: Core, chosen: Bools, floor: int) -> tuple[Ints, Floats]:
    """(removed, loss): the order of removal down to `floor` filters and what each costs then.

    Works on the filters alone: for each, the flow x that arrives, Z and C of its importance
    x·Z − C. Without filter v, the links it relieved join those of the next filter above, and the
    filters right below it see the flow that arrived at v. O(n + K log K) where few filters hang
    below one; stops early past RELINKS of them.
    """
    n = core.parent.size
    above = np.full(n, -1, np.int64)  # the next filter above
    x = np.empty(n)
    z = np.zeros(n)
    Z = core.bare.copy()
    C = core.bare_flow.copy()
    for v in range(n):
        u = core.parent[v]
        x[v] = core.flow[v] if u < 0 or chosen[u] else x[u]
        above[v] = -1 if u < 0 else (u if chosen[u] else above[u])
    for v in range(n - 1, 0, -1):
        z[v] = core.weight[v] + (0.0 if chosen[v] else Z[v])
        u = core.parent[v]
        Z[u] += z[v]
        C[u] += core.flow[v] * z[v]
    first, following = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    stamp = np.zeros(n, np.int64)
    count = 0
    heap = [(0.0, np.int64(0), np.int64(0)) for _ in range(0)]
    for v in range(n - 1, -1, -1):
        if chosen[v]:
            count += 1
            heap.append((x[v] * Z[v] - C[v], np.int64(v), np.int64(0)))
            u = above[v]
            if u >= 0:
                following[v] = first[u]
                first[u] = v
    heapq.heapify(heap)
    n_out = max(0, count - floor)
    removed = np.empty(n_out, np.int64)
    loss = np.empty(n_out)
    done = 0
    relinked = 0
    while done < n_out and relinked < RELINKS:
        value, w, seen = heapq.heappop(heap)
        v = int(w)
        if seen != stamp[v]:
            continue
        removed[done], loss[done] = v, value
        done += 1
        stamp[v] = -1
        u = above[v]
        if u >= 0:
            Z[u] += Z[v]
            C[u] += x[v] * Z[v]
            stamp[u] += 1
            heapq.heappush(heap, (x[u] * Z[u] - C[u], u, stamp[u]))
        d = first[v]
        while d >= 0:
            after = following[d]
            relinked += 1
            above[d] = u
            if stamp[d] >= 0:
                x[d] = x[v]
                stamp[d] += 1
                heapq.heappush(heap, (x[d] * Z[d] - C[d], d, stamp[d]))
                if u >= 0:
                    following[d] = first[u]
                    first[u] = d
            d = after
    return removed[:done], loss[:done]
