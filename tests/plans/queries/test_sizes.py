"""Sizes by area, histogram and points against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import narrowcast as nc
from narrowcast.errors import InputError
from narrowcast.plans.queries.sizes import Area, as_sizes


def random_boxes(rng, n, d, whole=False):
    sides = rng.integers(-3, 13, (n, d, 2)) if whole else rng.uniform(-3, 13, (n, d, 2))
    return np.sort(sides.astype(float), axis=2)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_histogram_is_the_mass_of_each_cell_times_the_share_of_it_inside(d):
    rng = np.random.default_rng(d)
    edges = [np.unique(np.concatenate([[0.0, 10.0], rng.uniform(0, 10, 4)])) for _ in range(d)]
    counts = rng.integers(0, 9, [edge.size - 1 for edge in edges]).astype(float)
    grid = nc.queries.GridHistogram(counts, edges)
    for box in random_boxes(rng, 50, d):
        mass = counts
        for j in range(d):
            low, high = edges[j][:-1], edges[j][1:]
            share = np.clip(np.minimum(high, box[j, 1]) - np.maximum(low, box[j, 0]), 0, None) / (high - low)
            mass = np.tensordot(share, mass, axes=(0, 0))
        assert grid(box[None])[0] == pytest.approx(float(mass), abs=1e-9)


@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(0, 200))
def test_point_counts_equal_counting_also_on_borders_and_duplicates(seed, d, n):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 10, (n, d)).astype(float)
    points[rng.random((n, d)) < 0.02] = np.nan
    boxes = random_boxes(rng, 20, d, whole=True)
    inside = (points[None] >= boxes[:, None, :, 0]) & (points[None] <= boxes[:, None, :, 1])
    assert nc.queries.PointCounts(points)(boxes).tolist() == inside.all(axis=2).sum(axis=1).tolist()


def test_a_histogram_of_points_agrees_with_their_counts_on_its_edges():
    rng = np.random.default_rng(0)
    points = rng.normal(0, 3, (5000, 2))
    grid = nc.queries.GridHistogram.from_points(points, bins=32)
    assert grid.counts.sum() == 5000
    half = [[edge[3], edge[20]] for edge in grid.edges]
    # Cells are half open and boxes closed; no point lies on an edge here.
    assert grid(np.array([half]))[0] == pytest.approx(nc.queries.PointCounts(points)(np.array([half]))[0])


def test_unbounded_sides_are_fine_where_the_data_has_a_size_and_refused_for_areas():
    boxes = np.array([[[-np.inf, np.inf], [0, 1.0]], [[0, 1], [-np.inf, np.inf]]])
    counts = nc.queries.PointCounts([[5, 0.5], [0.5, 7], [9, 9]])
    assert counts(boxes).tolist() == [1, 1]
    plan = nc.queries.merge(boxes, size=counts, km=1, kt=1, ku=1)
    assert sorted(q for members in plan.sets for q in members) == [0, 1]
    with pytest.raises(InputError, match=r"boxes\[0, 0\]"):
        nc.queries.merge(boxes)


def test_a_size_of_your_own_is_checked():
    assert isinstance(as_sizes(None), Area)
    with pytest.raises(InputError, match="shape"):
        nc.queries.merge([[[0, 1]]], size=lambda boxes: [1.0, 2.0])
    with pytest.raises(InputError, match="finite numbers, zero or more"):
        nc.queries.merge([[[0, 1]]], size=lambda boxes: -np.ones(len(boxes)))
    with pytest.raises(InputError, match=r"size must be .*, got int"):
        nc.queries.merge([[[0, 1]]], size=3)
    with pytest.raises(InputError, match="size must have 1 dimensions, as boxes, got 2"):
        nc.queries.merge([[[0, 1]]], size=nc.queries.PointCounts([[1, 2]]))


@pytest.mark.parametrize(
    ("counts", "edges"),
    [([1, 2], [[0, 1]]), ([1, 2], [[0, 1, 1]]), ([-1, 2], [[0, 1, 2]]), ([[1]], [[0, 1]]), ([1], [[0, np.nan]])],
)
def test_a_histogram_that_makes_no_sense_is_refused(counts, edges):
    with pytest.raises(InputError):
        nc.queries.GridHistogram(counts, edges)
