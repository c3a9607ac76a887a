"""Filters plans from what `measure` found below each node, and the heuristic from the plan in force."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import narrowcast as nc
from narrowcast.errors import InputError
from narrowcast.plans.filters.demand import is_tree_demand, measured_flow
from narrowcast.plans.filters.result import TreeDemand

TABLE = "node,parent,items,size\nw,,4,4\na,w,2,2\nb,w,3,3\nc,a,1,1\nd,a,1,1\ne,b,2,2\nf,b,2,2\n"


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    (tmp_path / "tree_demand.csv").write_text(TABLE)
    return tmp_path


def test_a_folder_and_its_table_give_the_same_plan(measured: Path) -> None:
    whole, table = (nc.plan(place, "filters", k=2) for place in (measured, measured / "tree_demand.csv"))
    assert whole.to_tables().tables["filters"] == table.to_tables().tables["filters"]
    assert (whole.cost.total, table.cost.total) == (13.0, 13.0)
    assert list(whole.inputs) == ["tree_demand"]
    assert nc.check(whole).sound


def test_a_table_of_wishes_is_not_taken_for_a_measured_one(measured: Path) -> None:
    (measured / "demand.csv").write_text("node,item\nc,1\n")
    assert is_tree_demand(measured)
    assert is_tree_demand(measured / "tree_demand.csv")
    assert not is_tree_demand(measured / "demand.csv")


@pytest.mark.parametrize(
    ("line", "other", "says"),
    [
        ("b,w,3,3\n", "", "parent is not a node"),
        ("b,w,3,3\n", "b,w,3,-1\n", "must be finite and zero or more"),
        ("b,w,3,3\n", "b,w,3,9\n", "must be at most 4, as its parent"),
        ("b,w,3,3\n", "b,w,3,x\n", "size is not a number"),
        ("w,,4,4\n", "w,a,4,4\n", "one root"),
    ],
)
def test_a_table_that_cannot_be_is_refused_in_one_line(measured: Path, line: str, other: str, says: str) -> None:
    (measured / "tree_demand.csv").write_text(TABLE.replace(line, other))
    with pytest.raises(InputError, match=says):
        nc.plan(measured, "filters", k=2)


def test_a_tree_with_a_node_that_was_not_measured_is_refused(measured: Path) -> None:
    with pytest.raises(InputError, match="node x of the tree is not in the tree_demand table"):
        measured_flow(measured, nc.Tree([-1, 0], names=["w", "x"]))


def test_a_demand_that_was_measured_without_a_tree_says_what_to_do() -> None:
    with pytest.raises(InputError, match="tree="):
        nc.plan(nc.Interest.from_pairs([0], [0], [1.0]), "filters")


def changed(seed: int) -> tuple[TreeDemand, TreeDemand]:
    now = nc.workloads.tree_demand(levels=5, items=20, p=0.2, seed=seed)
    later = nc.workloads.tree_demand(levels=5, items=20, p=0.3, seed=seed + 1)
    return TreeDemand(now.tree, now.flow), TreeDemand(later.tree, later.flow)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("settings", [{"k": 5}, {"objective": "delay", "filter_delay": 30.0}], ids=["traffic", "delay"])
def test_flip_is_one_batch_of_the_heuristic_from_the_plan_in_force(settings: dict[str, Any], seed: int) -> None:
    before, after = changed(seed)
    first = nc.plan(before, "filters", **settings)
    objective = settings.get("objective", "traffic")
    delays = {} if objective == "traffic" else {"filter_delay": 30.0, "link_delay": 1.0}
    want = nc.filters.improve(
        after.tree, after.flow, first.filters, objective, 2, migration_cost=3.0, k=settings.get("k"), **delays
    )
    got = nc.plan(after, "filters", method="flip", previous=first, moves=2, move_price=3.0, **settings)
    assert got.filters.tolist() == want.filters.tolist()
    assert got.cost.total == pytest.approx(want.after)
    assert nc.check(got).sound
    assert np.setdiff1d(got.filters, first.filters).size <= 2


def test_a_price_per_move_keeps_filters_where_they_are() -> None:
    before, after = changed(1)
    first = nc.plan(before, "filters", k=5)
    dear = nc.plan(after, "filters", k=5, method="flip", previous=first, moves=5, move_price=1e9)
    assert dear.filters.tolist() == first.filters.tolist()
    cheap = nc.plan(after, "filters", k=5, method="flip", previous=first, moves=5)
    assert cheap.cost.total < dear.cost.total


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"method": "flip"}, "previous must be a filters plan for method 'flip'"),
        ({"method": "exact", "moves": 1}, "moves must be left out for method 'exact'"),
        ({"move_price": 1.0}, "move_price must be left out"),
        ({"method": "flip", "objective": "both"}, "method must be one of auto, exact"),
    ],
)
def test_what_flip_needs_and_others_do_not_use_is_said(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        nc.plan(changed(0)[0], "filters", **options)


def test_a_plan_of_another_tree_is_refused() -> None:
    other = nc.plan(TreeDemand(nc.Tree([-1, 0, 0], names=["x", "y", "z"]), np.array([2.0, 1, 1])), "filters", k=1)
    with pytest.raises(InputError, match="no node x"):
        nc.plan(changed(0)[0], "filters", k=1, method="flip", previous=other)
