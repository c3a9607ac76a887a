"""The least one-level cost as an integer programme, solved by HiGHS."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp

from narrowcast.model import Interest


def least_one_level_cost(interest: Interest, clusters: int) -> float:
    """min Σ λ_k y_kuc: x_kc flow k in cluster c, z_uc user u joins c, y_kuc ≥ x_kc + z_uc − 1."""
    K, N, M = interest.n_flows, interest.n_users, clusters
    x = np.arange(K * M).reshape(K, M)
    z = K * M + np.arange(N * M).reshape(N, M)
    y = K * M + N * M + np.arange(K * N * M).reshape(K, N, M)
    n = int(y[-1, -1, -1]) + 1
    rows: list[tuple[dict[int, float], float, float]] = []
    for k in range(K):
        rows.append(({int(x[k, c]): 1.0 for c in range(M)}, 1, 1))
        for c in range(M):
            rows += [({int(z[u, c]): 1.0, int(x[k, c]): -1.0}, 0, np.inf) for u in interest.users_of(k)]
            rows += [({int(y[k, u, c]): 1.0, int(x[k, c]): -1.0, int(z[u, c]): -1.0}, -1, np.inf) for u in range(N)]
    A = np.zeros((len(rows), n))
    for i, (row, _, _) in enumerate(rows):
        A[i, list(row)] = list(row.values())
    cost = np.zeros(n)
    cost[y.ravel()] = np.repeat(interest.rates * (interest.audience_sizes > 0), N * M)
    whole = np.zeros(n)
    whole[: K * M] = 1
    found = milp(
        cost,
        constraints=LinearConstraint(A, [r[1] for r in rows], [r[2] for r in rows]),
        integrality=whole,
        bounds=Bounds(0, 1),
    )
    assert found.success, found.message
    return float(found.fun)
