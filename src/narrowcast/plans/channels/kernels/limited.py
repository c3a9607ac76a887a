"""Single moves under real limits: joins per user, rate per group, pins, flows kept apart, migration.

A plan that keeps all limits keeps them after every move: a move that would break one is not made.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from narrowcast.jit import jit
from narrowcast.plans.channels.kernels.two_level import TABLE, Prices, TwoLevelState, price_sessions, put, scratch, take

Array = np.ndarray[Any, Any]

# Why a group is closed to a flow; 0 is open. channels/limits.py names them in this order.
RATE, JOINS, PINNED, APART, MOVES, NEW_JOINS = 1, 2, 3, 4, 5, 6


class Fences(NamedTuple):
    """The limits as arrays. What is not limited has a huge number."""

    joins: int  # groups a user may join
    rate: float  # of a group
    pin: Array  # group of each flow, −1: free
    apart_offsets: Array  # flows that may not share a group with flow k
    apart: Array
    home: Array  # session of each flow in the previous plan, −1: new
    home_group: Array
    before: Array  # users × groups joined in the previous plan
    moves: int
    new_joins: int
    joined: Array  # groups each user is in now
    used: Array  # moves and new joins so far


@jit
def leave(s: TwoLevelState, f: Fences, V: Array, rate: float, k: int, l: int) -> None:
    """Take flow k out of session l and count what that frees."""
    g = s.group_of[l]
    f.used[0] -= f.home[k] >= 0 and (l != f.home[k] or g != f.home_group[k])
    take(s, V, rate, l)
    for u in V:
        if s.group_member[u, g] == 0:
            f.joined[u] -= 1
            f.used[1] -= f.before[u, g] == 0


@jit
def enter(s: TwoLevelState, f: Fences, V: Array, rate: float, k: int, l: int) -> None:
    """Put flow k into session l and count what that takes."""
    g = s.group_of[l]
    for u in V:
        if s.group_member[u, g] == 0:
            f.joined[u] += 1
            f.used[1] += f.before[u, g] == 0
    put(s, V, rate, l)
    f.used[0] += f.home[k] >= 0 and (l != f.home[k] or g != f.home_group[k])


@jit
def closed(s: TwoLevelState, f: Fences, V: Array, rate: float, k: int, g: int) -> int:
    """Why flow k (in no session) may not enter group g, 0 if it may."""
    if f.pin[k] >= 0 and f.pin[k] != g:
        return PINNED
    for i in range(f.apart_offsets[k], f.apart_offsets[k + 1]):
        other = s.session_of[f.apart[i]]
        if other >= 0 and s.group_of[other] == g:
            return APART
    if s.Theta[g] + rate > f.rate:
        return RATE
    fresh = 0
    for u in V:
        if s.group_member[u, g] == 0:
            if f.joined[u] >= f.joins:
                return JOINS
            fresh += f.before[u, g] == 0
    if f.used[1] + fresh > f.new_joins:
        return NEW_JOINS
    return 0


@jit
def limited_sweep(
    offsets: Array, users: Array, rates: Array, order: Array, s: TwoLevelState, p: Prices, f: Fences,
    heat: float, noise: Array, starts: Array, blocked: Array, gains: Array,
) -> tuple[int, int]:  # fmt: skip
    """Move or place each flow where it costs least among the places it may go.

    Returns (moves, flows without a place); `blocked[reason]` counts the groups closed to the latter.
    With room in `gains` nothing moves: it is told there what the best move of each flow would save.
    """
    n, m = s.theta.size, s.Theta.size
    w = scratch(n, m)
    why = np.zeros(m, np.int64)
    moves, lost = 0, 0
    for i in range(order.size):
        k, at = order[i], starts[i]
        V = users[offsets[k] : offsets[k + 1]]
        old = s.session_of[k]
        old_group = s.group_of[old] if old >= 0 else -1
        if old >= 0:
            leave(s, f, V, rates[k], k, old)
            s.session_of[k] = -1
        price_sessions(s, V, rates[k], p, w)
        cheapest = -1
        for g in range(m):
            why[g] = closed(s, f, V, rates[k], k, g)
            if why[g] == 0 and (cheapest < 0 or w.group_price[g] < w.group_price[cheapest]):
                cheapest = g
        best, least = -1, np.inf
        if old >= 0:
            s.group_of[old] = old_group
            best, least = (
                old,
                (w.price[old] + w.group_price[old_group]) * (1 - 1e-12) - heat * noise[(at + old) % TABLE],
            )
        stay = least
        for l in range(n):
            if s.session_flows[l] == 0 and l != old:
                # An empty session opens in the cheapest open group, or at home where the flow came from.
                s.group_of[l] = f.home_group[k] if f.home[k] == l else cheapest
            g = s.group_of[l]
            if g < 0 or why[g] != 0:
                continue
            away = f.home[k] >= 0 and (l != f.home[k] or g != f.home_group[k])
            if away and f.used[0] >= f.moves:
                continue
            value = w.price[l] + w.group_price[g] - heat * noise[(at + l) % TABLE]
            if value < least:
                best, least = l, value
        for l in range(n):
            if s.session_flows[l] == 0 and s.group_of[l] < 0:
                s.group_of[l] = 0
        if gains.size and old >= 0:
            gains[k] = stay - least
            best = old
        if best < 0:
            lost += 1
            for g in range(m):
                blocked[why[g] if why[g] > 0 else MOVES] += 1
            continue
        enter(s, f, V, rates[k], k, best)
        s.session_of[k] = best
        moves += best != old
    return moves, lost


@jit
def settle(offsets: Array, users: Array, rates: Array, order: Array, target: Array, s: TwoLevelState, f: Fences) -> int:
    """Put each flow into its target session where no limit forbids it; returns how many stay without."""
    lost = 0
    for k in order:
        l = target[k]
        V = users[offsets[k] : offsets[k + 1]]
        away = l >= 0 and f.home[k] >= 0 and (l != f.home[k] or s.group_of[l] != f.home_group[k])
        if l < 0 or (away and f.used[0] >= f.moves) or closed(s, f, V, rates[k], k, s.group_of[l]) != 0:
            lost += 1
            continue
        enter(s, f, V, rates[k], k, l)
        s.session_of[k] = l
    return lost
