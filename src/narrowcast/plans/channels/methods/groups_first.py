"""GF, groups first (Tock et al. 2005, §4.3): flows to groups, then each group's flows to sessions."""

from __future__ import annotations

from heapq import heapify, heapreplace

import numpy as np

from narrowcast.model.arrays import Floats, Ints
from narrowcast.plans.channels.methods.kmeans import kmeans, settled
from narrowcast.plans.channels.points import Points


def groups_first(
    points: Points, groups: int, sessions: int, rng: np.random.Generator, start: Ints | None = None
) -> tuple[Ints, Ints]:
    """Sessions of points and groups of sessions. Good when groups are few and sessions many.

    `start` is the group of each point to begin from. O(passes · pairs · groups).
    """
    return sessions_within(points, kmeans(points, groups, rng, start), groups, sessions, rng)


def sessions_within(
    points: Points, group: Ints, groups: int, sessions: int, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Cut each group into sessions: K-means on its points alone."""
    budget = divide(points, group, groups, sessions)
    session = np.empty(points.n, np.int64)
    first = np.concatenate([[0], np.cumsum(budget)])
    members = np.argsort(group, kind="stable")
    ends = np.cumsum(np.bincount(group, minlength=groups))
    for g in np.flatnonzero(budget):
        inside = members[ends[g - 1] if g else 0 : ends[g]]
        session[inside] = first[g] + kmeans(points.subset(inside), int(budget[g]), rng, few=settled(points))
    return session, np.repeat(np.arange(groups), budget)


def divide(points: Points, group: Ints, groups: int, sessions: int) -> Ints:
    """How many sessions each group gets: by need, which is what its users would filter with one.

    Highest averages, one to each group first and never more than it has points.
    """
    held = np.bincount(group, minlength=groups)
    need = _excess(points, group, groups)
    budget = np.minimum(held, 1)
    heap = [(-need[g] / (budget[g] + 0.5), int(g)) for g in np.flatnonzero(held > budget)]
    heapify(heap)
    for _ in range(min(sessions, points.n) - int(budget.sum())):
        g = heap[0][1]
        budget[g] += 1
        heapreplace(heap, (-need[g] / (budget[g] + 0.5) if budget[g] < held[g] else np.inf, g))
    return budget


def _excess(points: Points, group: Ints, groups: int) -> Floats:
    merged = points.merged(group, groups)
    wanted = np.bincount(group, points.rates * points.sizes, minlength=groups)
    excess: Floats = np.maximum(merged.rates * merged.sizes - wanted, 0.0)
    return excess
