"""Plans under real limits keep them, and the limit that cannot be kept is named."""

from __future__ import annotations

from time import monotonic

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import narrowcast as nc
from naive.random_interest import random_interest
from narrowcast.model import Interest
from narrowcast.plans.channels.api import Limits
from narrowcast.plans.channels.methods.limited_search import matched


def joins(interest: Interest, r: nc.channels.ChannelsPlan) -> set[tuple[int, int]]:
    """(user, group) pairs, counted one by one."""
    return {(int(u), int(r.group_of_flow[k])) for k in range(interest.n_flows) for u in interest.users_of(k)}


def moved(old: nc.channels.ChannelsPlan, new: nc.channels.ChannelsPlan) -> int:
    both = (old.session_of_flow >= 0) & (new.session_of_flow >= 0)
    changed = (old.session_of_flow != new.session_of_flow) | (old.group_of_flow != new.group_of_flow)
    return int((both & changed).sum())


@settings(max_examples=40)
@given(seed=st.integers(0, 10**6), most=st.integers(1, 3))
def test_no_user_joins_more_groups_than_it_may(seed: int, most: int) -> None:
    interest = random_interest(seed, flows=20)
    r = nc.channels.plan(interest, 6, 10, limits=Limits(joins_per_subscriber=most))
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
    with pytest.raises(nc.errors.InputError, match=r"pinned must map .*, got 0: 9"):
        nc.channels.plan(interest, 2, 3, limits=Limits(pinned={0: 9}))
    with pytest.raises(nc.errors.InputError, match="joins_per_subscriber must be 1 or more, got 0"):
        nc.channels.plan(interest, 2, 3, limits=Limits(joins_per_subscriber=0))
    with pytest.raises(nc.errors.UnsupportedError):
        nc.channels.plan(interest, 2, 3, method="gf", limits=Limits(joins_per_subscriber=1))


def test_limits_that_do_not_bind_cost_little() -> None:
    interest = nc.workloads.market(symbols=400, markets=3, users=30, share=0.05, seed=0)
    free = nc.channels.plan(interest, 5, 15)
    loose = nc.channels.plan(interest, 5, 15, limits=Limits(joins_per_subscriber=5))
    tight = nc.channels.plan(interest, 5, 15, limits=Limits(joins_per_subscriber=2))
    assert loose.cost.excess <= free.cost.excess * (1 + 1e-9)
    assert tight.cost.excess > free.cost.excess


def test_a_search_under_limits_keeps_to_its_time() -> None:
    interest = nc.workloads.market(symbols=2000, markets=4, users=100, share=0.02, seed=0)
    nc.channels.plan(interest, 8, 40, limits=Limits(joins_per_subscriber=7), time_limit=0.5)  # compile
    began = monotonic()
    r = nc.channels.plan(interest, 8, 40, limits=Limits(joins_per_subscriber=7), time_limit=1.0)
    assert monotonic() - began < 8
    assert max(np.bincount([u for u, _ in joins(interest, r)])) <= 7


def test_pinning_flows_where_they_are_but_under_other_numbers_costs_nothing() -> None:
    interest = nc.workloads.market(symbols=400, markets=3, users=30, share=0.05, seed=0)
    free = nc.channels.plan(interest, 5, 15)
    flows = [int(np.flatnonzero(free.group_of_flow == g)[0]) for g in range(5)]
    pinned = {flow: (g + 2) % 5 for g, flow in enumerate(flows)}
    r = nc.channels.plan(interest, 5, 15, limits=Limits(pinned=pinned))
    assert {flow: int(r.group_of_flow[flow]) for flow in flows} == pinned
    assert r.cost.excess <= free.cost.excess * (1 + 1e-9)


def test_a_migration_budget_goes_to_the_moves_that_save_most() -> None:
    interest = nc.workloads.market(symbols=400, markets=3, users=30, share=0.05, seed=0)
    old = nc.channels.plan(interest, 5, 15, method="random")
    ten = nc.channels.plan(interest, 5, 15, previous=old, limits=Limits(moves=10))
    wanted = np.flatnonzero(interest.audience_sizes > 0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        session = old.session_of_flow.copy()
        some = rng.choice(wanted, 10, replace=False)
        session[some] = rng.integers(0, old.group_of_session.size, 10)
        assert ten.cost.excess < nc.channels.cost(interest, session, old.group_of_session).excess


def test_without_a_budget_a_new_plan_still_keeps_the_numbers_of_the_previous_one_where_it_can() -> None:
    interest = nc.workloads.market(symbols=400, markets=3, users=30, share=0.05, seed=0)
    old = nc.channels.plan(interest, 5, 15, seed=1)
    turned = nc.channels.plan(interest, 5, 15, seed=1)
    order = np.random.default_rng(0).permutation(old.group_of_session.size)
    place = np.argsort(order)
    session = np.where(old.session_of_flow >= 0, place[old.session_of_flow], -1)
    group = (old.group_of_session[order] + 3) % 5
    again = nc.channels.plan(interest, 5, 15, seed=1, previous=(session, group))
    assert again.cost.excess <= turned.cost.excess * (1 + 1e-9)
    assert (again.session_of_flow == session).mean() > 0.9


@given(st.integers(0, 10**6), st.integers(1, 8))
def test_matched_numbers_are_all_different_and_the_heaviest_pair_is_matched(seed: int, n: int) -> None:
    weight = np.random.default_rng(seed).random((n, n))
    number = matched(weight)
    assert sorted(number.tolist()) == list(range(n))
    row, column = np.unravel_index(int(weight.argmax()), weight.shape)
    assert number[row] == column
