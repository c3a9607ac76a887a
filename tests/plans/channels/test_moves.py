"""The search's moves: each flow goes to its cheapest place, and what is kept up to date stays true."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import narrowcast as nc
from naive import two_level_move as naive
from naive.channels_cost import one_level_cost
from naive.random_interest import random_interest
from narrowcast.plans.channels.kernels.group_bath import group_bath
from narrowcast.plans.channels.kernels.kmeans import kmeans
from narrowcast.plans.channels.kernels.two_level import Prices, sweep
from narrowcast.plans.channels.methods.kmeans import counts
from narrowcast.plans.channels.methods.rough import rough
from narrowcast.plans.channels.methods.state import NOISE, anneal, pack, state_cost
from narrowcast.plans.channels.points import Points, plain

GROUPS, SESSIONS = 3, 6


def sets(points: Points) -> list[set[int]]:
    return [set(points.users[points.offsets[k] : points.offsets[k + 1]].tolist()) for k in range(points.n)]


def some_plan(points: Points, seed: int) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    rng = np.random.default_rng(seed)
    # Often with sessions to spare.
    return rng.integers(0, rng.integers(1, SESSIONS + 1), points.n), rng.integers(0, GROUPS, SESSIONS)


@given(st.integers(0, 10**6), st.sampled_from([(1.0, 1.0), (0.3, 2.0), (2.0, 0.0)]))
def test_a_flow_goes_to_the_place_that_trying_every_place_finds(seed: int, prices: tuple[float, float]) -> None:
    points, _ = plain(random_interest(seed))
    if points.n == 0:
        return
    session_of, group_of = some_plan(points, seed)
    k = seed % points.n
    state = pack(points, session_of, group_of, GROUPS)
    expected = naive.least(
        sets(points), points.rates, session_of.tolist(), group_of.tolist(), GROUPS, k, prices[0], prices[1]
    )
    p = Prices(prices[0], prices[1], 0.0, np.inf)
    sweep(points.offsets, points.users, points.rates, np.array([k]), state, p, 0.0, NOISE, np.zeros(1, np.int64))
    found = naive.total(
        sets(points), points.rates, state.session_of.tolist(), state.group_of.tolist(), prices[0], prices[1]
    )
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 0.1, 3.0]))
def test_the_cost_that_is_kept_is_the_cost_of_the_maps_at_any_heat(seed: int, heat: float) -> None:
    points, _ = plain(random_interest(seed))
    if points.n == 0:
        return
    state = pack(points, *some_plan(points, seed), GROUPS)
    prices = Prices(1.0, 0.5, 0.0, np.inf)
    anneal(points, state, prices, [heat] * 4, np.random.default_rng(seed))
    expected = naive.total(sets(points), points.rates, state.session_of.tolist(), state.group_of.tolist(), 1.0, 0.5)
    assert state_cost(points, state, prices) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.integers(0, 10**6), st.integers(1, 5))
def test_a_bath_without_heat_is_a_pass_of_kmeans(seed: int, groups: int) -> None:
    points, _ = plain(random_interest(seed))
    if points.n == 0:
        return
    rng = np.random.default_rng(seed)
    start, order = rng.integers(0, groups, points.n), rng.permutation(points.n)
    by_bath, by_kmeans = start.copy(), start.copy()
    arrays = points.offsets, points.users, points.rates
    group_bath(
        *arrays, order[None], by_bath, counts(points, groups), np.zeros(1), NOISE, np.zeros((1, points.n), np.int64)
    )
    kmeans(*arrays, order, by_kmeans, counts(points, groups), 1)
    costs = [one_level_cost(sets(points), points.rates, found.tolist()) for found in (by_bath, by_kmeans)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-6, abs=1e-9)


@settings(max_examples=5)
@given(st.integers(0, 10**6))
def test_rough_groups_are_the_same_for_the_same_seed_and_below_kmeans(seed: int) -> None:
    points, _ = plain(nc.workloads.market(symbols=600, markets=4, users=40, share=0.04, seed=seed % 100))
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 6, points.n)
    plans = [rough(points, 6, 20, start, lambda done: done / 200, np.random.default_rng(seed)) for _ in range(2)]
    assert (plans[0][0] == plans[1][0]).all()
    order, local = rng.permutation(points.n), start.copy()
    kmeans(points.offsets, points.users, points.rates, order, local, counts(points, 6), 100)
    session_of, group_of = plans[0]
    assert points.merged(group_of[session_of], 6).useful < points.merged(local, 6).useful
