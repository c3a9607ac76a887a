"""The least two-level cost there is, over all maps: dynamic programming over subsets of flows."""

from __future__ import annotations

from typing import Any

import numpy as np

from narrowcast.jit import jit
from narrowcast.model import Interest


def least_cost(interest: Interest, groups: int, sessions: int, alpha: float, beta: float) -> float:
    """min C1 + C2. O(3^flows · groups · sessions²): up to 14 flows."""
    audiences = np.array([sum(1 << int(u) for u in interest.users_of(k)) for k in range(interest.n_flows)])
    wanted = audiences > 0
    return float(_least(audiences[wanted], interest.rates[wanted], groups, sessions, alpha, beta))


@jit
def _least(audiences: Any, rates: Any, groups: int, sessions: int, alpha: float, beta: float) -> float:
    n = rates.size
    whole = np.zeros(1 << n)  # Θ|P| of each set of flows as one cluster
    for S in range(1, 1 << n):
        theta, users = 0.0, 0
        for k in range(n):
            if S >> k & 1:
                theta += rates[k]
                users |= audiences[k]
        size = 0
        while users:
            users &= users - 1
            size += 1
        whole[S] = theta * size
    inside = np.full((1 << n, sessions + 1), np.inf)  # C2 of S in at most j sessions
    plan = np.full((1 << n, groups + 1, sessions + 1), np.inf)  # C1 + C2 of S in at most g groups
    inside[0, :] = 0.0
    plan[0, :, :] = 0.0
    for S in range(1, 1 << n):
        low = S & -S
        T = S
        while T:
            if T & low:
                for j in range(1, sessions + 1):
                    inside[S, j] = min(inside[S, j], beta * whole[T] + inside[S ^ T, j - 1])
            T = (T - 1) & S
        T = S
        while T:
            if T & low:
                for g in range(1, groups + 1):
                    for i in range(1, sessions + 1):
                        for j in range(i, sessions + 1):
                            value = alpha * whole[T] + inside[T, i] + plan[S ^ T, g - 1, j - i]
                            plan[S, g, j] = min(plan[S, g, j], value)
            T = (T - 1) & S
    return plan[(1 << n) - 1, groups, sessions]
