"""A filters plan: one class for every objective, the same after a way through its tables, parameters kept apart."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import narrowcast as nc
from naive.filter_problems import random_problem
from narrowcast.errors import InputError
from narrowcast.evaluate.verdict import verdict
from narrowcast.model.plan import Tables
from narrowcast.plans.filters import judge
from narrowcast.plans.filters.migrate import ways
from narrowcast.plans.filters.plan import make
from narrowcast.plans.filters.result import FiltersPlan, TreeDemand
from narrowcast.plans.filters.whatif import family, quick

SETTINGS: list[dict[str, Any]] = [
    {"k": 2},
    {"k": 3, "method": "price"},
    {"objective": "delay", "filter_delay": 0.7, "link_delay": 1.5},
    {"objective": "both", "filter_delay": 0.7, "traffic_weight": 2.0, "delay_weight": 0.5, "price": 1.25},
]
TREE = nc.Tree([-1, 0, 0, 1, 1, 2, 2])
FLOW = np.array([4.0, 2, 3, 1, 1, 2, 2])


def same_tables(one: Tables, two: Tables) -> bool:
    return (
        all(one.tables[name].equals(two.tables[name]) for name in one.tables) and one.tables.keys() == two.tables.keys()
    )


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("seed", range(6))
def test_a_plan_is_sound_and_comes_back_from_its_tables(settings: dict[str, Any], seed: int) -> None:
    problem = random_problem(seed)
    plan = make(TreeDemand(problem.tree, problem.flow), **settings)
    tables = plan.to_tables()
    assert verdict(tables, judge).faults == ()
    read = FiltersPlan.from_tables(tables)
    assert read.to_tables() is tables
    again = read.made_from({})
    assert same_tables(again.to_tables(), tables)
    for name in ("cost", "parameters", "baselines", "lower_bound", "gap", "seed"):
        assert getattr(again.to_tables(), name) == getattr(tables, name), name
    assert read.cost.terms == pytest.approx(plan.cost.terms)
    assert (read.goal, read.method, read.k) == (plan.goal, plan.method, plan.k)


@pytest.mark.parametrize("settings", SETTINGS)
def test_a_plan_travels_to_another_process(settings: dict[str, Any]) -> None:
    plan = make(TreeDemand(TREE, FLOW), **settings)
    again = pickle.loads(pickle.dumps(plan))
    assert same_tables(again.to_tables(), plan.to_tables())
    assert again.cost.baselines == plan.cost.baselines


def test_make_says_what_the_planner_of_each_objective_finds() -> None:
    demand = TreeDemand(TREE, FLOW)
    assert make(demand, k=2).filters.tolist() == nc.filters.place(TREE, FLOW, 2).filters.tolist()
    late = nc.filters.place_for_delay(TREE, FLOW, filter_delay=2, link_delay=1)
    assert make(demand, objective="delay", filter_delay=2).delay == late.delay
    both = nc.filters.place_weighted(TREE, FLOW, delay_weight=1, link_delay=1, price=3)
    found = make(demand, objective="both", price=3)
    assert (found.objective, found.traffic, found.delay) == (both.objective, both.traffic, both.delay)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"price": 1.0}, "price must be left out for objective 'traffic'"),
        ({"objective": "delay", "k": 1}, "k must be left out for objective 'delay'"),
        ({"objective": "delay", "delay_weight": 1.0}, "delay_weight must be left out"),
        ({"objective": "delay", "method": "price"}, "method must be one of auto, exact, flip, got 'price'"),
        ({"objective": "speed"}, "objective must be one of traffic, delay, both, got 'speed'"),
        ({"method": "magic"}, "method must be one of auto, exact, price, flip, got 'magic'"),
    ],
)
def test_what_an_objective_does_not_use_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        make(TreeDemand(TREE, FLOW), **settings)
    with pytest.raises(InputError, match="demand must be a TreeDemand, got list"):
        make([TREE, FLOW], **settings)


def test_a_plan_for_traffic_knows_no_delay() -> None:
    with pytest.raises(AttributeError, match="no term 'delay'"):
        _ = nc.filters.place(TREE, FLOW, 1).delay


def test_what_if_plans_again_with_the_settings_of_the_objective() -> None:
    plan = FiltersPlan.from_tables(make(TreeDemand(TREE, FLOW), k=1).to_tables())
    asked = family(plan)
    assert (asked.budgets, asked.prices, asked.setting("k")) == (("k",), (), 1.0)
    assert asked.present() == asked.replan({}, None) == (15.0, 15 / 24)
    assert asked.replan({"k": 2.0}, None) == (13.0, 13 / 24)
    late = family(make(TreeDemand(TREE, FLOW), objective="delay", filter_delay=2.0))
    assert (late.budgets, late.prices) == ((), ("filter_delay", "link_delay"))
    assert late.replan({"filter_delay": 1e9}, None).relative == 1.0


def test_the_quick_curve_is_the_optimum_for_every_number() -> None:
    found = quick(FiltersPlan.from_tables(make(TreeDemand(TREE, FLOW), k=1).to_tables()))
    assert found is not None
    assert quick(make(TreeDemand(TREE, FLOW), objective="delay")) is None


def test_a_leaf_needs_every_link_from_the_root() -> None:
    found = ways(make(TreeDemand(TREE, FLOW), k=1).to_tables())
    assert {(need.who, need.what) for need in found.wishes["3", "all for 3"]} == {("0", "to 1"), ("1", "to 3")}
    assert (found.place["all for 3"], found.filters, found.weight["all for 3"]) == ("under 1", {"0": 4.0}, 1.0)
