"""One-level K-means of points with a rate and an audience (Tock et al. 2005, §4.2).

Letters as in the paper: V the audience of a point, λ (`rates`) its rate, θ the rate of a cluster,
C its users. `count[u, c]` says how many points of cluster c user u wants, `member` whether any:
taking a point out is then O(|V|), and the |C ∩ V| of all clusters are sums of |V| rows of `member`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from narrowcast.jit import jit

Array = np.ndarray[Any, Any]


@jit
def overlaps(member: Array, audience: Array, narrow: Array, inter: Array) -> None:
    """inter[c] = |C_c ∩ V| for every cluster c. Bytes are summed 255 rows at a time."""
    n = inter.size
    inter[:] = 0
    size = audience.size
    for start in range(0, size, 255):
        narrow[:] = 0
        for i in range(start, min(start + 255, size)):
            row = member[audience[i]]
            for c in range(n):
                narrow[c] += row[c]
        for c in range(n):
            inter[c] += narrow[c]


@jit
def insert(count: Array, member: Array, sizes: Array, audience: Array, c: int, times: int) -> None:
    """Count `times` more points of this audience in cluster c."""
    for u in audience:
        if count[u, c] == 0:
            member[u, c] = 1
            sizes[c] += 1
        count[u, c] += times


@jit
def remove(count: Array, member: Array, sizes: Array, audience: Array, c: int, times: int) -> None:
    """Count `times` fewer points of this audience in cluster c."""
    for u in audience:
        count[u, c] -= times
        if count[u, c] == 0:
            member[u, c] = 0
            sizes[c] -= 1


@jit
def kmeans(
    offsets: Array,
    users: Array,
    rates: Array,
    order: Array,
    cluster_of: Array,
    count: Array,
    max_passes: int,
    few: int = 0,
) -> int:
    """Move points to their nearest cluster until a whole pass moves none; returns the passes made.

    `cluster_of` holds the start and receives the result; `count` is users × clusters, all zero. A pass
    with at most `few` moves is the last.
    """
    n_clusters = count.shape[1]
    member = np.zeros(count.shape, np.uint8)
    sizes = np.zeros(n_clusters)
    theta = np.zeros(n_clusters)
    points = np.zeros(n_clusters, np.int64)
    narrow = np.zeros(n_clusters, np.uint8)
    inter = np.zeros(n_clusters, np.int32)
    for k in order:
        c = cluster_of[k]
        insert(count, member, sizes, users[offsets[k] : offsets[k + 1]], c, 1)
        theta[c] += rates[k]
        points[c] += 1
    for done in range(max_passes):
        moved = 0
        for k in order:
            V = users[offsets[k] : offsets[k + 1]]
            old, rate, v = cluster_of[k], rates[k], float(V.size)
            remove(count, member, sizes, V, old, 1)
            points[old] -= 1
            # An emptied cluster has no rate at all, not what rounding left of it.
            theta[old] = theta[old] - rate if points[old] > 0 else 0.0
            overlaps(member, V, narrow, inter)
            best = old
            least = rate * (sizes[old] - inter[old]) + theta[old] * (v - inter[old])
            # What rounding alone could win is no reason to move: it would never settle.
            least -= 1e-12 * (rate * sizes[old] + theta[old] * v)
            for c in range(n_clusters):
                distance = rate * (sizes[c] - inter[c]) + theta[c] * (v - inter[c])
                if distance < least:
                    least, best = distance, c
            insert(count, member, sizes, V, best, 1)
            theta[best] += rate
            points[best] += 1
            if best != old:
                cluster_of[k] = best
                moved += 1
        if moved <= few:
            return done + 1
    return max_passes
