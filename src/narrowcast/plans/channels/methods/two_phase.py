"""Two-phase K-means (Seber 1984, Spath 1985): batch reassignment, then online single moves.

Points are rows of the interest matrix, distances Euclidean to the mean; rates play no part, which
is why the sequential K-means of Tock et al. beats it where rates differ.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from narrowcast.model.arrays import Ints
from narrowcast.plans.channels.kernels import two_phase as kernel
from narrowcast.plans.channels.points import Points

BATCHES, PASSES = 100, 30


def two_phase(points: Points, clusters: int, rng: np.random.Generator) -> Ints:
    """The cluster of each point. O(passes · pairs · clusters)."""
    W = matrix(points)
    cluster = rng.integers(0, clusters, points.n)
    for _ in range(BATCHES):
        sums, held = _sums(W, cluster, clusters)
        mean = sums / np.maximum(held, 1)[:, None]
        distance = points.sizes[:, None] - 2 * (W @ mean.T) + (mean**2).sum(axis=1)
        moved = np.argmin(distance, axis=1)
        if (moved == cluster).all():
            break
        cluster = moved
    sums, held = _sums(W, cluster, clusters)
    kernel.online(points.offsets, points.users, rng.permutation(points.n), cluster, sums, held, PASSES)
    return cluster


def matrix(points: Points) -> csr_array:
    """The interest matrix, points × users."""
    ones = np.ones(points.users.size)
    return csr_array((ones, points.users, points.offsets), shape=(points.n, points.n_users))


def _sums(W: csr_array, cluster: Ints, clusters: int) -> tuple[np.ndarray[tuple[int, int], np.dtype[np.float64]], Ints]:
    n = cluster.size
    X = csr_array((np.ones(n), (cluster, np.arange(n))), shape=(clusters, n))
    return np.ascontiguousarray((X @ W).toarray()), np.bincount(cluster, minlength=clusters)
