"""The rough part of the search: groups annealed without sessions, then each group cut into sessions.

C1 is most of the cost where groups are fewer than sessions, and what decides it is settled at heats at
which sessions are mere noise. Leaving them out makes those sweeps five times cheaper.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from narrowcast.model.arrays import Ints
from narrowcast.plans.channels.kernels.group_bath import group_bath
from narrowcast.plans.channels.methods.groups_first import sessions_within
from narrowcast.plans.channels.methods.kmeans import counts
from narrowcast.plans.channels.methods.state import NOISE
from narrowcast.plans.channels.points import Points

# Heats, as parts of the mean C1 of a point: between these two the groups take shape.
HOT, COLD = 0.5, 0.06
ROUND = 20  # sweeps between two looks at the clock
CHAINS = 2

Part = Callable[[int], float]  # how much of the cooling is done after so many sweeps, from 0 to 1


def rough(
    points: Points, groups: int, sessions: int, start: Ints, part: Part, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Two coolings from `start`, the group of each point, a thread each; the better one with sessions."""
    seeds = rng.integers(0, 2**63, CHAINS)

    def chain(seed: int) -> tuple[float, Ints]:
        group = cooled_groups(points, groups, start, part, np.random.default_rng(seed))
        return points.merged(group, groups).useful, group

    with ThreadPoolExecutor(CHAINS) as threads:
        found = list(threads.map(chain, seeds.tolist()))
    group = min(found, key=lambda one: one[0])[1]
    return sessions_within(points, group, groups, sessions, rng)


def cooled_groups(points: Points, groups: int, start: Ints, part: Part, rng: np.random.Generator) -> Ints:
    """The group of each point after one cooling; K-means at its end."""
    group, n = start.astype(np.int64), points.n
    mean = points.merged(group, groups).useful / max(n, 1)
    done = 0
    while (at := part(done)) < 1:
        _bath(points, groups, group, [HOT * mean * (COLD / HOT) ** at] * ROUND, rng)
        done += ROUND
    _bath(points, groups, group, [0.0] * 5, rng)
    return group


def _bath(points: Points, groups: int, group: Ints, heats: list[float], rng: np.random.Generator) -> None:
    shape = (len(heats), points.n)
    orders = rng.permuted(np.broadcast_to(np.arange(points.n), shape), axis=1)
    starts = rng.integers(0, NOISE.size, shape)
    group_bath(
        points.offsets,
        points.users,
        points.rates,
        orders,
        group,
        counts(points, groups),
        np.array(heats),
        NOISE,
        starts,
    )
