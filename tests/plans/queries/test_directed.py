"""Directed search: the described descent, and never dearer than pair merging."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import narrowcast as nc
from naive.directed import descend as slow_descend
from naive.query_cost import plan_cost
from narrowcast.errors import InputError, UnsupportedError
from narrowcast.plans.queries.methods.directed import _descend, descend
from narrowcast.plans.queries.plan import _problem
from narrowcast.plans.queries.problem import sets_of_labels
from plans.queries.rectangles import BASE, local, rectangles


@given(st.integers(0, 2**32), st.integers(1, 9))
def test_a_descent_is_the_described_one(seed, n):
    rng = np.random.default_rng(seed)
    boxes = rectangles(n, seed)
    k = {"km": rng.uniform(0, 2e-2), "kt": rng.uniform(0, 5e-5), "ku": rng.uniform(0, 5e-6)}
    problem = _problem(boxes, nc.queries.Constants(**k), "rectangle", None)
    start = rng.integers(0, n, n)
    expected = slow_descend(boxes.tolist(), [list(s) for s in sets_of_labels(start.tolist())], **k)
    end, cost = _descend(problem, start)
    assert [list(s) for s in sorted(end)] == expected
    assert cost == pytest.approx(sum(problem.cost(members) for members in end), rel=1e-9)
    assert [list(s) for s in sorted(descend(problem, sets_of_labels(start.tolist())))] == expected


@pytest.mark.parametrize("n", [12, 40])
def test_it_is_never_dearer_than_pair_merging(n):
    for seed in range(25):
        boxes = rectangles(n, seed)
        for starts in (1, 20):
            directed = nc.queries.merge(boxes, "directed", starts=starts, seed=seed, **BASE)
            assert directed.cost <= nc.queries.merge(boxes, "pair", **BASE).cost * (1 + 1e-12)
            assert directed.cost == pytest.approx(plan_cost(boxes, directed.sets, **BASE), rel=1e-9)


def test_fifty_starts_find_the_best_of_six_queries_nearly_always():
    best = 0
    for seed in range(60):
        boxes = rectangles(6, seed)
        optimum = nc.queries.merge(boxes, "partition", **BASE).cost
        best += nc.queries.merge(boxes, "directed", **BASE).cost <= optimum * (1 + 1e-9)
    assert best >= 58


@pytest.mark.parametrize("size", ["histogram", "points"])
def test_it_works_on_sizes_from_data(size):
    rng = np.random.default_rng(3)
    points = rng.uniform(0, 400, (500, 2))
    known = nc.queries.GridHistogram.from_points(points) if size == "histogram" else nc.queries.PointCounts(points)
    boxes = local(40, 4)
    plan = nc.queries.merge(boxes, "directed", size=known, km=5, kt=1, ku=0.05, starts=5)
    by_function = nc.queries.cost(boxes, plan.sets, size=lambda b: known(b), km=5, kt=1, ku=0.05)
    assert plan.cost == pytest.approx(by_function.total, rel=1e-9)
    assert plan.cost <= nc.queries.merge(boxes, "pair", size=known, km=5, kt=1, ku=0.05).cost * (1 + 1e-12)


def test_the_same_seed_gives_the_same_plan():
    boxes = rectangles(30, 7)
    first, second = (nc.queries.merge(boxes, "directed", seed=11) for _ in range(2))
    assert first.sets == second.sets


def test_limits_are_said_plainly():
    with pytest.raises(InputError, match="starts"):
        nc.queries.merge(local(3, 0), "directed", starts=0)
    with pytest.raises(UnsupportedError, match="cluster"):
        nc.queries.merge(local(5001, 0), "directed")
