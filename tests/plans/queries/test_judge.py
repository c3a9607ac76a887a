"""The judge of query merging plans, against the planner's cost and with every cell damaged in turn."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import narrowcast as nc
from narrowcast.evaluate.compare import differences
from narrowcast.model.plan import Tables
from narrowcast.plans.queries import judge
from narrowcast.plans.queries.plan import make
from narrowcast.plans.queries.result import QueryDemand

PROCEDURES = ["rectangle", "polygon", "exact"]


def some_plan(seed: int, procedure: str, n: int = 14, method: str = "pair", clients: bool = False) -> Tables:
    boxes = np.rint(nc.workloads.rectangles(n=n, space=150.0, seed=seed))
    who: dict[str, Any] = {"names": ("q",) * n, "clients": tuple(f"c{i}" for i in range(n))} if clients else {}
    demand = QueryDemand(boxes, ("x", "y"), **who)
    return make(demand, method, procedure=procedure, km=0.05, ka=1e-3, kt=1e-4).to_tables()


def with_cell(plan: Tables, table: str, column: str, row: int, value: object) -> Tables:
    given = plan.tables[table]
    cells = given[column].to_pylist()
    cells[row] = value
    at = given.column_names.index(column)
    damaged = given.set_column(at, column, pa.array(cells, given[column].type))
    return replace(plan, tables={**plan.tables, table: damaged})


@pytest.mark.parametrize("procedure", PROCEDURES)
@pytest.mark.parametrize("seed", range(8))
def test_every_plan_is_sound_and_costs_what_it_says(procedure: str, seed: int) -> None:
    plan = some_plan(seed, procedure)
    assert judge.faults(plan) == []
    assert set(judge.cost(plan)) == set(plan.cost)
    assert differences(plan.cost, judge.cost(plan)) == []


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_intervals_that_touch_or_repeat_are_judged_too(procedure: str) -> None:
    line = [[[0, 2]], [[2, 5]], [[0, 2]], [[1, 1]], [[9, 9]]]
    plan = nc.queries.merge(line, "partition", procedure=procedure, km=0, kt=1, ku=1).to_tables()
    assert (judge.faults(plan), differences(plan.cost, judge.cost(plan))) == ([], [])


def test_covers_may_answer_a_query_twice_and_others_may_not() -> None:
    three = [[[0, 2], [0, 1]], [[0, 1], [0, 2]], [[1, 2], [1, 2]]]
    merged = nc.queries.merge(three, "exhaustive", km=10, kt=9, ku=4)
    pieces = (merged.pieces[0], np.array([three[2]], float))
    plan = replace(merged, sets=((0, 1, 2), (2,)), pieces=pieces, numbers=(0, 1)).to_tables()
    assert judge.faults(plan) == []
    assert judge.faults(replace(plan, parameters={**plan.parameters, "method": "pair"})) == ["query 2 is in 2 sets"]


def test_clients_may_use_the_same_name() -> None:
    plan = some_plan(1, "rectangle", clients=True)
    assert judge.faults(plan) == []
    moved = with_cell(plan, "merges", "client", 3, "c5")
    assert "query q of c3 is in no set and gets no answer" in judge.faults(moved)


def test_sizes_that_are_not_areas_leave_the_term_that_needs_none() -> None:
    plan = some_plan(2, "polygon")
    other = replace(plan, parameters={**plan.parameters, "size": "counts"})
    assert judge.cost(other) == {"channel": pytest.approx(plan.cost["channel"])}


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_a_query_that_leaves_its_channel_is_caught_on_every_side(procedure: str) -> None:
    plan = some_plan(3, procedure)
    asked = plan.tables["queries"]
    for row in range(asked.num_rows):
        for column, value in (("low", -1e6), ("high", 1e6), ("low", None), ("high", float("nan"))):
            assert judge.faults(with_cell(plan, "queries", column, row, value))


def test_any_damaged_cell_is_caught_by_the_faults_or_the_cost() -> None:
    rng = np.random.default_rng(0)
    changes = {"low": lambda v: v + 0.5, "high": lambda v: v - 0.5, "set": lambda v: v + 1, "piece": lambda v: v + 1}
    for seed in range(4):
        plan = some_plan(seed, "rectangle")
        for table, columns in (("queries", ("low", "high", "query", "dimension")),
                               ("merges", ("query", "set")),
                               ("channels", ("set", "low", "high", "dimension"))):  # fmt: skip
            for column in columns:
                row = int(rng.integers(plan.tables[table].num_rows))
                old = plan.tables[table][column][row].as_py()
                new = changes[column](old) if column in changes else f"{old}?"
                bad = with_cell(plan, table, column, row, new)
                assert judge.faults(bad) or differences(plan.cost, judge.cost(bad)), (table, column, row)


def test_a_piece_made_wider_than_planned_is_a_fault_and_a_difference_in_cost() -> None:
    plan = some_plan(0, "rectangle")
    wide = with_cell(plan, "channels", "high", 0, plan.tables["channels"]["high"][0].as_py() + 1)
    assert judge.faults(wide) == ["a piece of set 0 is wider than its queries need"]
    assert any("transfer" in line for line in differences(plan.cost, judge.cost(wide)))


def test_lost_rows_of_a_table_are_caught() -> None:
    plan = some_plan(0, "rectangle")
    for name in ("queries", "merges", "channels"):
        for row in (0, plan.tables[name].num_rows - 1):
            kept = [i for i in range(plan.tables[name].num_rows) if i != row]
            shorter = plan.tables[name].take(pa.array(kept))
            assert judge.faults(replace(plan, tables={**plan.tables, name: shorter})), (name, row)


def test_a_plan_of_nothing_is_sound() -> None:
    plan = nc.queries.merge([]).to_tables()
    assert (judge.faults(plan), judge.cost(plan)["total"]) == ([], 0.0)
