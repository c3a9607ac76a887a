"""The judge of filter plans, against a placement's own definition and damaged tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import narrowcast as nc
from narrowcast.model.plan import Tables
from narrowcast.plans.filters import judge


def some_plan(seed: int) -> Tables:
    demand = nc.workloads.tree_demand(kind="uniform", levels=4, items=12, p=0.3, seed=seed)
    tree = nc.Tree(demand.tree.parents, names=[f"v{i}" for i in range(demand.tree.n)])
    return nc.filters.place(tree, demand.flow, k=3).to_tables()


@pytest.mark.parametrize("seed", range(20))
def test_every_optimal_plan_is_sound_and_costs_what_it_says(seed: int) -> None:
    plan = some_plan(seed)
    assert judge.faults(plan) == []
    assert judge.cost(plan)["traffic"] == pytest.approx(plan.cost["traffic"], rel=1e-12)


def test_a_changed_load_flow_parent_or_filter_is_caught() -> None:
    rng = np.random.default_rng(1)
    for seed in range(10):
        plan = some_plan(seed)
        trees, filters = plan.tables["trees"], plan.tables["filters"]
        for column, change in (("load", 1.0), ("flow", 100.0)):
            row = int(rng.integers(1, trees.num_rows))
            values = trees[column].to_pylist()
            values[row] += change
            at = trees.column_names.index(column)
            damaged = trees.set_column(at, column, pa.array(values, trees[column].type))
            assert judge.faults(replace(plan, tables={**plan.tables, "trees": damaged}))
        leaf = trees["node"][trees.num_rows - 1].as_py()
        moved = pa.table({"node": [leaf, *filters["node"].to_pylist()[1:]]})
        assert judge.faults(replace(plan, tables={**plan.tables, "filters": moved}))


def test_parents_in_a_circle_are_caught() -> None:
    plan = some_plan(0)
    trees = plan.tables["trees"]
    parents = trees["parent"].to_pylist()
    parents[1] = trees["node"][3].as_py()
    parents[3] = trees["node"][1].as_py()
    at = trees.column_names.index("parent")
    damaged = trees.set_column(at, "parent", pa.array(parents))
    assert "the parents do not form a tree" in judge.faults(replace(plan, tables={**plan.tables, "trees": damaged}))
