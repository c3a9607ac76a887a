"""A queries plan on disk comes back as it was, and is made from a demand with the parameters that it uses."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import narrowcast as nc
from narrowcast.errors import InputError, UnsupportedError
from narrowcast.evaluate.verdict import verdict
from narrowcast.model.folder import read_tables, write_tables
from narrowcast.plans.queries import judge
from narrowcast.plans.queries.plan import make
from narrowcast.plans.queries.problem import BoxProblem
from narrowcast.plans.queries.procedures import Rectangle
from narrowcast.plans.queries.result import QueriesPlan, QueryDemand, merged_plan
from narrowcast.plans.queries.sizes import Area
from narrowcast.plans.queries.whatif import family, quick


@pytest.mark.parametrize("procedure", ["rectangle", "polygon", "exact"])
def test_a_plan_is_written_and_read_with_every_set_and_piece(tmp_path, procedure):
    boxes = nc.workloads.rectangles(n=15, space=150.0, seed=3)
    merged = make(QueryDemand(boxes, ("x", "y")), procedure=procedure, km=1e-3)
    assert merged.sets == nc.queries.merge(boxes, procedure=procedure, km=1e-3).sets
    read = read_tables(write_tables(merged.to_tables(), tmp_path / "plan"))
    sets: dict[int, list[int]] = {}
    for row in read.tables["merges"].to_pylist():
        sets.setdefault(row["set"], []).append(int(row["query"]))
    assert tuple(tuple(sets[at]) for at in range(len(sets))) == merged.sets
    sides: dict[tuple[int, int], list[list[float]]] = {}
    for row in read.tables["channels"].to_pylist():
        sides.setdefault((row["set"], row["piece"]), []).append([row["low"], row["high"]])
    expected = {(at, p): box.tolist() for at, pieces in enumerate(merged.pieces) for p, box in enumerate(pieces)}
    assert sides == expected
    asked = read.tables["queries"].to_pylist()
    assert [[row["low"], row["high"]] for row in asked] == boxes.reshape(-1, 2).tolist()
    assert [(row["query"], row["dimension"]) for row in asked[:3]] == [("0", "x"), ("0", "y"), ("1", "x")]
    assert read.cost["total"] == merged.cost
    assert read.baselines["apart"] == merged.baseline


@pytest.mark.parametrize("procedure", ["rectangle", "polygon", "exact"])
def test_the_typed_plan_comes_back_and_writes_the_same_tables(tmp_path, procedure):
    boxes = nc.workloads.rectangles(n=15, space=150.0, seed=3)
    merged = make(QueryDemand(boxes, ("x", "y")), procedure=procedure, km=1e-3)
    tables = read_tables(write_tables(merged.to_tables(), tmp_path / "plan"))
    read = QueriesPlan.from_tables(tables)
    assert (read.sets, read.numbers, read.saved) == (merged.sets, merged.numbers, merged.saved)
    assert read.demand.boxes.tolist() == boxes.tolist()
    assert read.boxes.tolist() == merged.boxes.tolist()
    assert [pieces.tolist() for pieces in read.pieces] == [pieces.tolist() for pieces in merged.pieces]
    assert read.sizes == pytest.approx(merged.sizes)
    assert read.terms.amounts == pytest.approx(merged.terms.amounts)
    again = read.made_from({}).to_tables()
    assert all(again.tables[name].equals(table) for name, table in tables.tables.items())
    assert (again.cost, again.parameters, again.baselines) == (tables.cost, tables.parameters, tables.baselines)


def test_no_queries_make_an_empty_plan_and_dimensions_need_names(tmp_path):
    read = read_tables(write_tables(make(QueryDemand([], ("x",))).to_tables(), tmp_path / "plan"))
    assert read.tables["merges"].num_rows == 0
    assert QueriesPlan.from_tables(read).sets == ()
    with pytest.raises(InputError, match="attributes must have 1 names, one per dimension, got 2"):
        QueryDemand([[[0, 1]]], ("x", "y"))
    with pytest.raises(InputError, match="names must have 2 entries, got 1"):
        QueryDemand([[[0, 1]], [[2, 3]]], ("x",), names=("a",))
    two = QueryDemand([[[0, 1]], [[2, 3]]], ("x",))
    with pytest.raises(InputError, match="sets must hold every query, got none with query 1"):
        merged_plan(two, BoxProblem(two.boxes, nc.queries.Constants(), Rectangle(), Area()), [(0,)], "pair")


def test_clients_with_the_same_names_stay_apart_on_the_way_through_the_tables():
    boxes = nc.workloads.rectangles(n=6, space=150.0, seed=1)
    clients = tuple(f"c{i}" for i in range(6))
    plan = make(QueryDemand(boxes, ("x", "y"), ("q",) * 6, clients), km=1e-3)
    read = QueriesPlan.from_tables(plan.to_tables())
    assert (read.demand.names, read.demand.clients, read.sets) == (("q",) * 6, clients, plan.sets)
    assert read.demand.labels == tuple(f"q of {client}" for client in clients)


def test_sets_keep_the_numbers_that_a_folder_gives_them():
    plan = make(QueryDemand([[[0, 1]], [[5, 6]], [[5, 7]]], ("x",)), km=1, kt=1, ku=0.1)
    other = replace(plan, numbers=(7, 3))
    read = QueriesPlan.from_tables(other.to_tables())
    assert (read.numbers, read.sets) == ((3, 7), ((1, 2), (0,)))
    assert other.to_tables().tables["channels"]["set"].to_pylist() == [7, 3]


def test_sizes_counted_in_data_are_told_and_not_made_up():
    counts = nc.queries.PointCounts([[0.5], [1.5], [2.5]])
    grid = nc.queries.GridHistogram([1, 1, 1], [[0, 1, 2, 3]])
    own = lambda boxes: np.ones(len(boxes))  # noqa: E731
    for size, name in ((None, "area"), (counts, "counts"), (grid, "histogram"), (own, "function")):
        plan = nc.queries.merge([[[0, 2]], [[1, 3]]], size=size)
        assert plan.parameters["size"] == name
        assert verdict(plan.to_tables(), judge).faults == ()
        read = QueriesPlan.from_tables(plan.to_tables())
        if name != "function":  # kept with the plan, and counted again by the judge
            assert read.sizes.tolist() == plan.sizes.tolist()
            assert judge.cost(plan.to_tables())["total"] == pytest.approx(plan.cost)
            continue
        with pytest.raises(UnsupportedError, match="data its sizes were counted in"):
            _ = read.sizes


def test_a_plan_travels_to_another_process():
    plan = nc.queries.merge([[[0, 2]], [[1, 3]]], size=lambda boxes: np.ones(len(boxes)))
    again = pickle.loads(pickle.dumps(plan))
    assert (again.sets, again.baseline, again.sizes.tolist()) == (plan.sets, plan.baseline, plan.sizes.tolist())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"starts": 3}, "starts must be left out for method 'pair', got 3"),
        ({"method": "cluster", "starts": 3}, "starts must be left out for method 'cluster'"),
        ({"method": "directed", "inner": "pair"}, "inner must be left out for method 'directed'"),
        ({"method": "directed", "starts": 0}, "starts must be a whole number, 1 or more, got 0"),
        ({"method": "best"}, "partition, exhaustive, pair, directed, cluster"),
    ],
)
def test_what_a_method_does_not_use_is_refused(options, says):
    with pytest.raises(InputError, match=says):
        make(QueryDemand([[[0, 1]]], ("x",)), **options)
    with pytest.raises(InputError, match="demand must be a QueryDemand, got list"):
        make([[[0, 1]]], **options)


def test_the_parameters_of_a_method_reach_it():
    boxes = nc.workloads.rectangles(n=9, seed=4)
    found = make(QueryDemand(boxes, ("x", "y")), "cluster", inner="directed", starts=4, metric="gain", seed=2)
    assert found.sets == nc.queries.merge(boxes, "cluster", inner="directed", starts=4, metric="gain", seed=2).sets


def test_what_if_plans_again_with_other_prices():
    plan = make(QueryDemand([[[0, 2]], [[1, 3]]], ("x",)), km=1, kt=1, ku=0.1)
    asked = family(QueriesPlan.from_tables(plan.to_tables()))
    assert (asked.budgets, asked.prices, asked.setting("ku")) == ((), ("km", "kt", "ku", "ka"), 0.1)
    assert asked.present() == asked.replan({}, None) == (plan.cost, plan.cost / plan.baseline)
    assert asked.replan({"ku": 100.0}, None).relative == 1.0
    assert quick(plan) is None
    counted = nc.queries.merge([[[0, 2]]], size=lambda boxes: np.ones(len(boxes)))
    with pytest.raises(UnsupportedError, match="data its sizes were counted in"):
        family(counted).replan({}, None)
