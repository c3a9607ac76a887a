"""One-level K-means (Tock et al. 2005, §4.2): points to their nearest cluster, one at a time."""

from __future__ import annotations

import numpy as np

from narrowcast.channels.points import Points
from narrowcast.kernels import kmeans as kernel
from narrowcast.model._arrays import Ints

MAX_PASSES = 100


def kmeans(points: Points, clusters: int, rng: np.random.Generator, start: Ints | None = None) -> Ints:
    """The cluster of each point, from a random start or a given one.

    Every move lowers Σ θ|C|, so it ends; the result is a local optimum under moves of one point.
    O(passes · pairs · clusters) at a byte each.
    """
    cluster_of = rng.integers(0, clusters, points.n) if start is None else start.astype(np.int64)
    order = rng.permutation(points.n)
    count = counts(points, clusters)
    kernel.kmeans(points.offsets, points.users, points.rates, order, cluster_of, count, MAX_PASSES)
    return cluster_of


def counts(points: Points, clusters: int) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """An all-zero users × clusters table, as narrow as the busiest user allows."""
    busiest = int(np.bincount(points.users, minlength=1).max())
    return np.zeros((points.n_users, clusters), np.uint16 if busiest < 2**16 else np.int32)


def compact(session_of: Ints, group_of: Ints) -> tuple[Ints, Ints]:
    """The same plan without empty sessions and groups, numbered in order. −1 stays −1."""
    used, flat = np.unique(session_of[session_of >= 0], return_inverse=True)
    session = np.full(session_of.size, -1)
    session[session_of >= 0] = flat
    return session, np.unique(group_of[used], return_inverse=True)[1].astype(np.int64)
