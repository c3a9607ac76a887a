"""Real limits as constraints: what switches, sockets, entitlements and a running system allow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from narrowcast.errors import InfeasibleError, InputError
from narrowcast.model import Interest
from narrowcast.model.arrays import Ints
from narrowcast.plans.channels.kernels.limited import Fences
from narrowcast.plans.channels.points import Points

HUGE = 2**62
# In the order of the kernel's reasons.
REASONS = ("", "rate_per_group", "joins_per_subscriber", "pinned", "apart", "moves", "new_joins")


@dataclass(frozen=True, eq=False)
class Limits:
    """What a plan must keep to, beyond its numbers of groups and sessions.

    `joins_per_subscriber`: groups a receiver may join (Linux allows 20 per socket by default).
    `rate_per_group`: the most a group may carry. `pinned`: {flow: group}. `apart`: pairs of flows
    that must not share a group, since a member of a group sees all of it. `moves` and `new_joins`
    bound the way from a previous plan: flows that change session or group, and (user, group) joins
    that were not there before.
    """

    joins_per_subscriber: int | None = None
    rate_per_group: float | None = None
    pinned: Mapping[int, int] = field(default_factory=dict)
    apart: Iterable[tuple[int, int]] = ()
    moves: int | None = None
    new_joins: int | None = None


def check_limits(interest: Interest, groups: int, limits: Limits) -> Ints:
    """Refuse what is malformed (InputError) or provably cannot be kept; returns `apart` as an array."""
    for name in ("joins_per_subscriber", "moves", "new_joins"):
        value = getattr(limits, name)
        if value is not None and value < (name == "joins_per_subscriber"):
            raise InputError(f"{name} must be {int(name == 'joins_per_subscriber')} or more, got {value}", name=name)
    for flow, group in limits.pinned.items():
        if not (0 <= flow < interest.n_flows and 0 <= group < groups):
            raise InputError(
                f"pinned must map flows < {interest.n_flows} to groups < {groups}, got {flow}: {group}", name="pinned"
            )
    apart = np.array(list(limits.apart), np.int64).reshape(-1, 2)
    if apart.size and (apart.min() < 0 or apart.max() >= interest.n_flows or (apart[:, 0] == apart[:, 1]).any()):
        raise InputError("apart must be pairs of different flows", name="apart", got=apart.tolist()[:3])
    for one, two in apart.tolist():
        if one in limits.pinned and limits.pinned[one] == limits.pinned.get(two):
            raise InfeasibleError(f"flows {one} and {two} must be apart but are pinned to one group", budget="apart")
    _check_rates(interest, groups, limits)
    return apart


def _check_rates(interest: Interest, groups: int, limits: Limits) -> None:
    cap = limits.rate_per_group
    if cap is None:
        return
    rates = interest.rates[interest.audience_sizes > 0]
    pinned: dict[int, float] = {}
    for flow, group in limits.pinned.items():
        if interest.audience_sizes[flow]:
            pinned[group] = pinned.get(group, 0.0) + float(interest.rates[flow])
    smallest = max(float(rates.max(initial=0)), float(rates.sum()) / groups, max(pinned.values(), default=0.0))
    if cap < smallest * (1 - 1e-12):
        raise InfeasibleError(
            f"rate_per_group is {cap:g}, but {groups} groups need at least {smallest:g} each",
            budget="rate_per_group",
            smallest=smallest,
        )


def fences(
    points: Points,
    point_of_flow: Ints,
    groups: int,
    limits: Limits,
    apart: Ints,
    previous: tuple[Ints, Ints] | None,
    joined: Interest,
) -> Fences:
    """The limits as the kernel wants them, for points that are single flows.

    `joined` is the interest for which users had joined the groups of the previous plan.
    """
    pin = np.full(points.n, -1)
    for flow, group in limits.pinned.items():
        if point_of_flow[flow] >= 0:
            pin[point_of_flow[flow]] = group
    both = point_of_flow[np.concatenate([apart, apart[:, ::-1]])]
    both = np.unique(both[(both >= 0).all(axis=1)], axis=0)
    home, home_group = np.full(points.n, -1), np.full(points.n, -1)
    before = np.zeros((points.n_users, groups), np.uint8)
    if previous is not None:
        session, group_of = previous
        kept = np.flatnonzero(point_of_flow >= 0)
        kept = kept[session[kept] >= 0]
        home[point_of_flow[kept]] = session[kept]
        home_group[point_of_flow[kept]] = group_of[session[kept]]
        pair_session = session[joined.flow_of_pair]
        sent = pair_session >= 0
        before[joined.users[sent], group_of[pair_session[sent]]] = 1
    return Fences(
        HUGE if limits.joins_per_subscriber is None else int(limits.joins_per_subscriber),
        np.inf if limits.rate_per_group is None else float(limits.rate_per_group) * (1 + 1e-12),
        pin,
        np.searchsorted(both[:, 0], np.arange(points.n + 1)),
        np.ascontiguousarray(both[:, 1]),
        home,
        home_group,
        before,
        HUGE if limits.moves is None else int(limits.moves),
        HUGE if limits.new_joins is None else int(limits.new_joins),
        np.zeros(points.n_users, np.int64),
        np.zeros(2, np.int64),
    )
