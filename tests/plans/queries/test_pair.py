"""Pair merging: the printed algorithm, and that looking only nearby changes nothing."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import narrowcast as nc
from naive.pair import pair
from naive.query_cost import plan_cost
from narrowcast.errors import InputError
from narrowcast.plans.queries.methods.pair import Pair, greedy
from narrowcast.plans.queries.plan import _problem
from plans.queries.rectangles import BASE, local, rectangles


def problem(boxes, size=None, procedure="rectangle", **constants):
    return _problem(boxes, nc.queries.Constants(**constants), procedure, size)


@given(st.integers(0, 2**32), st.integers(0, 14))
def test_it_is_the_printed_algorithm(seed, n):
    rng = np.random.default_rng(seed)
    boxes = rectangles(n, seed) if n else np.zeros((0, 2, 2))
    constants = {"km": rng.uniform(0, 2e-2), "kt": rng.uniform(0, 5e-5), "ku": rng.uniform(0, 5e-6)}
    plan = nc.queries.merge(boxes, "pair", **constants)
    assert [list(members) for members in plan.sets] == pair(boxes.tolist(), **constants)
    assert plan.cost == pytest.approx(plan_cost(boxes, plan.sets, **constants), rel=1e-9)


def sizes(kind, rng, d):
    if kind == "area":
        return None
    points = rng.uniform(0, 60, (300, d))
    if kind == "points":
        return nc.queries.PointCounts(points)
    return nc.queries.GridHistogram.from_points(points, bins=7)


@given(
    st.integers(0, 2**32),
    st.integers(1, 70),
    st.integers(1, 3),
    st.sampled_from(["area", "histogram", "points"]),
    st.booleans(),
)
def test_near_candidates_give_the_plan_of_all_pairs(seed, n, d, kind, whole):
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 50, (n, d))
    boxes = np.stack([low, low + rng.uniform(0, rng.uniform(1, 30), (n, d))], axis=-1)
    boxes = np.floor(boxes / 4) if whole else boxes  # many equal boxes and equal gains
    k = {"km": rng.uniform(0, 50), "kt": rng.choice([0, 0.3]), "ku": rng.choice([0, 0.01, 0.2])}
    given_problem = problem(boxes, sizes(kind, rng, d), **k)
    assert Pair("near")(given_problem) == Pair("all")(given_problem)


@pytest.mark.parametrize("n", [300, 2000])
def test_near_candidates_give_the_plan_of_all_pairs_on_the_studys_density(n):
    given_problem = problem(local(n, 1), **BASE)
    near = Pair("near")(given_problem)
    assert near == Pair("all")(given_problem)
    assert len(near) < n


def test_sizes_of_your_own_and_known_sizes_take_the_same_decisions():
    boxes = local(60, 5)
    own = nc.queries.merge(boxes, "pair", size=lambda b: np.prod(b[:, :, 1] - b[:, :, 0], axis=1))
    assert own.sets == nc.queries.merge(boxes, "pair").sets
    assert greedy(problem(boxes, **BASE), [(i,) for i in range(60)]) == own.sets


def test_equal_queries_end_in_one_set():
    boxes = np.repeat(local(5, 2), 40, axis=0)
    plan = nc.queries.merge(boxes, "pair", km=1e-3, kt=1e-5, ku=1e-3)
    assert sorted(len(members) for members in plan.sets) == [40] * 5


def test_when_only_channels_cost_everything_becomes_one_set():
    assert len(nc.queries.merge(local(200, 3), "pair", km=1, kt=0, ku=0).sets) == 1
    assert len(nc.queries.merge(local(200, 3), "pair", km=0, kt=0, ku=1).sets) == 200


def test_candidates_have_names():
    with pytest.raises(InputError, match="near, all"):
        Pair("some")


def seconds(n):
    boxes = local(n, 0)
    begin = time.process_time()
    plan = nc.queries.merge(boxes, "pair")
    return time.process_time() - begin, plan


def test_time_grows_nearly_linearly_for_local_queries():
    seconds(100)
    small, large = min(seconds(4_000)[0] for _ in range(3)), min(seconds(16_000)[0] for _ in range(2))
    assert large < 4 * 2.5 * small


@pytest.mark.nightly
def test_a_hundred_thousand_queries():
    seconds(100)
    took, plan = seconds(100_000)
    assert sorted(q for members in plan.sets for q in members) == list(range(100_000))
    assert plan.cost < plan.baseline
    assert took < 120
