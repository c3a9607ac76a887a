"""The costs of channels from their definitions: dense matrices, no shortcuts."""

from __future__ import annotations

from typing import Any

import numpy as np

from narrowcast.model import Interest


def interest_matrix(interest: Interest) -> np.ndarray[Any, Any]:
    """W: flows × users, 0/1."""
    W = np.zeros((interest.n_flows, interest.n_users), np.int64)
    for k in range(interest.n_flows):
        W[k, interest.users_of(k)] = 1
    return W


def two_level_cost(
    interest: Interest, session_of_flow: Any, group_of_session: Any, alpha: float, beta: float
) -> dict[str, float]:
    """C1, C2, useful, excess and flooding, summed user by user."""
    W, rates = interest_matrix(interest), interest.rates
    c1 = c2 = useful = flooding = 0.0
    wanted = [k for k in range(interest.n_flows) if W[k].any()]
    for u in range(interest.n_users):
        sessions = {session_of_flow[k] for k in wanted if W[k, u]}
        groups = {group_of_session[l] for l in sessions}
        for k in wanted:
            l = session_of_flow[k]
            c1 += alpha * rates[k] * (group_of_session[l] in groups)
            c2 += beta * rates[k] * (l in sessions)
            useful += rates[k] * W[k, u]
            flooding += (alpha + beta) * rates[k] * (1 - W[k, u])
    excess = c1 + c2 - (alpha + beta) * useful
    return {"c1": c1, "c2": c2, "useful": useful, "excess": excess, "flooding": flooding}


def hybrid_cost(
    interest: Interest, group_of_flow: Any, unicast: tuple[Any, Any], weights: tuple[float, float, float]
) -> float:
    """C' and the check that every wanted pair is covered by a joined group or by unicast."""
    w1, w2, w3 = weights
    W, rates = interest_matrix(interest), interest.rates
    by_unicast = set(zip(np.asarray(unicast[0]).tolist(), np.asarray(unicast[1]).tolist(), strict=True))
    total = sum(w3 * (w1 + w2) * rates[k] for k, _ in by_unicast)
    sent = [k for k in range(interest.n_flows) if group_of_flow[k] >= 0]
    for u in range(interest.n_users):
        joined = {group_of_flow[k] for k in sent if W[k, u] and (k, u) not in by_unicast}
        total += sum(w1 * rates[k] for k in sent if group_of_flow[k] in joined)
        for k in np.flatnonzero(W[:, u]):
            assert group_of_flow[k] in joined or (k, u) in by_unicast, f"user {u} misses flow {k}"
    return float(total + sum(w2 * rates[k] for k in sent))


def one_level_cost(audiences: list[set[int]], rates: Any, cluster_of: Any) -> float:
    """Σ θ|C| over clusters."""
    total = 0.0
    for c in set(cluster_of):
        inside = [k for k, other in enumerate(cluster_of) if other == c]
        total += sum(rates[k] for k in inside) * len(set().union(*(audiences[k] for k in inside)))
    return total
