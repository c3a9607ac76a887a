"""Odd inputs: silent flows, one audience for all, more groups than flows, nobody at all, absurd budgets."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import narrowcast as nc
from narrowcast.model import Interest
from narrowcast.plans.channels.api import CHANNELIZERS, METHODS, UNICAST
from narrowcast.plans.channels.replan import continued
from narrowcast.plans.verbs import judge

ODD = {
    "silent": Interest.from_pairs([0, 1, 1, 2], [0, 0, 1, 2], [0.0, 0.0, 0.0]),
    "half silent": Interest.from_pairs([0, 1, 1, 2], [0, 0, 1, 2], [0.0, 2.0, 1.0]),
    "one audience": Interest.from_pairs(np.repeat(np.arange(9), 2), np.tile([0, 1], 9), np.arange(1.0, 10.0)),
    "one flow": Interest.from_pairs([0], [0], [3.0], n_users=5),
    "nobody": Interest.from_pairs([], [], [1.0, 2.0], n_users=2),
    "nothing": Interest.from_pairs([], [], []),
    "everyone wants everything": Interest.from_pairs(np.repeat(np.arange(4), 3), np.tile(np.arange(3), 4), np.ones(4)),
}
EVERY = pytest.mark.parametrize("interest", ODD.values(), ids=ODD)


@EVERY
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", [(1, 1), (2, 3), (40, 50), (9, 2)])
def test_every_method_plans_it(interest: Interest, method: str, budget: tuple[int, int]) -> None:
    r = nc.channels.plan(interest, *budget, method=method)
    assert nc.channels.illegal(interest, r.session_of_flow, r.group_of_session) == []
    assert np.isfinite(r.cost.relative)
    assert 0 <= r.lower_bound <= r.cost.excess + 1e-9
    assert set(r.baselines) >= {"flooding", "unicast", "perfect multicast", "hash", "greedy address"}


@EVERY
@pytest.mark.parametrize("unicast", UNICAST)
def test_every_choice_of_unicast_plans_it(interest: Interest, unicast: str) -> None:
    r = nc.channels.hybrid(interest, 2, unicast=unicast)
    assert r.cost >= r.cost.perfect - 1e-9
    assert 0 <= r.unicast_share <= 1


@EVERY
@pytest.mark.parametrize("channelizer", CHANNELIZERS)
def test_every_channelizer_plans_it(interest: Interest, channelizer: str) -> None:
    r = nc.channels.hybrid(interest, 2, channelizer, "greedy-pair")
    assert np.isfinite(r.percent_of_perfect)


@EVERY
def test_limits_and_sessions_with_unicast_plan_it(interest: Interest) -> None:
    limits = nc.channels.Limits(joins_per_subscriber=1)
    r = nc.channels.plan(interest, 3, 4, limits=limits)
    assert ((r.session_of_flow < 0) == (interest.audience_sizes == 0)).all()
    assert nc.channels.hybrid(interest, 2, sessions=3).cost >= 0


HUGE = 10**7
SOME = nc.workloads.market(symbols=60, users=12, share=0.2, seed=3)


@pytest.mark.parametrize("make", [nc.channels.plan, nc.channels.hybrid])
@pytest.mark.parametrize("budget", ["groups", "sessions"])
def test_an_absurd_budget_gets_one_line_that_names_it(make: Callable[..., nc.Plan], budget: str) -> None:
    with pytest.raises(nc.errors.InputError, match=f"^{budget} must be at most 10000000, got 100000000$"):
        make(SOME, **{budget: 10**8})
    with pytest.raises(nc.errors.InputError, match=f"^{budget} must be a whole number above 0, got 0"):
        make(SOME, **{budget: 0})


@pytest.mark.parametrize("method", METHODS)
def test_a_budget_far_above_what_can_be_used_is_kept_and_costs_no_work(method: str) -> None:
    r, other = (nc.channels.plan(SOME, n, n, method) for n in (HUGE, 10**5))
    assert (r.groups, r.sessions) == (HUGE, HUGE)
    assert judge(r).sound
    assert (r.session_of_flow == other.session_of_flow).all()
    assert (r.group_of_session == other.group_of_session).all()


@pytest.mark.parametrize("sessions", [None, HUGE])
def test_a_budget_far_above_what_can_be_used_is_fine_with_unicast_too(sessions: int | None) -> None:
    r = nc.channels.hybrid(SOME, HUGE, sessions=sessions)
    assert (r.groups, r.sessions) == (HUGE, sessions)
    assert judge(r).sound
    assert judge(continued(r, r.demand).anew().plan()).sound


def test_a_group_that_is_pinned_or_was_used_before_is_there_however_high_its_number() -> None:
    r = nc.channels.plan(SOME, HUGE, HUGE, limits=nc.channels.Limits(pinned={0: 5000}))
    assert r.group_of_flow[0] == 5000
    again = nc.channels.plan(SOME, HUGE, HUGE, previous=r, limits=nc.channels.Limits(moves=0))
    assert (again.group_of_flow == r.group_of_flow).all()
    assert judge(continued(r, r.demand).anew().plan()).sound
