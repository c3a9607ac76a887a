"""Plans under real limits keep them, and the limit that cannot be kept is named."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import narrowcast as nc
from naive.random_interest import random_interest
from narrowcast.channels import Limits
from narrowcast.model import Interest


def joins(interest: Interest, r: nc.channels.ChannelPlan) -> set[tuple[int, int]]:
    """(user, group) pairs, counted one by one."""
    return {(int(u), int(r.group_of_flow[k])) for k in range(interest.n_flows) for u in interest.users_of(k)}


def moved(old: nc.channels.ChannelPlan, new: nc.channels.ChannelPlan) -> int:
    both = (old.session_of_flow >= 0) & (new.session_of_flow >= 0)
    changed = (old.session_of_flow != new.session_of_flow) | (old.group_of_flow != new.group_of_flow)
    return int((both & changed).sum())


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), most=st.integers(1, 3))
def test_no_user_joins_more_groups_than_it_may(seed: int, most: int) -> None:
    interest = random_interest(seed, flows=20)
    r = nc.channels.plan(interest, 6, 10, limits=Limits(joins_per_user=most))
    counts = np.bincount([u for u, _ in joins(interest, r)], minlength=1)
    assert counts.max() <= most
    assert ((r.session_of_flow < 0) == (interest.audience_sizes == 0)).all()


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), slack=st.floats(1.1, 2))
def test_no_group_carries_more_than_it_may(seed: int, slack: float) -> None:
    interest = random_interest(seed, flows=20)
    rates = np.where(interest.audience_sizes > 0, interest.rates, 0)
    cap = slack * max(rates.max(), rates.sum() / 4) + 1e-9
    try:
        r = nc.channels.plan(interest, 4, 10, limits=Limits(rate_per_group=cap))
    except nc.errors.InfeasibleError as error:
        assert error.budget == "rate_per_group"  # noqa: PT017
        return
    sent = r.group_of_flow >= 0
    assert np.bincount(r.group_of_flow[sent], rates[sent], minlength=1).max() <= cap * (1 + 1e-9)


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6))
def test_pinned_flows_stay_and_flows_kept_apart_never_meet(seed: int) -> None:
    interest = random_interest(seed, flows=15)
    limits = Limits(pinned={0: 3, 1: 2}, apart=[(0, 2), (2, 4), (5, 6)])
    r = nc.channels.plan(interest, 4, 8, limits=limits)
    wanted = interest.audience_sizes > 0
    for flow, group in limits.pinned.items():
        assert not wanted[flow] or r.group_of_flow[flow] == group
    for one, two in limits.apart:
        assert not (wanted[one] and wanted[two]) or r.group_of_flow[one] != r.group_of_flow[two]


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), moves=st.integers(0, 6), more=st.integers(0, 5))
def test_a_plan_is_within_the_migration_budget_of_the_previous_one_and_no_worse(
    seed: int, moves: int, more: int
) -> None:
    interest = random_interest(seed, flows=15)
    old = nc.channels.plan(interest, 3, 6, method="random", seed=seed)
    new = nc.channels.plan(interest, 3, 6, previous=old, limits=Limits(moves=moves, new_joins=more))
    assert moved(old, new) <= moves
    assert len(joins(interest, new) - joins(interest, old)) <= more
    assert new.cost.excess <= old.cost.excess + 1e-9
    if moves == 0:
        assert moved(old, new) == 0


def test_a_larger_migration_budget_ends_lower() -> None:
    interest = nc.workloads.market(symbols=400, markets=3, users=30, share=0.05, seed=0)
    old = nc.channels.plan(interest, 5, 15, method="random")
    costs = [nc.channels.plan(interest, 5, 15, previous=old, limits=Limits(moves=m)).cost.excess for m in (0, 30, 300)]
    assert costs[0] == pytest.approx(old.cost.excess)
    assert costs[0] > costs[1] > costs[2]


def test_new_interest_joins_what_it_must_and_says_when_it_may_not() -> None:
    before = Interest.from_pairs([0, 1], [0, 1], [1.0, 1.0], n_users=2)
    old = nc.channels.plan(before, 2, 2)
    after = Interest.from_pairs([0, 0, 1], [0, 1, 1], [1.0, 1.0], n_users=2)
    new = nc.channels.plan(after, 2, 2, previous=old, limits=Limits(moves=0, new_joins=1))
    assert joins(after, new) - joins(before, old) == {(1, int(old.group_of_flow[0]))}
    with pytest.raises(nc.errors.InfeasibleError) as caught:
        nc.channels.plan(after, 2, 2, previous=old, limits=Limits(moves=0, new_joins=0))
    assert caught.value.budget == "new_joins"


def test_the_limit_that_binds_is_named_with_the_smallest_that_would_do() -> None:
    interest = Interest.from_pairs([0, 1, 2], [0, 1, 2], [4.0, 2.0, 2.0])
    with pytest.raises(nc.errors.InfeasibleError, match="at least 4 each") as caught:
        nc.channels.plan(interest, 2, 3, limits=Limits(rate_per_group=3))
    assert (caught.value.budget, caught.value.smallest) == ("rate_per_group", 4.0)
    assert nc.channels.plan(interest, 2, 3, limits=Limits(rate_per_group=4)).cost.excess == pytest.approx(4.0)
    with pytest.raises(nc.errors.InfeasibleError) as caught:
        nc.channels.plan(interest, 2, 3, limits=Limits(apart=[(0, 1), (1, 2), (0, 2)]))
    assert caught.value.budget == "apart"
    with pytest.raises(nc.errors.InfeasibleError) as caught:
        nc.channels.plan(interest, 2, 3, limits=Limits(pinned={0: 1, 1: 1}, apart=[(0, 1)]))
    assert caught.value.budget == "apart"
    with pytest.raises(nc.errors.InputError, match=r"pinned\[0\] is 9"):
        nc.channels.plan(interest, 2, 3, limits=Limits(pinned={0: 9}))
    with pytest.raises(nc.errors.InputError, match="joins_per_user is 0"):
        nc.channels.plan(interest, 2, 3, limits=Limits(joins_per_user=0))
    with pytest.raises(nc.errors.UnsupportedError):
        nc.channels.plan(interest, 2, 3, method="gf", limits=Limits(joins_per_user=1))


def test_limits_that_do_not_bind_cost_little() -> None:
    interest = nc.workloads.market(symbols=400, markets=3, users=30, share=0.05, seed=0)
    free = nc.channels.plan(interest, 5, 15)
    loose = nc.channels.plan(interest, 5, 15, limits=Limits(joins_per_user=5))
    tight = nc.channels.plan(interest, 5, 15, limits=Limits(joins_per_user=2))
    assert loose.cost.excess < 1.15 * free.cost.excess
    assert tight.cost.excess > free.cost.excess
