"""Lightest and heaviest flow and user (the hybrid paper, §4.2): unicast in order of weight.

A flow weighs λ|V|, a user the rate of all it wants. Once: drop in that order as long as C' falls.
Iterative: channelize again after each drop.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from narrowcast.model.arrays import Floats, Ints
from narrowcast.plans.channels.kernels import greedy_unicast as kernel
from narrowcast.plans.channels.kernels.greedy_unicast import Mixed
from narrowcast.plans.channels.mixed import Weights, mixed
from narrowcast.plans.channels.points import Points

Channelizer = Callable[[Points, Ints], Ints]


def ordered_unicast(points: Points, plan: Mixed, w: Weights, *, heaviest: bool, by_user: bool) -> None:
    """Drop whole flows or users in order; ends at the least C' met on the way within the cap."""
    drops = _order(points, heaviest=heaviest, by_user=by_user)
    pairs = np.concatenate([*drops, np.zeros(0, np.int64)])
    ends = np.cumsum([len(drop) for drop in drops], dtype=np.int64)
    best = kernel.least_on_the_way(
        points.offsets, points.users, points.rates, _copy(plan), points.point_of_pair, pairs, ends,
        w.receive, w.send, w.unicast, w.cap,
    )  # fmt: skip
    if best > 0:
        _drop(points, plan, pairs[: ends[best - 1]])


def iterative_unicast(
    points: Points, plan: Mixed, w: Weights, channelize: Channelizer, *, heaviest: bool, by_user: bool
) -> Mixed:
    """Drop the next flow or user and channelize what is left, as long as C' falls."""
    groups = plan.Theta.size
    least = _cost(points, plan, w)[0]
    for pairs in _order(points, heaviest=heaviest, by_user=by_user):
        trial = _copy(plan)
        _drop(points, trial, pairs)
        trial = mixed(points, rechannelized(points, trial, channelize), trial.alone, groups)
        cost, unicast = _cost(points, trial, w)
        if cost >= least * (1 - 1e-12) or unicast > w.cap * cost * (1 + 1e-12):
            break
        plan, least = trial, cost
    return plan


def rechannelized(points: Points, plan: Mixed, channelize: Channelizer) -> Ints:
    """New groups for the flows that still have multicast users, from those they are in."""
    sent = np.flatnonzero(plan.group_of >= 0)
    thin = points.kept(~plan.alone).subset(sent)
    group = np.full(points.n, -1)
    if sent.size:
        group[sent] = channelize(thin, plan.group_of[sent])
    return group


def _order(points: Points, *, heaviest: bool, by_user: bool) -> list[Ints]:
    """The pairs of each flow or user, in the order they are dropped."""
    weight: Floats
    if by_user:
        weight = np.bincount(points.users, points.rates[points.point_of_pair], minlength=points.n_users).astype(
            np.float64
        )
        pairs, offsets = np.argsort(points.users, kind="stable"), points.by_user[0]
    else:
        weight = points.rates * points.sizes
        pairs, offsets = np.arange(points.users.size), points.offsets
    order = np.argsort(-weight if heaviest else weight, kind="stable")
    return [pairs[offsets[i] : offsets[i + 1]] for i in order if offsets[i + 1] > offsets[i]]


def _drop(points: Points, plan: Mixed, pairs: Ints) -> None:
    kernel.drop_pairs(points.users, points.rates, plan, points.point_of_pair, pairs)


def _cost(points: Points, plan: Mixed, w: Weights) -> tuple[float, float]:
    cost, unicast = kernel.mixed_cost(points.offsets, points.rates, plan, w.receive, w.send, w.unicast)
    return float(cost), float(unicast)


def _copy(plan: Mixed) -> Mixed:
    return Mixed(*(array.copy() for array in plan))
