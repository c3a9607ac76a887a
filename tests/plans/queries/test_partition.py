"""Partition and exhaustive search against trying everything."""

from __future__ import annotations

import time

import numpy as np
import pytest

import narrowcast as nc
from naive.exhaustive import exhaustive
from naive.partition import partition
from naive.query_cost import plan_cost
from narrowcast.errors import UnsupportedError
from plans.queries.rectangles import BASE, local, rectangles


def random_constants(rng):
    return {"km": rng.uniform(0, 8e-3), "kt": rng.uniform(0, 8e-5), "ku": rng.uniform(0, 1e-5)}


def test_partition_equals_brute_force_on_500_instances():
    rng = np.random.default_rng(0)
    for seed in range(500):
        n = 8 if seed % 50 == 0 else int(rng.integers(1, 7))
        boxes = rectangles(n, seed)
        constants = random_constants(rng) if seed % 2 else BASE
        plan = nc.queries.merge(boxes, "partition", **constants)
        assert plan.cost == pytest.approx(partition(boxes.tolist(), **constants), rel=1e-9)
        assert plan_cost(boxes, plan.sets, **constants) == pytest.approx(plan.cost, rel=1e-9)


def test_exhaustive_search_over_covers_equals_brute_force_and_no_cover_beats_the_best_partition():
    rng = np.random.default_rng(1)
    for seed in range(12):
        boxes, constants = rectangles(3, seed), random_constants(rng)
        best = nc.queries.merge(boxes, "exhaustive", **constants).cost
        assert best == pytest.approx(exhaustive(boxes.tolist(), **constants), rel=1e-9)
    for seed in range(40):
        boxes, constants = rectangles(4, seed), random_constants(rng)
        best = nc.queries.merge(boxes, "exhaustive", **constants)
        assert best.cost == pytest.approx(nc.queries.merge(boxes, "partition", **constants).cost, rel=1e-9)


def test_a_cover_may_beat_every_partition_when_sizes_do_not_grow_with_the_box():
    def size(boxes):
        return np.array([0.0 if side in ([0, 2], [1, 3]) else 9.0 for side in boxes[:, 0].tolist()])

    boxes, k = [[[0, 1]], [[1, 2]], [[2, 3]]], {"km": 1, "kt": 1, "ku": 0, "size": size}
    cover = nc.queries.merge(boxes, "exhaustive", **k)
    assert cover.sets == ((0, 1), (1, 2))
    assert cover.cost == 2
    assert nc.queries.merge(boxes, "partition", **k).cost == 10


@pytest.mark.parametrize("procedure", ["polygon", "exact"])
def test_partition_is_the_best_of_all_partitions_under_every_procedure(procedure):
    from naive.query_cost import partitions

    for seed in range(15):
        boxes = rectangles(5, seed)
        constants = {"km": 3.65e-3, "kt": 6e-5, "ku": 0.16e-5}
        best = min(
            nc.queries.cost(boxes, sets, procedure=procedure, **constants).total for sets in partitions(list(range(5)))
        )
        plan = nc.queries.merge(boxes, "partition", procedure=procedure, **constants)
        assert plan.cost == pytest.approx(best, rel=1e-9)


def test_eighteen_queries_are_exact_well_within_a_minute():
    boxes = local(18, 0)
    nc.queries.merge(boxes[:3], "partition")
    begin = time.perf_counter()
    plan = nc.queries.merge(boxes, "partition")
    assert time.perf_counter() - begin < 60
    assert plan.cost <= nc.queries.merge(boxes, "directed").cost * (1 + 1e-12)


def test_no_pruning_hides_the_best_when_every_set_pays():
    plan = nc.queries.merge(local(12, 0), "partition", km=1, kt=0, ku=0)
    assert plan.sets == (tuple(range(12)),)
    assert nc.queries.merge(local(12, 0), "partition", km=0, kt=0, ku=1).cost == 0


def test_too_many_queries_say_how_many_would_do_and_what_else_works():
    with pytest.raises(UnsupportedError, match="22 queries") as error:
        nc.queries.merge(local(23, 0), "partition")
    assert "directed" in error.value.works
    with pytest.raises(UnsupportedError, match="14 queries"):
        nc.queries.merge(local(15, 0), "partition", procedure="polygon")
    for n, first in ((5, "partition"), (23, "directed")):
        with pytest.raises(UnsupportedError, match=f"at most 4 queries, got {n}; use method '{first}'") as error:
            nc.queries.merge(local(n, 0), "exhaustive")
        for method in error.value.works:
            nc.queries.merge(local(n, 0), method)
