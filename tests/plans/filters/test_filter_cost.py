"""Traffic, delay, flow and importance against their definitions, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import narrowcast as nc
from naive import filter_cost as slow
from naive import filter_demand as slow_demand
from naive.filter_problems import complete_binary, random_problem
from narrowcast.errors import InputError, UnsupportedError

TREE = nc.Tree([-1, 0, 0, 1, 1], can_filter=[0], names=["w", "a", "b", "c", "d"])
FLOW = [3, 2, 1, 1, 1]


@given(seed=st.integers(0, 10**6))
def test_traffic_delay_and_importance_follow_their_definitions(seed):
    tree, f, *_ = random_problem(seed, most=40, whole=False)
    rng = np.random.default_rng(seed)
    mask = tree.can_filter & (rng.random(tree.n) < 0.5)
    P = set(np.flatnonzero(mask).tolist())
    assert nc.filters.traffic(tree, f, mask) == pytest.approx(slow.traffic(tree, f, P))
    assert nc.filters.traffic(tree, f, np.array(sorted(P), int)) == nc.filters.traffic(tree, f, mask)
    got = nc.filters.delay(tree, f, mask, filter_delay=0.4, link_delay=1.3)
    assert got == pytest.approx(slow.delay(tree, f, P, 0.4, 1.3))
    assert nc.filters.importance(tree, f, mask) == pytest.approx(slow.importance(tree, f, P), abs=1e-9)


@given(seed=st.integers(0, 10**6))
def test_flow_is_the_size_of_the_union_below(seed):
    tree, f, wanted, size = random_problem(seed, most=40, whole=False)
    assert f == pytest.approx(slow_demand.flow_from_demand(tree, wanted, size), abs=1e-12)
    assert (f[1:] >= 0).all()


@pytest.mark.parametrize("kind", ["uniform", "locality", "commuters"])
def test_flow_is_what_the_workload_counts_for_itself(kind):
    demand = nc.workloads.tree_demand(kind, levels=6, items=40, sizes=np.arange(40.0), seed=3)
    leaf, item = demand.pairs()
    assert nc.filters.flow_from_demand(demand.tree, leaf, item, np.arange(40.0)).tolist() == demand.flow.tolist()


def test_no_filter_means_the_roots_flow_everywhere_and_all_filters_everybodys_own():
    tree, f = complete_binary(4), np.array([8.0, 6, 7] + [4] * 4 + [2] * 8)
    assert nc.filters.traffic(tree, f, []) == 8 * 14
    assert nc.filters.traffic(tree, f, np.arange(7)) == f[1:].sum()


def test_importance_is_exactly_what_one_more_filter_saves():
    for seed in range(60):
        tree, f, *_ = random_problem(seed, most=20)
        mask = tree.can_filter & (np.random.default_rng(seed).random(tree.n) < 0.4)
        now, I = nc.filters.traffic(tree, f, mask), nc.filters.importance(tree, f, mask)
        for v in np.flatnonzero(tree.can_filter):
            other = mask.copy()
            other[v] ^= True
            change = nc.filters.traffic(tree, f, other) - now
            assert change == (I[v] if mask[v] else -I[v])


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: nc.filters.traffic(TREE, [3, 2, 1], []), r"flow must have shape \(5,\), got \(3,\)"),
        (lambda: nc.filters.traffic(TREE, [3, 2, np.nan, 1, 1], []), r"vertex 2 \(b\) must be .*, got nan"),
        (lambda: nc.filters.traffic(TREE, [3, 2, -1, 1, 1], []), r"vertex 2 \(b\) must be .*, got -1"),
        (lambda: nc.filters.traffic(TREE, [3, 2, 1, 1, 2.5], []), r"vertex 4 \(d\) must be at most 2, .*, got 2.5"),
        (lambda: nc.filters.traffic(TREE, ["x"] * 5, []), "flow must be numbers"),
        (lambda: nc.filters.traffic(TREE, FLOW, [2]), r"no filter can be at vertex 2 \(b\): it is a leaf"),
        (lambda: nc.filters.traffic(TREE, FLOW, [1]), r"no filter can be at vertex 1 \(a\): it is not able"),
        (lambda: nc.filters.traffic(TREE, FLOW, [7]), r"filters\[0\] must be .*, got 7"),
        (lambda: nc.filters.traffic(TREE, FLOW, [0.5]), "1-d array of vertex indices"),
        (lambda: nc.filters.traffic(TREE, FLOW, [True]), r"mask of shape \(5,\), got \(1,\)"),
        (lambda: nc.filters.place(TREE, FLOW, -1), "k must be at least 0, got -1"),
        (lambda: nc.filters.place(TREE, FLOW, 1.5), "k must be a whole number"),
        (lambda: nc.filters.place_for_delay(TREE, FLOW, filter_delay=-1, link_delay=1), "filter_delay .* got -1"),
        (lambda: nc.filters.place_for_delay(TREE, FLOW, filter_delay=1, link_delay=np.inf), "link_delay .* got inf"),
        (lambda: nc.filters.flow_from_demand(TREE, [1], [0]), r"leaf\[0\] must be a leaf, got vertex 1 \(a\)"),
        (lambda: nc.filters.flow_from_demand(TREE, [9], [0]), r"leaf\[0\] must be .*, got 9"),
        (lambda: nc.filters.flow_from_demand(TREE, [2, 3], [0]), "same length, got 2 and 1"),
        (lambda: nc.filters.flow_from_demand(TREE, [2], [1], size=[1]), "size must have 2 entries"),
        (lambda: nc.filters.flow_from_demand(TREE, [2], [0], size=[-1]), r"size\[0\] must be .*, got -1"),
        (lambda: nc.filters.improve(TREE, FLOW, [0], moves=-1), "moves must be .*, got -1"),
        (lambda: nc.filters.Batches(TREE, [2], [0]), "k, the most filters allowed, must be given"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_line_that_names_it(call, says):
    with pytest.raises(InputError, match=says) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_unknown_methods_and_objectives_say_what_would_work():
    with pytest.raises(UnsupportedError) as caught:
        nc.filters.place(TREE, FLOW, 1, method="magic")
    assert caught.value.works == ("auto", "exact", "price")
    with pytest.raises(UnsupportedError):
        nc.filters.improve(TREE, FLOW, [0], objective="beauty")
    with pytest.raises(UnsupportedError):
        nc.filters.Batches(TREE, [2], [0], k=1, method="guess")
