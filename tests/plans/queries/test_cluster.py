"""Clusters against all pairs, and merging inside them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import narrowcast as nc
from naive.cluster import cluster
from narrowcast.errors import InputError
from narrowcast.plans.queries.methods.cluster import clusters
from narrowcast.plans.queries.plan import _problem
from plans.queries.rectangles import BASE, local, rectangles


@given(st.integers(0, 2**32), st.integers(1, 60), st.sampled_from(["heuristic", "gain"]))
def test_clusters_are_those_of_union_find_over_all_pairs(seed, n, metric):
    rng = np.random.default_rng(seed)
    boxes = local(n, seed, d=int(rng.integers(1, 4)))
    k = {"km": rng.uniform(0, 1), "kt": rng.uniform(0, 1e-2), "ku": rng.uniform(0, 5e-2)}
    expected = cluster(boxes.tolist(), **k, metric=metric)
    known = _problem(boxes, nc.queries.Constants(**k), "rectangle", None)
    own = _problem(boxes, nc.queries.Constants(**k), "rectangle", lambda b: np.prod(b[:, :, 1] - b[:, :, 0], axis=1))
    assert [list(members) for members in clusters(known, metric)] == expected
    assert [list(members) for members in clusters(own, metric)] == expected


@pytest.mark.parametrize("metric", ["heuristic", "gain"])
@pytest.mark.parametrize("inner", ["pair", "directed"])
def test_it_loses_little_against_its_inner_algorithm_on_everything(inner, metric):
    for seed in range(5):
        boxes = rectangles(100, seed)
        clustered = nc.queries.merge(boxes, "cluster", inner=inner, metric=metric, starts=8, **BASE)
        whole = nc.queries.merge(boxes, inner, starts=8, **BASE)
        assert clustered.cost <= whole.cost * 1.02
        assert sorted(q for members in clustered.sets for q in members) == list(range(100))


def test_far_apart_queries_stay_alone():
    boxes = np.array([[[0, 1], [0, 1]], [[1e6, 1e6 + 1], [0, 1]]])
    assert nc.queries.merge(boxes, "cluster", ku=1).sets == ((0,), (1,))


def test_an_inner_algorithm_has_a_name():
    with pytest.raises(InputError, match=r"inner must be one of .*, got 'best'"):
        nc.queries.merge(local(3, 0), "cluster", inner="best")
    with pytest.raises(InputError, match=r"metric must be one of .*, got 'near'"):
        nc.queries.merge(local(3, 0), "cluster", metric="near")
