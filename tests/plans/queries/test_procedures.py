"""Merge procedures: what they send, counted point by point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import narrowcast as nc
from naive.polygon import polygon as slow_polygon
from narrowcast.errors import InputError
from narrowcast.plans.queries.arrangement import arrangement
from narrowcast.plans.queries.procedures import MAX_POLYGON, Exact, Polygon, union_size
from narrowcast.plans.queries.sizes import Area, GridHistogram, PointCounts


def whole_boxes(rng, n, d):
    return np.sort(rng.integers(0, 8, (n, d, 2)).astype(float), axis=2)


def lattice(d):
    return np.stack(np.meshgrid(*[np.arange(0, 8)] * d, indexing="ij"), -1).reshape(-1, d).astype(float)


def held(points, boxes):
    """Which boxes hold each point, (points, boxes)."""
    inside = (points[:, None] >= boxes[None, :, :, 0]) & (points[:, None] <= boxes[None, :, :, 1])
    return inside.all(axis=2)


@given(st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 3))
def test_the_size_of_a_union_counts_every_point_once(seed, n, d):
    rng = np.random.default_rng(seed)
    boxes = whole_boxes(rng, n, d)
    points = lattice(d)
    assert union_size(boxes, PointCounts(points)) == held(points, boxes).any(axis=1).sum()


@given(st.integers(0, 2**32), st.integers(1, 10), st.integers(1, 6))
def test_a_polygon_covers_its_queries_is_bounded_and_never_wider_than_the_rectangle(seed, n, most):
    rng = np.random.default_rng(seed)
    boxes = np.sort(rng.uniform(0, 10, (n, 2, 2)), axis=2)
    pieces = Polygon(most).pieces(boxes, Area())
    assert len(pieces) <= most
    points = np.concatenate([rng.uniform(0, 10, (300, 2)), boxes[:, :, 0], boxes[:, :, 1]])
    assert (held(points, pieces).any(axis=1) >= held(points, boxes).any(axis=1)).all()
    alone = Area()(boxes)
    polygon, rectangle = (p.sent(boxes, alone, Area()).size for p in (Polygon(most), nc.queries.Rectangle()))
    assert polygon <= rectangle * (1 + 1e-9)
    assert polygon >= alone.max() * (1 - 1e-9)


def test_a_polygon_wastes_less_than_the_rectangle_on_a_staircase():
    boxes = np.array([[[0, 2], [0, 1.0]], [[0, 1], [0, 2]]])
    assert nc.queries.cost(boxes, [[0, 1]], km=0, kt=1, ku=0, procedure="polygon").total == 3
    assert nc.queries.cost(boxes, [[0, 1]], km=0, kt=1, ku=0).total == 4
    assert nc.queries.cost(boxes, [[0, 1]], km=0, kt=0, ku=1, procedure="polygon").total == 2


@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(1, 2))
def test_exact_pieces_are_the_combinations_of_queries_that_some_point_lies_in(seed, n, d):
    rng = np.random.default_rng(seed)
    boxes = whole_boxes(rng, n, d)
    # Halves stand for the open cells between whole coordinates.
    points = np.stack(np.meshgrid(*[np.arange(0, 7.5, 0.5)] * d, indexing="ij"), -1).reshape(-1, d)
    counts = PointCounts(points)
    combinations = held(points, boxes)
    combinations = combinations[combinations.any(axis=1)]
    sent = Exact().sent(boxes, counts(boxes), counts)
    assert sent.channels == len(np.unique(combinations, axis=0))
    assert sent.size == len(combinations)
    assert sent.heard == counts(boxes).sum()


def test_three_queries_in_a_chain_take_five_exact_pieces_as_in_figure_4():
    boxes = [[[0, 3], [0, 3]], [[2, 6], [2, 6]], [[5, 8], [5, 8]]]
    terms = nc.queries.cost(boxes, [[0, 1, 2]], km=1, kt=1, ku=1, procedure="exact").amounts
    assert terms == (5, 9 + 16 + 9 - 2, 0)
    apart = nc.queries.cost(boxes, [[0], [1], [2]], km=1, kt=1, ku=1, procedure="exact").amounts
    assert apart == (3, 34, 0)


def test_touching_boxes_share_a_border_that_is_a_piece_of_its_own():
    sizes, members = arrangement(np.array([[[0.0, 1.0]], [[1.0, 2.0]]]), Area())
    assert len(np.unique(members, axis=0)) == 3
    assert sizes.sum() == 2


@pytest.mark.parametrize("method", ["pair", "directed", "cluster", "partition"])
@pytest.mark.parametrize("procedure", ["polygon", "exact"])
def test_every_algorithm_takes_every_procedure(method, procedure):
    rng = np.random.default_rng(5)
    low = rng.uniform(0, 60, (10, 2))
    boxes = np.stack([low, low + rng.uniform(20, 40, (10, 2))], axis=-1)
    k = {"km": 1e-3, "kt": 3e-5, "ku": 1e-6, "procedure": procedure}
    plan = nc.queries.merge(boxes, method, starts=3, **k)
    assert plan.cost == pytest.approx(nc.queries.cost(boxes, plan.sets, **k).total)
    assert plan.cost <= plan.baseline
    assert sorted(q for members in plan.sets for q in members) == list(range(10))


@pytest.mark.parametrize("procedure", ["polygon", "exact"])
def test_joined_sets_are_priced_as_if_from_the_definition_or_passed_over_where_they_cannot_gain(procedure):
    from narrowcast.plans.queries.plan import _problem

    rng = np.random.default_rng(6)
    priced = passed = 0
    for seed in range(60):
        boxes = np.concatenate([whole_boxes(rng, 3, 2), whole_boxes(rng, 3, 2) + 5 * (seed % 3)])
        constants = nc.queries.Constants(*rng.choice([0.1, 1, 20], 3))
        problem, fresh = (_problem(boxes, constants, procedure, None) for _ in range(2))
        others = [(3,), (3, 4), (3, 4, 5)]
        for other, quick in zip(others, problem.joined((0, 1, 2), others), strict=True):
            slow = fresh.cost((0, 1, 2, *other))
            if np.isinf(quick):
                passed += 1
                assert slow >= (fresh.cost((0, 1, 2)) + fresh.cost(other)) * (1 - 1e-9)
            else:
                priced += 1
                assert quick == pytest.approx(slow)
    assert min(priced, passed) > 20


def test_procedures_have_names_and_limits():
    with pytest.raises(InputError, match="rectangle, polygon, exact"):
        nc.queries.merge([[[0, 1]]], procedure="circle")
    with pytest.raises(InputError, match=f"1 to {MAX_POLYGON}"):
        nc.queries.Polygon(9)


@pytest.mark.parametrize("by", ["area", "histogram", "counts"])
@given(seed=st.integers(0, 2**32), n=st.integers(1, 14), d=st.integers(1, 3), most=st.integers(1, 5))
def test_the_kernel_of_polygons_makes_the_described_boxes(by, seed, n, d, most):
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 50, (n, d))
    boxes = np.stack([low, low + rng.uniform(1, 30, (n, d))], axis=-1)
    points = rng.uniform(0, 80, (60, d))
    size = {"area": Area(), "histogram": GridHistogram.from_points(points, 5), "counts": PointCounts(points)}[by]
    found = Polygon(most).pieces(boxes, size)
    assert found.shape == Polygon(most).pieces_by_function(boxes, size).shape
    if by == "area":  # ties, which counts are full of, may be broken either way by a rounding
        twin = slow_polygon([[tuple(side) for side in box] for box in boxes.tolist()], most, _area)
        assert sorted(found.tolist()) == sorted([list(map(list, box)) for box in twin])
    assert found.tolist() == Polygon(most).pieces_by_function(boxes, size).tolist() or by != "area"
    sent = Polygon(most).sent(boxes, size(boxes), size)
    assert sent.size == pytest.approx(union_size(found, size), rel=1e-9, abs=1e-9)
    assert sent.pieces == len(found)


def test_directed_search_by_polygons_ends_where_sizes_without_a_kernel_do():
    boxes = nc.workloads.rectangles(n=14, seed=5)
    fast = nc.queries.merge(boxes, "directed", procedure="polygon", starts=6)
    slow = nc.queries.merge(boxes, "directed", procedure="polygon", starts=6, size=lambda b: Area()(b))
    assert fast.sets == slow.sets
    assert fast.cost == pytest.approx(slow.cost, rel=1e-9)


def _area(box):
    return float(np.prod([high - low for low, high in box]))
