"""IT, the iterative approach (Tock et al. 2005, §4.3): groups first and streams first in turn."""

from __future__ import annotations

import numpy as np

from narrowcast.model.arrays import Ints
from narrowcast.plans.channels.cost import points_cost
from narrowcast.plans.channels.methods.groups_first import groups_first
from narrowcast.plans.channels.methods.streams_first import streams_first
from narrowcast.plans.channels.points import Points

ROUNDS = 4


def iterative(
    points: Points, groups: int, sessions: int, rng: np.random.Generator, alpha: float = 1, beta: float = 1
) -> tuple[Ints, Ints]:
    """GF, then SF from its maps, flattened, GF again, four times; the best of all maps seen."""
    plan = groups_first(points, groups, sessions, rng)
    seen = [plan]
    for _ in range(ROUNDS):
        plan = streams_first(points, groups, sessions, rng, plan)
        seen.append(plan)
        session, group = plan
        plan = groups_first(points, groups, sessions, rng, group[session])
        seen.append(plan)
    return min(seen, key=lambda plan: points_cost(points, plan[0], plan[1], alpha, beta).excess)
