"""Flow-based merging (Adler et al. 2001): repeatedly merge the two clusters whose union costs least."""

from __future__ import annotations

import numpy as np

from narrowcast.errors import UnsupportedError
from narrowcast.model.arrays import Ints
from narrowcast.plans.channels.kernels import flow_merge as kernel
from narrowcast.plans.channels.points import Points

LARGEST = 2 * 10**9


def flow_merge(points: Points, clusters: int, rng: np.random.Generator) -> Ints:
    """The cluster of each point. Deterministic. O(points² · mean audience) with bytes in SIMD."""
    if points.n * points.n_users > LARGEST:
        raise UnsupportedError(
            f"flow-merge takes at most {LARGEST} bytes, got {points.n} × {points.n_users}", works=("kmeans", "random")
        )
    named = kernel.flow_merge(points.offsets, points.users, points.rates, points.n_users, min(clusters, points.n))
    cluster: Ints = np.unique(named, return_inverse=True)[1]
    return cluster
