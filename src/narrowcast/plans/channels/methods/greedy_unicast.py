"""Greedy flow, greedy user, greedy (flow, user) pair (the hybrid paper, §4.2)."""

from __future__ import annotations

import numpy as np

from narrowcast.plans.channels.kernels import greedy_unicast as kernel
from narrowcast.plans.channels.kernels.greedy_unicast import Mixed
from narrowcast.plans.channels.mixed import Weights
from narrowcast.plans.channels.points import Points


def greedy_flow(points: Points, plan: Mixed, w: Weights) -> None:
    """Send to unicast the flow that lowers C' most, until none does. Good where audiences nest."""
    _items(points, plan, w, by_pair=False)


def greedy_pair(points: Points, plan: Mixed, w: Weights) -> None:
    """Send to unicast the (flow, user) pair that lowers C' most, until none does."""
    _items(points, plan, w, by_pair=True)


def greedy_user(points: Points, plan: Mixed, w: Weights) -> None:
    """Send to unicast the user that lowers C' most, until none does. Good on market data."""
    order = np.argsort(points.users, kind="stable")
    user_offsets, flows = points.by_user
    kernel.greedy_users(
        points.offsets, points.users, points.rates, plan, user_offsets, flows, order,
        w.receive, w.send, w.unicast, w.cap,
    )  # fmt: skip


def _items(points: Points, plan: Mixed, w: Weights, *, by_pair: bool) -> None:
    sent = np.flatnonzero(plan.group_of >= 0)
    by_group = sent[np.argsort(plan.group_of[sent], kind="stable")]
    group_offsets = np.searchsorted(plan.group_of[by_group], np.arange(plan.Theta.size + 1))
    kernel.greedy_items(
        points.offsets, points.users, points.rates, plan, by_group, group_offsets, by_pair,
        w.receive, w.send, w.unicast, w.cap,
    )  # fmt: skip
