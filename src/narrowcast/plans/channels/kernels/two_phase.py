"""The second phase of two-phase K-means: single moves that lower Σ‖W_k − mean‖² (Spath 1985)."""

from __future__ import annotations

from typing import Any

import numpy as np

from narrowcast.jit import jit

Array = np.ndarray[Any, Any]


@jit
def online(
    offsets: Array, users: Array, order: Array, cluster_of: Array, sums: Array, held: Array, max_passes: int
) -> int:
    """`sums[c, u]` counts the points of cluster c that u wants, `held[c]` its points; returns the passes made."""
    n_clusters = held.size
    norm = np.zeros(n_clusters)
    for c in range(n_clusters):
        norm[c] = (sums[c] ** 2).sum()
    for done in range(max_passes):
        moved = 0
        for k in order:
            V, a = users[offsets[k] : offsets[k + 1]], cluster_of[k]
            if held[a] == 1:
                continue
            best, least = a, np.inf
            for c in range(n_clusters):
                if held[c] == 0:
                    value = 0.0
                else:
                    inside = 0.0
                    for u in V:
                        inside += sums[c, u]
                    d = V.size - 2 * inside / held[c] + norm[c] / held[c] ** 2
                    value = d * held[c] / (held[c] - 1 if c == a else held[c] + 1) * (1 - 1e-12 * (c == a))
                if value < least:
                    best, least = c, value
            if best == a:
                continue
            for u in V:
                norm[a] += 1 - 2 * sums[a, u]
                sums[a, u] -= 1
                norm[best] += 1 + 2 * sums[best, u]
                sums[best, u] += 1
            held[a] -= 1
            held[best] += 1
            cluster_of[k] = best
            moved += 1
        if moved == 0:
            return done + 1
    return max_passes
