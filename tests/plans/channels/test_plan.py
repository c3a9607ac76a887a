"""Every method: legal, true costs, the same for the same seed, the input untouched."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import narrowcast as nc
from naive.channels_cost import two_level_cost
from naive.exhaustive_channels import least_cost
from naive.random_interest import random_interest
from narrowcast.model import Interest
from narrowcast.plans.channels.api import METHODS

EVERY = pytest.mark.parametrize("method", METHODS)


@pytest.fixture(scope="module")
def market() -> Interest:
    return nc.workloads.market(symbols=600, markets=4, users=40, share=0.04, seed=3)


@EVERY
@settings(max_examples=15)
@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([0.0, 0.3, 1.0]), beta=st.sampled_from([0.0, 1.0, 2.0]))
def test_every_plan_is_legal_within_budget_and_costs_what_it_says(
    method: str, seed: int, alpha: float, beta: float
) -> None:
    interest = random_interest(seed, flows=15)
    r = nc.channels.plan(interest, groups=3, sessions=5, method=method, alpha=alpha, beta=beta, seed=seed)
    assert nc.channels.illegal(interest, r.session_of_flow, r.group_of_session) == []
    assert r.group_of_session.size <= 5
    assert np.unique(r.group_of_session).size <= 3
    expected = two_level_cost(interest, r.session_of_flow, r.group_of_session, alpha, beta)
    assert r.cost.excess == pytest.approx(expected["excess"], rel=1e-9, abs=1e-9)
    assert ((r.session_of_flow < 0) == (interest.audience_sizes == 0)).all()


@EVERY
def test_the_same_seed_gives_the_same_plan_and_leaves_the_input_alone(method: str, market: Interest) -> None:
    before = (market.offsets.copy(), market.users.copy(), market.rates.copy())
    one, two = (nc.channels.plan(market, groups=5, sessions=20, method=method, seed=7) for _ in range(2))
    assert (one.session_of_flow == two.session_of_flow).all()
    assert (one.group_of_session == two.group_of_session).all()
    for was, now in zip(before, (market.offsets, market.users, market.rates), strict=True):
        assert (was == now).all()


@pytest.mark.parametrize("workload", ["market", "random", "mechanical"])
def test_search_is_never_worse_than_a_published_method(workload: str, market: Interest) -> None:
    interest = {
        "market": market,
        "random": nc.workloads.random(flows=300, users=30, share=0.1, seed=1),
        "mechanical": nc.workloads.mechanical(processes=30, topics=400, seed=1),
    }[workload]
    cost = {m: nc.channels.plan(interest, groups=6, sessions=24, method=m, seed=2).cost.excess for m in METHODS}
    assert cost["search"] <= min(cost.values()) * (1 + 1e-12)
    assert cost["random"] > cost["gf"]


def test_search_is_clearly_below_the_published_methods_on_market_data(market: Interest) -> None:
    cost = {m: nc.channels.plan(market, groups=6, sessions=24, method=m).cost.excess for m in METHODS}
    assert cost["search"] < 0.97 * min(cost[m] for m in ("sf", "gf", "it", "rra"))


def test_more_sessions_help_at_equal_groups(market: Interest) -> None:
    costs = [nc.channels.plan(market, groups=5, sessions=n).cost.excess for n in (5, 15, 45)]
    assert costs == sorted(costs, reverse=True)


def exhausted(seeds: range, flows: tuple[int, int]) -> float:
    """The part of instances where search finds the least cost there is."""
    found = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        interest = random_interest(seed, flows=int(rng.integers(*flows)), users=int(rng.integers(3, 12)))
        groups = int(rng.integers(1, 4))
        sessions = groups + int(rng.integers(0, 4))
        least = least_cost(interest, groups, sessions, 1.0, 1.0)
        total = nc.channels.plan(interest, groups=groups, sessions=sessions, seed=seed).cost.total
        assert total >= least - 1e-9 * max(least, 1)
        found += total <= least * (1 + 1e-9) + 1e-9
    return found / len(seeds)


def test_search_finds_the_exhaustive_optimum_of_small_systems() -> None:
    assert exhausted(range(60), (4, 11)) >= 0.95


@pytest.mark.nightly
def test_search_finds_the_exhaustive_optimum_of_200_systems_of_up_to_14_flows() -> None:
    assert exhausted(range(200), (6, 15)) >= 0.95


def test_a_time_limit_is_kept_and_progress_is_told(market: Interest) -> None:
    seen: list[nc.channels.Progress] = []
    r = nc.channels.plan(market, groups=6, sessions=24, time_limit=0.6, progress=seen.append)
    assert seen
    assert seen[-1].best == pytest.approx(r.cost.total)
    assert all(a.best >= b.best for a, b in itertools.pairwise(seen))
    assert seen[-1].elapsed_s < 5


def test_nothing_to_plan_is_a_plan() -> None:
    nobody = Interest.from_pairs([], [], [1.0, 2.0], n_users=3)
    r = nc.channels.plan(nobody, groups=2, sessions=3)
    assert r.session_of_flow.tolist() == [-1, -1]
    assert r.group_of_session.size == 0
    assert (r.cost.c1, r.cost.excess, r.cost.relative) == (0, 0, 0)


def test_what_cannot_be_planned_is_said_in_one_line(market: Interest) -> None:
    with pytest.raises(nc.errors.InputError, match=r"method must be one of search, sf.*, got 'best'"):
        nc.channels.plan(market, method="best")
    with pytest.raises(nc.errors.InputError, match="groups must be a whole number above 0, got 0"):
        nc.channels.plan(market, groups=0)
    with pytest.raises(nc.errors.InputError, match="time_limit must be above 0, got 0"):
        nc.channels.plan(market, time_limit=0)
