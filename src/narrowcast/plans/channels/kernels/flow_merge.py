"""Flow-based merging (Adler et al. 2001): join the two clusters whose union costs least, again and again."""

from __future__ import annotations

from typing import Any

import numpy as np

from narrowcast.jit import jit
from narrowcast.plans.channels.kernels.kmeans import overlaps

Array = np.ndarray[Any, Any]


@jit
def nearest(a: int, theta: Array, size: Array, inter: Array, alive: Array) -> tuple[int, float]:
    """The cluster that joins a at the least added cost θ_a|C_b\\C_a| + θ_b|C_a\\C_b|."""
    best, least = -1, np.inf
    for b in range(theta.size):
        if alive[b] and b != a:
            added = theta[a] * (size[b] - inter[b]) + theta[b] * (size[a] - inter[b])
            if added < least:
                best, least = b, added
    return best, least


@jit
def members(member: Array, c: int, audience: Array) -> int:
    """Write the users of cluster c into `audience`; returns how many."""
    n = 0
    for u in range(audience.size):
        if member[u, c]:
            audience[n] = u
            n += 1
    return n


@jit
def flow_merge(offsets: Array, users: Array, rates: Array, n_users: int, clusters: int) -> Array:
    """The cluster of each point, clusters named by a point inside. O(points² · users) bytes at worst."""
    n = rates.size
    member = np.zeros((n_users, n), np.uint8)
    theta, size = rates.copy(), np.zeros(n)
    alive, parent = np.ones(n, np.bool_), np.arange(n)
    narrow, inter = np.zeros(n, np.uint8), np.zeros(n, np.int32)
    near, added = np.full(n, -1), np.full(n, np.inf)
    audience, stale = np.empty(n_users, np.int64), np.zeros(n, np.bool_)
    for k in range(n):
        for i in range(offsets[k], offsets[k + 1]):
            member[users[i], k] = 1
            size[k] += 1
    for a in range(n):
        overlaps(member, users[offsets[a] : offsets[a + 1]], narrow, inter)
        near[a], added[a] = nearest(a, theta, size, inter, alive)
    for _ in range(n - clusters):
        a = int(np.argmin(added))
        b = near[a]
        # b dissolves into a.
        for u in range(n_users):
            if member[u, b]:
                size[a] += member[u, a] == 0
                member[u, a], member[u, b] = 1, 0
        theta[a] += theta[b]
        alive[b], parent[b], added[b] = False, a, np.inf
        m = members(member, a, audience)
        overlaps(member, audience[:m], narrow, inter)
        near[a], added[a] = nearest(a, theta, size, inter, alive)
        for c in range(n):
            if alive[c] and c != a:
                price = theta[a] * (size[c] - inter[c]) + theta[c] * (size[a] - inter[c])
                if near[c] == a or near[c] == b:
                    stale[c] = True
                elif price < added[c]:
                    near[c], added[c] = a, price
        for c in range(n):
            if stale[c]:
                m = members(member, c, audience)
                overlaps(member, audience[:m], narrow, inter)
                near[c], added[c] = nearest(c, theta, size, inter, alive)
                stale[c] = False
    for k in range(n):
        root = k
        while parent[root] != root:
            root = parent[root]
        parent[k] = root
    return parent
