"""One-level K-means (Tock et al. 2005, §4.2): points to their nearest cluster, one at a time."""

from __future__ import annotations

import numpy as np

from narrowcast.model.arrays import Ints
from narrowcast.plans.channels.kernels import kmeans as kernel
from narrowcast.plans.channels.points import Points

MAX_PASSES = 100
# Above so many points a pass that moves less than one in a hundred is the last: the rest is some 0.1 % of the cost.
MANY, FEW = 20_000, 0.01


def settled(points: Points) -> float:
    """The share of points whose moves no longer make another pass worth its time."""
    return FEW if points.n > MANY else 0.0


def kmeans(
    points: Points, clusters: int, rng: np.random.Generator, start: Ints | None = None, few: float | None = None
) -> Ints:
    """The cluster of each point, from a random start or a given one.

    Every move lowers Σ θ|C|, so it ends; the result is a local optimum under moves of one point, or where
    a pass moves no more than `few` of the points. O(passes · pairs · clusters) at a byte each.
    """
    cluster_of = rng.integers(0, clusters, points.n) if start is None else start.astype(np.int64)
    order = rng.permutation(points.n)
    count = counts(points, clusters)
    moves = int((settled(points) if few is None else few) * points.n)
    kernel.kmeans(points.offsets, points.users, points.rates, order, cluster_of, count, MAX_PASSES, moves)
    return cluster_of


def counts(points: Points, clusters: int) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """An all-zero users × clusters table, as narrow as the busiest user allows."""
    busiest = int(np.bincount(points.users, minlength=1).max())
    return np.zeros((points.n_users, clusters), np.uint16 if busiest < 2**16 else np.int32)


def compact(session_of: Ints, group_of: Ints) -> tuple[Ints, Ints]:
    """The same plan without empty sessions and groups, numbered as they first come. −1 stays −1."""
    used, session = in_order(session_of)
    _, group = in_order(group_of[used])
    return session, group


def in_order(labels: Ints) -> tuple[Ints, Ints]:
    """(the labels in use as they first come, each label's place among them); −1 stays −1."""
    seen, first, flat = np.unique(labels, return_index=True, return_inverse=True)
    outside = int(seen.size > 0 and seen[0] < 0)
    order = np.argsort(first[outside:])
    place = np.full(seen.size, -1)
    place[outside:][order] = np.arange(order.size)
    return seen[outside:][order], place[flat] if seen.size else labels.astype(np.int64)
