"""Flows to random sessions and sessions to random groups: what any method has to beat."""

from __future__ import annotations

import numpy as np

from narrowcast.model.arrays import Ints
from narrowcast.plans.channels.points import Points


def random_plan(points: Points, groups: int, sessions: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Uniformly random maps, every session and group in use where there are flows enough."""
    session = rng.permutation(np.concatenate([np.arange(min(sessions, points.n)), _draw(sessions, points.n, rng)]))
    group = rng.permutation(np.concatenate([np.arange(min(groups, sessions)), _draw(groups, sessions, rng)]))
    return session, group


def _draw(low: int, n: int, rng: np.random.Generator) -> Ints:
    """What is left of n draws from 0..low−1 once each number has come once."""
    return rng.integers(0, low, max(n - low, 0))
