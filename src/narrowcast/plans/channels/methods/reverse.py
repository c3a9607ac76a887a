"""The reverse start (the hybrid paper, §4): all unicast, flows move to multicast while it pays."""

from __future__ import annotations

import numpy as np

from narrowcast.model.arrays import Ints
from narrowcast.plans.channels.kernels.two_level import Prices
from narrowcast.plans.channels.methods.state import descend, pack
from narrowcast.plans.channels.mixed import Weights
from narrowcast.plans.channels.points import Points


def reverse(points: Points, groups: int, w: Weights, start: Ints | None = None) -> Ints:
    """The group of each point, −1 for unicast.

    Points come in order of what a group of their own would save, λ(w3(w1+w2)|V| − w1|V| − w2): the
    first of them open the groups, the others join where that pays.
    """
    prices = Prices(w.receive, 0.0, w.send, w.unicast)
    saved = points.rates * ((w.unicast - w.receive) * points.sizes - w.send)
    given = np.full(points.n, -1) if start is None else start
    state = pack(points, given, np.arange(groups), groups)
    descend(points, state, prices, np.argsort(-saved, kind="stable"))
    return _groups(state.session_of, state.group_of)


def one_flow_per_group(points: Points, groups: int, w: Weights) -> Ints:
    """Each group to the one point that saves most with a group of its own, all others by unicast."""
    saved = points.rates * ((w.unicast - w.receive) * points.sizes - w.send)
    group = np.full(points.n, -1)
    first = np.argsort(-saved, kind="stable")[:groups]
    first = first[saved[first] > 0]
    group[first] = np.arange(first.size)
    return group


def _groups(session_of: Ints, group_of: Ints) -> Ints:
    return np.where(session_of >= 0, group_of[session_of], -1)
