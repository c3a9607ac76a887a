"""RRA, random restart with annealing (Tock et al. 2005, §4.3)."""

from __future__ import annotations

import numpy as np

from narrowcast.model.arrays import Ints
from narrowcast.plans.channels.cost import points_cost
from narrowcast.plans.channels.methods.groups_first import groups_first
from narrowcast.plans.channels.points import Points

# The paper's P1, P0 (percent of the flows) and μ.
FIRST, LAST, SHRINK = 10.0, 0.5, 0.8


def random_restart(
    points: Points, groups: int, sessions: int, rng: np.random.Generator, alpha: float = 1, beta: float = 1
) -> tuple[Ints, Ints]:
    """GF, then again and again from maps with fewer and fewer flows thrown at random; the best seen."""
    plan = groups_first(points, groups, sessions, rng)
    best, least = plan, points_cost(points, *plan, alpha, beta).excess
    percent = FIRST
    while percent >= LAST:
        session, group = plan
        thrown = rng.choice(points.n, round(points.n * percent / 100), replace=False)
        start = group[session]
        start[thrown] = group[rng.integers(0, group.size, thrown.size)]
        plan = groups_first(points, groups, sessions, rng, start)
        excess = points_cost(points, *plan, alpha, beta).excess
        if excess < least:
            best, least = plan, excess
        percent *= SHRINK
    return best
