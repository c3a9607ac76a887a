"""Binary matrix decomposition (Li 2005, the hybrid paper §4.1): min ‖XY − W‖² over 0/1 matrices.

X gives each flow one group, Y each group its users. X given Y is the nearest row of Y, Y given X the
majority of each group. Pairs that XY misses are repaired afterwards: their users join.
"""

from __future__ import annotations

import numpy as np

from narrowcast.model.arrays import Ints
from narrowcast.plans.channels.methods.two_phase import _sums, matrix
from narrowcast.plans.channels.points import Points

ROUNDS = 50


def bmd(points: Points, clusters: int, rng: np.random.Generator) -> Ints:
    """The group of each flow. Knows no rates. O(rounds · pairs · groups)."""
    W = matrix(points)
    cluster = rng.integers(0, clusters, points.n)
    for _ in range(ROUNDS):
        sums, held = _sums(W, cluster, clusters)
        Y = (2 * sums > held[:, None]).astype(np.float64)
        error = points.sizes[:, None] + Y.sum(axis=1) - 2 * (W @ Y.T)
        here = error[np.arange(points.n), cluster]
        moved = np.where(error.min(axis=1) < here, np.argmin(error, axis=1), cluster)
        if (moved == cluster).all():
            break
        cluster = moved
    return cluster
