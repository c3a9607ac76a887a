"""Clustered query rectangles."""

from __future__ import annotations

import numpy as np
import pytest

import narrowcast as nc
from narrowcast.errors import InputError
from narrowcast.workloads.rectangles import _clusters


def mean_overlap(boxes: np.ndarray) -> float:
    """Mean area that two different boxes share."""
    low = np.maximum(boxes[:, None, :, 0], boxes[None, :, :, 0])
    high = np.minimum(boxes[:, None, :, 1], boxes[None, :, :, 1])
    shared = np.maximum(high - low, 0).prod(axis=-1)
    n = len(boxes)
    return float(shared.sum() - np.trace(shared)) / (n * (n - 1))


@pytest.mark.parametrize(("n", "width"), [(1, 100), (12, 100), (13, 400), (100, 400)])
def test_the_space_is_the_published_one(n: int, width: int) -> None:
    boxes = np.concatenate([nc.workloads.rectangles(n, seed=s) for s in range(20)])
    assert boxes.min() >= 0
    assert boxes.max() <= width
    assert boxes.max() > 0.8 * width


def test_sides_are_spread_between_the_two_given() -> None:
    boxes = nc.workloads.rectangles(500, side=(5, 9), seed=1)
    sides = boxes[..., 1] - boxes[..., 0]
    assert 5 <= sides.min() < 5.1
    assert 8.9 < sides.max() <= 9 + 1e-9


def test_clusters_have_the_published_number_and_size() -> None:
    cluster = _clusters(100, 0.8, 0.3)
    assert np.bincount(cluster + 1).tolist() == [20, 24, 24, 24, 8]
    assert _clusters(100, 0.0, 0.3).max() == -1
    assert _clusters(10, 1.0, 1.0).tolist() == [0] * 10


def test_queries_overlap_more_the_more_of_them_cluster() -> None:
    overlap = [
        np.mean([mean_overlap(nc.workloads.rectangles(100, cf, df=30, seed=s)) for s in range(10)])
        for cf in (0.0, 0.5, 1.0)
    ]
    assert 0 < overlap[0] < overlap[1] < overlap[2]


def test_a_tighter_spread_brings_the_queries_of_a_cluster_together() -> None:
    tight, wide = (mean_overlap(nc.workloads.rectangles(60, 1.0, 1.0, df, seed=3)) for df in (5, 80))
    assert tight > 3 * wide


def test_any_number_of_dimensions() -> None:
    for d in (1, 3, 5):
        boxes = nc.workloads.rectangles(40, d=d, seed=d)
        assert boxes.shape == (40, d, 2)
        assert (boxes[..., 0] < boxes[..., 1]).all()


def test_a_spread_far_beyond_the_space_still_ends_inside() -> None:
    boxes = nc.workloads.rectangles(30, 1.0, df=1e9, seed=0)
    assert boxes.min() >= 0
    assert boxes.max() <= 400


def test_no_queries_are_an_empty_array() -> None:
    assert nc.workloads.rectangles(0).shape == (0, 2, 2)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"cf": 1.1}, r"cf must be .*, got 1.1"),
        ({"sf": 0.0}, r"sf must be .*, got 0"),
        ({"df": -1}, r"df must be .*, got -1"),
        ({"side": (40, 20)}, "side must be two lengths"),
        ({"side": (20, 500)}, "side must be two lengths"),
        ({"n": -1}, r"n must be .*, got -1"),
        ({"d": 0}, r"d must be .*, got 0"),
    ],
)
def test_impossible_parameters_are_refused(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        nc.workloads.rectangles(**wrong)
