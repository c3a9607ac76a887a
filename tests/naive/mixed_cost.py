"""C' of a plan with sessions and unicast pairs, from its definition, user by user."""

from __future__ import annotations

from typing import Any

from narrowcast.model import Interest


def mixed_cost(
    interest: Interest, session: Any, group: Any, alone: set[tuple[int, int]], weights: tuple[float, ...], beta: float
) -> float:
    """Session −1 is unicast, −2 nowhere; `alone` are (flow, user) pairs by unicast though the flow has a session."""
    w1, w2, w3 = weights
    flows = [k for k in range(interest.n_flows) if interest.users_of(k).size]
    rate = {k: float(interest.rates[k]) for k in flows}
    total = w2 * sum(rate[k] for k in flows if session[k] >= 0)
    for u in range(interest.n_users):
        wanted = [k for k in flows if u in interest.users_of(k) and session[k] > -2]
        copies = [k for k in wanted if session[k] == -1 or (k, u) in alone]
        taken = {int(session[k]) for k in wanted if k not in copies}
        joined = {int(group[l]) for l in taken}
        total += w3 * (w1 + beta + w2) * sum(rate[k] for k in copies)
        total += beta * sum(rate[k] for k in flows if session[k] in taken)
        total += w1 * sum(rate[k] for k in flows if session[k] >= 0 and group[session[k]] in joined)
    return total
