"""Packing a plan of points for the two-level kernels."""

from __future__ import annotations

import numpy as np

from narrowcast.model.arrays import Ints
from narrowcast.plans.channels.kernels import two_level as kernel
from narrowcast.plans.channels.kernels.two_level import Prices, TwoLevelState
from narrowcast.plans.channels.methods.kmeans import counts
from narrowcast.plans.channels.points import Points

# Draws for the heat bath: −log(−log U), read from a random place each time.
NOISE = np.minimum(np.random.default_rng(20050401).gumbel(size=kernel.TABLE), kernel.MOST_NOISE)


def pack(points: Points, session_of: Ints, group_of: Ints, n_groups: int) -> TwoLevelState:
    """A state ready for sweeps; the maps are copied."""
    n_sessions, n_users = group_of.size, points.n_users
    state = TwoLevelState(
        session_of.astype(np.int64),
        group_of.astype(np.int64),
        counts(points, n_sessions),
        np.zeros((n_users, n_sessions), np.uint8),
        np.zeros((n_users, n_groups), np.int32),
        np.zeros((n_users, n_groups), np.uint8),
        np.zeros(n_sessions),
        np.zeros(n_sessions),
        np.zeros(n_sessions, np.int64),
        np.zeros(n_groups),
        np.zeros(n_groups),
        np.zeros(n_groups, np.int64),
        np.zeros(1, np.int64),
    )
    kernel.fill(points.offsets, points.users, points.rates, state)
    return state


def state_cost(points: Points, state: TwoLevelState, prices: Prices) -> float:
    return float(kernel.total(points.offsets, points.rates, state, prices))


def anneal(points: Points, state: TwoLevelState, prices: Prices, heats: list[float], rng: np.random.Generator) -> int:
    """Sweep the flows and regroup the sessions once per heat; returns the moves of the last sweep."""
    n, sweeps = points.n, len(heats)
    n_sessions = state.theta.size
    orders = rng.permuted(np.broadcast_to(np.arange(n), (sweeps, n)), axis=1)
    starts = rng.integers(0, NOISE.size, (sweeps, n))
    group_starts = rng.integers(0, NOISE.size, (sweeps, n_sessions))
    return int(
        kernel.anneal(
            points.offsets,
            points.users,
            points.rates,
            orders,
            state,
            prices,
            np.array(heats),
            NOISE,
            starts,
            group_starts,
        )
    )


def descend(points: Points, state: TwoLevelState, prices: Prices, order: Ints, most: int = 50) -> None:
    """Move points in this order, only where that lowers the cost, until none moves."""
    starts = np.zeros(points.n, np.int64)
    for _ in range(most):
        if kernel.sweep(points.offsets, points.users, points.rates, order, state, prices, 0.0, NOISE, starts) == 0:
            return
