"""Ours: groups or unicast for each flow in one cost, from every published plan and the reverse start."""

from __future__ import annotations

from time import monotonic

import numpy as np

from narrowcast.model.arrays import Bools, Ints
from narrowcast.plans.channels.kernels.two_level import Prices
from narrowcast.plans.channels.methods.greedy_unicast import greedy_pair, greedy_user
from narrowcast.plans.channels.methods.groups_first import groups_first
from narrowcast.plans.channels.methods.reverse import reverse
from narrowcast.plans.channels.methods.search import Clock, Maps, search
from narrowcast.plans.channels.methods.state import descend, pack
from narrowcast.plans.channels.methods.streams_first import streams_first
from narrowcast.plans.channels.mixed import Weights, mixed, terms
from narrowcast.plans.channels.points import Points

# Under a cap, unicast is made dearer by these until a plan keeps it.
DEARER = (1.0, 1.3, 1.7, 2.2, 3.0, 4.0, 6.0, 10.0, 20.0)

Plan = tuple[Ints, Bools]
HYBRID_WORK = 1e9


def hybrid_search(points: Points, groups: int, w: Weights, starts: list[Ints], seed: int) -> list[Plan]:
    """Plans (group of each point, pairs by unicast) to choose from: annealed, then thinned pair by pair.

    `starts` are groups of points, −1 for unicast. Which of the results is best, and whether it keeps
    the cap, is the caller's to see.
    """
    found: list[Plan] = []
    for dearer in DEARER if w.cap < 1 else (1.0,):
        priced = Weights(w.receive, w.send, w.copy * dearer)
        begin = [*starts, np.full(points.n, -1), reverse(points, groups, priced)]
        polished = [_searched(points, groups, priced, start, seed, 0.0) for start in begin]
        quick = min(polished, key=lambda group: terms(points, *_plan(points, group), priced).total)
        if terms(points, *_plan(points, quick), w).unicast_share <= w.cap:
            slow = _searched(points, groups, priced, quick, seed, HYBRID_WORK)
            found += [_plan(points, slow), thinned(points, slow, groups, w)]
            found += [_plan(points, quick), thinned(points, quick, groups, w)]
            break
    return found


def _searched(points: Points, groups: int, w: Weights, start: Ints, seed: int, work: float) -> Ints:
    """Groups of points by the two-level search with a group per session and no flow filter."""
    prices = Prices(w.receive, 0.0, w.send, w.unicast)
    maps: Maps = (start, np.arange(groups))
    session_of, group_of = search(points, groups, groups, prices, [maps], seed, Clock(monotonic(), None), work=work)
    return np.where(session_of >= 0, group_of[session_of] if group_of.size else -1, -1)


def _plan(points: Points, group: Ints) -> Plan:
    return group, (group < 0)[points.point_of_pair]


def thinned(points: Points, group_of: Ints, groups: int, w: Weights) -> Plan:
    """Single pairs and whole users to unicast, where that still lowers C'."""
    plan = mixed(points, group_of, None, groups)
    greedy_pair(points, plan, w)
    greedy_user(points, plan, w)
    greedy_pair(points, plan, w)
    return plan.group_of, plan.alone


def two_level_hybrid(points: Points, groups: int, sessions: int, w: Weights, seed: int) -> Maps:
    """A session in a group or unicast (−1) for each point, in one cost; at or below pure multicast and unicast."""
    if points.n == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    prices = Prices(w.receive, w.filter, w.send, w.unicast)
    rng = np.random.default_rng([seed, 7])
    starts: list[Maps] = [
        groups_first(points, groups, sessions, rng),
        streams_first(points, groups, sessions, rng),
        (np.full(points.n, -1), np.arange(sessions) % groups),
    ]
    reversed_ = pack(points, starts[-1][0], starts[-1][1], groups)
    saved = points.rates * ((w.unicast - w.receive - w.filter) * points.sizes - w.send)
    descend(points, reversed_, prices, np.argsort(-saved, kind="stable"))
    starts.append((reversed_.session_of, reversed_.group_of))
    polished = [
        search(points, groups, sessions, prices, [start], seed, Clock(monotonic(), None), work=0.0) for start in starts
    ]
    return search(points, groups, sessions, prices, polished, seed, Clock(monotonic(), None))
