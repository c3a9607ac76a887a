"""Greedy choice of what leaves multicast for unicast, with incremental gains.

A mixed plan is `group_of` per flow (−1: not multicast) and `alone` per (flow, user) pair (True: by
unicast). C' = Σ_g Θ_g(w1|P_g| + w2) + price · Σ_unicast λ with price = w3(w1 + w2). A flow or pair
that leaves changes the gains in its own group only; a user that leaves, only those of users who
share a group whose rate fell or a flow that now has one user left.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from narrowcast.jit import jit

Array = np.ndarray[Any, Any]


class Mixed(NamedTuple):
    """A mixed plan and its counts."""

    group_of: Array
    alone: Array
    counts: Array  # users × groups: multicast pairs
    Theta: Array
    size: Array  # |P_g|
    left: Array  # multicast users of each flow


@jit
def count_up(offsets: Array, users: Array, rates: Array, m: Mixed) -> None:
    """Fill the counts of a mixed plan; a flow without multicast users leaves its group."""
    for k in range(rates.size):
        g = m.group_of[k]
        for i in range(offsets[k], offsets[k + 1]):
            if g < 0:
                m.alone[i] = True
            elif not m.alone[i]:
                m.left[k] += 1
                m.counts[users[i], g] += 1
                m.size[g] += m.counts[users[i], g] == 1
        if g >= 0 and m.left[k] == 0:
            m.group_of[k] = -1
        elif g >= 0:
            m.Theta[g] += rates[k]


@jit
def mixed_cost(offsets: Array, rates: Array, m: Mixed, w1: float, w2: float, price: float) -> tuple[float, float]:
    """(C', its unicast term)."""
    cost, unicast = 0.0, 0.0
    for g in range(m.Theta.size):
        cost += m.Theta[g] * (w1 * m.size[g] + w2)
    for k in range(rates.size):
        unicast += price * rates[k] * (offsets[k + 1] - offsets[k] - m.left[k])
    return cost + unicast, unicast


@jit
def drop_pair(users: Array, rates: Array, m: Mixed, k: int, i: int) -> None:
    """Pair i of flow k goes by unicast."""
    g, u = m.group_of[k], users[i]
    m.alone[i] = True
    m.left[k] -= 1
    m.counts[u, g] -= 1
    m.size[g] -= m.counts[u, g] == 0
    if m.left[k] == 0:
        m.Theta[g] -= rates[k]
        m.group_of[k] = -1


@jit
def flow_gain(
    offsets: Array, users: Array, rates: Array, m: Mixed, k: int, w1: float, w2: float, price: float
) -> float:
    """The change of C' if all of flow k goes by unicast."""
    g, leavers = m.group_of[k], 0
    for i in range(offsets[k], offsets[k + 1]):
        leavers += not m.alone[i] and m.counts[users[i], g] == 1
    rest = m.Theta[g] - rates[k]
    return float(price * rates[k] * m.left[k] - rates[k] * (w1 * m.size[g] + w2) - rest * w1 * leavers)


@jit
def best_in_group(
    offsets: Array, users: Array, rates: Array, m: Mixed, inside: Array, by_pair: bool,
    w1: float, w2: float, price: float,
) -> tuple[float, int, int]:  # fmt: skip
    """(change, flow, pair or −1 for all pairs) of the best move out of the group of these flows."""
    best, flow, pair = 0.0, -1, -1
    for k in inside:
        if m.group_of[k] < 0:
            continue
        if not by_pair or m.left[k] == 1:
            change = flow_gain(offsets, users, rates, m, k, w1, w2, price)
            if change < best:
                best, flow, pair = change, k, -1
        else:
            # Only a user's last flow of a group is worth a pair.
            change = price * rates[k] - w1 * m.Theta[m.group_of[k]]
            if change < best:
                for i in range(offsets[k], offsets[k + 1]):
                    if not m.alone[i] and m.counts[users[i], m.group_of[k]] == 1:
                        best, flow, pair = change, k, i
                        break
    return best, flow, pair


@jit
def greedy_items(
    offsets: Array, users: Array, rates: Array, m: Mixed, by_group: Array, group_offsets: Array, by_pair: bool,
    w1: float, w2: float, price: float, cap: float,
) -> int:  # fmt: skip
    """Greedy flow, or greedy (flow, user) pair: the best move until none pays or the cap is met."""
    n = m.Theta.size
    change, flow, pair = np.zeros(n), np.full(n, -1), np.full(n, -1)
    cost, unicast = mixed_cost(offsets, rates, m, w1, w2, price)
    floor = 1e-12 * cost
    for g in range(n):
        inside = by_group[group_offsets[g] : group_offsets[g + 1]]
        change[g], flow[g], pair[g] = best_in_group(offsets, users, rates, m, inside, by_pair, w1, w2, price)
    moves = 0
    while True:
        g = int(np.argmin(change))
        k = flow[g]
        if k < 0 or change[g] >= -floor:
            return moves
        added = price * rates[k] * (1 if pair[g] >= 0 else m.left[k])
        if unicast + added > cap * (cost + change[g]) + floor:
            return moves
        cost, unicast, moves = cost + change[g], unicast + added, moves + 1
        for i in range(offsets[k], offsets[k + 1]):
            if not m.alone[i] and (pair[g] < 0 or pair[g] == i):
                drop_pair(users, rates, m, k, i)
        inside = by_group[group_offsets[g] : group_offsets[g + 1]]
        change[g], flow[g], pair[g] = best_in_group(offsets, users, rates, m, inside, by_pair, w1, w2, price)


@jit
def user_gain(
    rates: Array, m: Mixed, flows: Array, pairs: Array, u: int, last: Array, w1: float, w2: float, price: float
) -> tuple[float, float, bool]:
    """(change of C', of its unicast term, whether a flow loses its last user) if user u goes by unicast.

    `last` is room for a number per group, all zero before and after.
    """
    added, lost = 0.0, False
    for j in range(flows.size):
        k = flows[j]
        if not m.alone[pairs[j]]:
            added += price * rates[k]
            if m.left[k] == 1:
                last[m.group_of[k]] += rates[k]
                lost = True
    change = added
    for g in range(m.Theta.size):
        if m.counts[u, g] > 0:
            change += (m.Theta[g] - last[g]) * (w1 * (m.size[g] - 1) + w2) - m.Theta[g] * (w1 * m.size[g] + w2)
            last[g] = 0.0
    return change, added, lost


@jit
def greedy_users(
    offsets: Array, users: Array, rates: Array, m: Mixed, user_offsets: Array, flows: Array, pairs: Array,
    w1: float, w2: float, price: float, cap: float,
) -> int:  # fmt: skip
    """Greedy user: the user whose leaving lowers C' most, until none does or the cap is met."""
    n, n_groups = m.counts.shape
    change, added = np.zeros(n), np.zeros(n)
    stale, last_user = np.ones(n, np.bool_), np.zeros(n, np.bool_)
    last = np.zeros(n_groups)
    before = np.zeros(n_groups)
    cost, unicast = mixed_cost(offsets, rates, m, w1, w2, price)
    floor = 1e-12 * cost
    moves = 0
    while True:
        for u in range(n):
            if stale[u]:
                a, b = user_offsets[u], user_offsets[u + 1]
                change[u], added[u], last_user[u] = user_gain(rates, m, flows[a:b], pairs[a:b], u, last, w1, w2, price)
                stale[u] = False
        u = int(np.argmin(change))
        if change[u] >= -floor or unicast + added[u] > cap * (cost + change[u]) + floor:
            return moves
        cost, unicast, moves = cost + change[u], unicast + added[u], moves + 1
        before[:] = m.Theta
        joined = m.counts[u] > 0
        for j in range(user_offsets[u], user_offsets[u + 1]):
            k = flows[j]
            if not m.alone[pairs[j]]:
                drop_pair(users, rates, m, k, pairs[j])
                if m.left[k] == 1:
                    for i in range(offsets[k], offsets[k + 1]):
                        stale[users[i]] |= not m.alone[i]
        for g in range(n_groups):
            # |P_g| fell too, but that matters only to users who are a flow's last.
            if joined[g]:
                for v in range(n):
                    stale[v] |= m.counts[v, g] > 0 and (before[g] != m.Theta[g] or last_user[v])
        stale[u] = True


@jit
def drop_pairs(users: Array, rates: Array, m: Mixed, flow_of_pair: Array, pairs: Array) -> None:
    """These pairs go by unicast, where they do not already."""
    for i in pairs:
        if not m.alone[i]:
            drop_pair(users, rates, m, flow_of_pair[i], i)


@jit
def least_on_the_way(
    offsets: Array, users: Array, rates: Array, m: Mixed, flow_of_pair: Array, pairs: Array, ends: Array,
    w1: float, w2: float, price: float, cap: float,
) -> int:  # fmt: skip
    """After how many of these drops, made in order, C' is least with a unicast share within the cap."""
    cost, unicast = mixed_cost(offsets, rates, m, w1, w2, price)
    best, least, done, floor = 0, cost * (1 - 1e-12), 0, 1e-12 * cost
    for i in range(pairs.size):
        k = flow_of_pair[pairs[i]]
        if not m.alone[pairs[i]]:
            g = m.group_of[k]
            cost -= m.Theta[g] * (w1 * m.size[g] + w2) - price * rates[k]
            drop_pair(users, rates, m, k, pairs[i])
            cost += m.Theta[g] * (w1 * m.size[g] + w2)
            unicast += price * rates[k]
        if i + 1 == ends[done]:
            done += 1
            if unicast > cap * cost + floor:
                break
            if cost < least:
                best, least = done, cost
    return best
