"""Figure 5 of the paper: three queries that gain only when all three are merged."""

from __future__ import annotations

import pytest

import narrowcast as nc
from plans.queries.rectangles import ORACLE, THREE


def test_apart_costs_75_any_pair_at_least_81_and_all_three_74():
    assert nc.queries.cost(THREE, [[0], [1], [2]], **ORACLE).total == 75
    pairs = [nc.queries.cost(THREE, sets, **ORACLE).total for sets in ([[0, 1], [2]], [[0, 2], [1]], [[1, 2], [0]])]
    assert pairs == [81, 94, 94]
    assert nc.queries.cost(THREE, [[0, 1, 2]], **ORACLE).total == 74


def test_pair_merging_misses_it():
    plan = nc.queries.merge(THREE, "pair", **ORACLE)
    assert plan.sets == ((0,), (1,), (2,))
    assert plan.cost == plan.baseline == 75


@pytest.mark.parametrize("method", ["partition", "directed", "exhaustive"])
def test_partition_directed_and_exhaustive_find_it(method):
    plan = nc.queries.merge(THREE, method, **ORACLE)
    assert plan.sets == ((0, 1, 2),)
    assert plan.cost == 74
    assert plan.boxes.tolist() == [[[0, 2], [0, 2]]]
    assert plan.saved == pytest.approx(1 / 75)


def test_clustering_finds_it_when_its_inner_algorithm_does():
    # The paper's test keeps pairs apart here (10 + 9·1 − 4·5 < 0 for two of them), so K_U is lowered a little.
    plan = nc.queries.merge(THREE, "cluster", km=10, kt=9, ku=3.7, inner="partition")
    assert plan.cost == nc.queries.merge(THREE, "partition", km=10, kt=9, ku=3.7).cost
