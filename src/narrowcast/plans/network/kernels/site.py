"""A small site's exact cost, and a search in it: every subscriber takes by unicast what costs it less that way.

Letters as in Tock et al. 2005: λ rate of a flow, θ of a session, Θ of a group. For given maps the best choice of
each host is exact: a group is worth `Σ_users min(0, αΘ + Σ_sessions min(0, βθ − σ·wanted))`, and worths add up.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from narrowcast.jit import jit

Array = np.ndarray[Any, Any]


class SiteArrays(NamedTuple):
    """What the kernel knows of a site; the wishes of user u are `flow[offsets[u]:offsets[u + 1]]`."""

    offsets: Array
    flow: Array
    rates: Array
    host: Array  # of each user; users of a host stand together
    limit: Array  # of each host: the most groups, 0 where it has no multicast
    alpha: float
    beta: float
    send: float
    group: float


@jit
def site_cost(site: SiteArrays, session_of: Array, group_of: Array, n_groups: int) -> float:
    """The cost with these maps (−1: unicast), each host joining the groups that pay."""
    n_sessions, n_users = group_of.size, site.offsets.size - 1
    theta, Theta = np.zeros(n_sessions), np.zeros(n_groups)
    for k in range(session_of.size):
        if session_of[k] >= 0:
            theta[session_of[k]] += site.rates[k]
            Theta[group_of[session_of[k]]] += site.rates[k]
    cost = site.send * theta.sum()
    wanted, worth, mine = np.zeros(n_sessions), np.zeros(n_groups), np.zeros(n_groups)
    used = np.zeros(n_groups, np.bool_)
    for u in range(n_users):
        wanted[:] = 0.0
        for at in range(site.offsets[u], site.offsets[u + 1]):
            k = site.flow[at]
            cost += site.send * site.rates[k]
            if session_of[k] >= 0:
                wanted[session_of[k]] += site.rates[k]
        mine[:] = 0.0
        for l in range(n_sessions):
            if wanted[l] > 0.0:
                mine[group_of[l]] += min(0.0, site.beta * theta[l] - site.send * wanted[l])
        for g in range(n_groups):
            worth[g] += min(0.0, site.alpha * Theta[g] + mine[g])
        if u + 1 == n_users or site.host[u + 1] != site.host[u]:
            for _ in range(min(site.limit[site.host[u]], n_groups)):
                best = int(np.argmin(worth))
                if worth[best] >= 0.0:
                    break
                cost += worth[best]
                used[best] = True
                worth[best] = 0.0
            worth[:] = 0.0
    return float(cost + site.group * used.sum())


@jit
def site_anneal(
    site: SiteArrays, session_of: Array, group_of: Array, n_groups: int, free: Array, heats: Array, draws: Array
) -> float:
    """Moves of flows and sessions and swaps of flows at falling heats; the best maps are left in the arguments."""
    n_sessions = group_of.size
    best_session, best_group = session_of.copy(), group_of.copy()
    cost = site_cost(site, session_of, group_of, n_groups)
    best = cost
    for step in range(heats.size):
        what, a, b, chance = draws[step, 0], draws[step, 1], draws[step, 2], draws[step, 3]
        k, j, l = free[int(a * free.size)], free[int(b * free.size)], int(a * n_sessions)
        old_k, old_j, old_l = session_of[k], session_of[j], group_of[l]
        if what < 0.55:
            session_of[k] = int(b * (n_sessions + 1)) - 1
        elif what < 0.75:
            session_of[k], session_of[j] = old_j, old_k
        else:
            group_of[l] = int(b * n_groups)
        found = site_cost(site, session_of, group_of, n_groups)
        if found <= cost or np.exp((cost - found) / max(heats[step], 1e-300)) > chance:
            cost = found
            if cost < best:
                best = cost
                best_session[:] = session_of
                best_group[:] = group_of
        else:
            session_of[k], session_of[j], group_of[l] = old_k, old_j, old_l
    session_of[:] = best_session
    group_of[:] = best_group
    return best
