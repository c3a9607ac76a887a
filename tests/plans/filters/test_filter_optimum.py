"""The exact curve and the price search against exhaustive search and the paper's recurrence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import narrowcast as nc
from naive.filter_cost import traffic
from naive.filter_optimum import exhaustive_curve, printed_curve, recurrence_curve
from naive.filter_problems import complete_binary, random_problem, recursive_tree, some_flow
from narrowcast.plans.filters import problem as _problem
from narrowcast.plans.filters.methods import optimum


@pytest.mark.parametrize("block", range(10))
def test_a_thousand_random_trees_have_the_exhaustive_curve_and_placement(block):
    for seed in range(100 * block, 100 * block + 100):
        tree, f, *_ = random_problem(seed)
        k = int(tree.can_filter.sum()) + seed % 3
        best = exhaustive_curve(tree, f, k)
        r = nc.filters.place(tree, f, k)
        assert r.curve.tolist() == best
        assert r.method == "exact"
        for j in range(k + 1):
            one = nc.filters.place(tree, f, j)
            assert len(one.filters) <= j
            assert traffic(tree, f, set(one.filters.tolist())) == best[j] == one.traffic == one.lower_bound


@pytest.mark.slow
@given(seed=st.integers(0, 10**6))
def test_the_price_search_brackets_the_optimum_and_is_exact_where_it_says_so(seed):
    tree, f, *_ = random_problem(seed, most=60, whole=seed % 2 == 0)
    k = int(np.random.default_rng(seed).integers(0, 12))
    exact = nc.filters.place(tree, f, k, method="exact")
    price = nc.filters.place(tree, f, k, method="price")
    slack = 1e-9 * (1 + exact.curve[0])
    assert price.method == "price"
    assert len(price.filters) <= k
    assert price.lower_bound <= exact.traffic + slack
    assert exact.traffic <= price.traffic + slack
    assert (price.curve_bound <= exact.curve + slack).all()
    assert (price.curve >= exact.curve - slack).all()
    if price.gap == 0:
        assert price.traffic == pytest.approx(exact.traffic)


@given(seed=st.integers(0, 10**6))
def test_the_curve_is_that_of_the_papers_recurrence_on_larger_trees(seed):
    tree, f, *_ = random_problem(seed, most=80, whole=False)
    r = nc.filters.place(tree, f, 9)
    assert r.curve == pytest.approx(recurrence_curve(tree, f, 9))
    assert r.traffic == pytest.approx(r.curve[-1])


def test_the_recurrence_itself_agrees_with_exhaustive_search():
    for seed in range(100):
        tree, f, *_ = random_problem(seed, most=9)
        assert recurrence_curve(tree, f, 4) == printed_curve(tree, f, 4) == exhaustive_curve(tree, f, 4)


def test_the_example_of_figure_one_needs_every_filter_to_reach_its_floor():
    tree = complete_binary(4)
    f = some_flow(tree, seed=1, items=8)
    r = nc.filters.place(tree, f, 7)
    assert r.curve[0] == f[0] * 14
    assert r.curve[7] == f[1:].sum()
    assert (np.diff(r.curve) <= 0).all()


def test_the_curve_stays_flat_beyond_the_number_of_hosts():
    tree = nc.Tree([-1, 0, 0])
    r = nc.filters.place(tree, [2, 1, 1], k=4)
    assert r.curve.tolist() == [4, 2, 2, 2, 2]
    assert r.filters.tolist() == [0]


def test_no_filter_is_spent_where_it_saves_nothing():
    tree = complete_binary(5)
    for method in ("exact", "price"):
        assert nc.filters.place(tree, np.full(31, 7.0), 10, method=method).filters.size == 0


def test_a_tree_of_one_vertex_has_no_traffic():
    r = nc.filters.place(nc.Tree([-1]), [3], k=2)
    assert (r.traffic, r.gap, r.curve.tolist()) == (0.0, 0.0, [0, 0, 0])


def test_a_long_path_goes_to_the_price_search_and_neither_overflows_nor_hangs():
    n = 20_000
    tree = nc.Tree(np.arange(-1, n - 1))
    f = np.sort(np.random.default_rng(0).integers(1, 10**6, n))[::-1]
    r = nc.filters.place(tree, f, 100)
    assert (r.method, r.filters.size) == ("price", 100)
    assert r.gap <= 1e-3


def test_a_path_with_few_different_flows_is_exact_because_equal_flows_share_a_state():
    n = 20_000
    tree = nc.Tree(np.arange(-1, n - 1))
    r = nc.filters.place(tree, np.repeat(np.arange(20, 0, -1), n // 20), 10)
    assert r.method == "exact"
    assert r.traffic <= r.curve[9] < r.curve[0]


def test_small_limits_send_a_bushy_tree_to_the_price_search(monkeypatch):
    tree = recursive_tree(2_000, seed=3)
    f = some_flow(tree, seed=3)
    exact = nc.filters.place(tree, f, 30)
    monkeypatch.setattr(optimum, "WORK_LIMIT", 10.0)
    price = nc.filters.place(tree, f, 30)
    assert (exact.method, price.method) == ("exact", "price")
    assert price.traffic == pytest.approx(exact.traffic, rel=0.01)


def test_between_two_corners_of_the_hull_the_gap_is_honest_and_small():
    tree = complete_binary(9)
    f = np.array([200 / (1 + int(d)) for d in tree.depth])  # wholly symmetric: long edges
    for k in (2, 5, 6, 11, 23, 50):
        exact, price = (nc.filters.place(tree, f, k, method=m) for m in ("exact", "price"))
        assert price.lower_bound <= exact.traffic * (1 + 1e-12)
        assert price.traffic >= exact.traffic * (1 - 1e-12)
        assert price.gap <= 0.02


def test_the_walk_keeps_few_tables_alive():
    tree = recursive_tree(20_000, seed=1)
    f = some_flow(tree, seed=1)
    way = _problem.walked(tree, f, _problem.traffic_objective(tree))
    plan = optimum.layout(way.core, 50)
    assert plan.stack_cells < 0.02 * (plan.states * 51).sum()


def test_the_same_problem_gives_the_same_placement_and_is_left_untouched():
    tree = recursive_tree(500, seed=2)
    f = some_flow(tree, seed=2)
    kept = f.copy()
    first, second = (nc.filters.place(tree, f, 20) for _ in range(2))
    assert first.filters.tolist() == second.filters.tolist()
    assert (f == kept).all()


@pytest.mark.nightly
@pytest.mark.parametrize("tree", [recursive_tree(100_000, 0), complete_binary(17)], ids=["random", "binary"])
def test_a_hundred_filters_on_a_hundred_thousand_vertices_are_placed_exactly(tree):
    r = nc.filters.place(tree, some_flow(tree, seed=0), 100)
    assert (r.method, r.gap, r.filters.size) == ("exact", 0.0, 100)


@pytest.mark.nightly
def test_the_price_search_on_five_million_vertices_has_a_gap_of_at_most_one_percent():
    tree = recursive_tree(5_000_000, seed=0)
    r = nc.filters.place(tree, some_flow(tree, seed=0, items=2000), 100, method="price")
    assert r.filters.size == 100
    assert r.gap <= 0.01
