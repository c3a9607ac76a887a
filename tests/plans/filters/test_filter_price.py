"""Placements at a price: least delay, and both objectives weighed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import narrowcast as nc
from naive.filter_cost import delay, traffic
from naive.filter_optimum import placements, recurrence_delay
from naive.filter_problems import random_problem
from naive.filter_trim import trim as slow_trim
from narrowcast.plans.filters import problem as _problem
from narrowcast.plans.filters.kernels.core import core_cost
from narrowcast.plans.filters.kernels.price import priced
from narrowcast.plans.filters.kernels.splice import pieces
from narrowcast.plans.filters.kernels.trim import trim


@pytest.mark.parametrize("block", range(10))
def test_a_thousand_random_trees_have_the_exhaustive_least_delay(block):
    for seed in range(100 * block, 100 * block + 100):
        tree, f, *_ = random_problem(seed, most=9)
        F, c = float(seed % 5), float(1 + seed % 2)
        r = nc.filters.place_for_delay(tree, f, filter_delay=F, link_delay=c)
        best = min(delay(tree, f, P, F, c) for P in placements(tree))
        assert r.delay == pytest.approx(best, rel=1e-12)
        assert delay(tree, f, set(r.filters.tolist()), F, c) == pytest.approx(best, rel=1e-12)


@given(seed=st.integers(0, 10**6))
def test_the_least_delay_is_that_of_the_papers_recurrence_on_larger_trees(seed):
    tree, f, *_ = random_problem(seed, most=120, whole=False)
    r = nc.filters.place_for_delay(tree, f, filter_delay=0.3, link_delay=0.7)
    assert r.delay == pytest.approx(recurrence_delay(tree, f, 0.3, 0.7))


def test_the_weighed_sum_of_traffic_delay_and_price_is_least():
    for seed in range(150):
        tree, f, *_ = random_problem(seed, most=9)
        r = nc.filters.place_weighted(
            tree, f, traffic_weight=0.7, delay_weight=0.3, filter_delay=2, link_delay=1, price=1.5
        )
        values = [0.7 * traffic(tree, f, P) + 0.3 * delay(tree, f, P, 2, 1) + 1.5 * len(P) for P in placements(tree)]
        assert r.objective == pytest.approx(min(values), rel=1e-12)
        assert r.objective == pytest.approx(0.7 * r.traffic + 0.3 * r.delay + 1.5 * r.filters.size)


def test_free_filters_filter_everything_and_dear_ones_nothing():
    tree, f, *_ = random_problem(4, most=40)
    free = nc.filters.place_for_delay(tree, f, filter_delay=0, link_delay=1)
    everywhere = nc.filters.delay(tree, f, tree.can_filter, filter_delay=0, link_delay=1)
    assert free.delay == pytest.approx(everywhere)
    assert nc.filters.place_for_delay(tree, f, filter_delay=1e9, link_delay=1).filters.size == 0


def test_a_path_of_a_million_vertices_is_placed_without_recursion():
    n = 1_000_000
    r = nc.filters.place_for_delay(nc.Tree(np.arange(-1, n - 1)), np.arange(n, 0, -1), filter_delay=1e9, link_delay=1)
    assert 0 < r.filters.size < n


@given(seed=st.integers(0, 10**6))
def test_trimming_removes_the_least_missed_filter_each_time(seed):
    tree, f, *_ = random_problem(seed, most=25)
    way = _problem.walked(tree, f, _problem.traffic_objective(tree))
    mask = way.core.can & (np.random.default_rng(seed).random(way.core.can.size) < 0.8)
    removed, loss = trim(way.core, mask, 1)
    values = core_cost(way.core, mask) + np.cumsum(loss)
    assert values == pytest.approx(slow_trim(tree, f, set(way.filters(mask).tolist()), 1))
    assert len(set(removed.tolist())) == removed.size


@given(seed=st.integers(0, 10**6))
def test_exchanging_pieces_of_two_cheapest_placements_stays_cheapest(seed):
    tree, f, *_ = random_problem(seed, most=60)
    way = _problem.walked(tree, f, _problem.traffic_objective(tree))
    rng = np.random.default_rng(seed)
    price = float(rng.integers(1, 20))

    def value(mask):
        return core_cost(way.core, mask) + price * mask.sum()

    low = priced(way.core, np.full(way.vertex.size, price + 1e-9))
    high = priced(way.core, np.full(way.vertex.size, price - 1e-9))
    piece, more = pieces(way.core, low, high)
    taken = rng.random(more.size) < 0.5
    mixed = np.where((piece >= 0) & taken[piece], high, low)
    assert value(mixed) == pytest.approx(value(low), abs=1e-4)
    assert mixed.sum() == low.sum() + more[taken].sum()
