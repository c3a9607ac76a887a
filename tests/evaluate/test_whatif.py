"""What-if sweeps: every point is what planning there gives, budgets never cost more, the knee is where it is drawn."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import narrowcast as nc
from evaluate.plans import MAKERS, queries_plan
from narrowcast import cli
from narrowcast.errors import InputError
from narrowcast.evaluate.knee import knee
from narrowcast.model.folder import write_tables
from narrowcast.plans.channels.whatif import family
from narrowcast.plans.verbs import certify, decoded, whatif


def market(method: str = "gf") -> nc.Plan:
    interest = nc.workloads.market(symbols=300, users=25, seed=2)
    return nc.channels.plan(interest, groups=4, sessions=20, method=method)


def tree_plan() -> nc.Plan:
    demand = nc.workloads.tree_demand(kind="uniform", levels=5, items=16, p=0.2, seed=1)
    return nc.filters.place(demand.tree, demand.flow, k=3)


def test_a_sweep_over_groups_is_planning_at_each_and_never_rises() -> None:
    plan = market()
    found = whatif(plan, groups=[1, 2, 8, 16], workers=1)
    interest = nc.workloads.market(symbols=300, users=25, seed=2)
    for point in found.points:
        there = nc.channels.plan(interest, groups=int(point.settings["groups"]), sessions=20, method="gf")
        assert point.found == pytest.approx(there.cost.excess)
    costs = [point.cost for point in found.points]
    assert costs == sorted(costs, reverse=True)
    assert all(point.cost <= point.found for point in found.points)
    assert found.present == {"groups": 4.0, "cost": plan.cost.excess, "relative": plan.cost.relative}


def test_a_plan_that_keeps_a_smaller_budget_stands_in_where_planning_found_less() -> None:
    plan = market("search")
    worse = nc.channels.plan(nc.workloads.market(symbols=300, users=25, seed=2), 4, 20, "random")
    found = whatif(plan, groups=[2, 4, 8], workers=1)
    at = {int(point.settings["groups"]): point for point in found.points}
    assert at[4].cost <= plan.cost.excess * (1 + 1e-9)
    assert worse.cost.excess > at[4].cost


@pytest.mark.slow
def test_two_processes_find_what_one_does() -> None:
    plan = tree_plan()
    one, two = (whatif(plan, k=[0, 1, 5, 9], workers=n) for n in (1, 2))
    assert [(p.settings, p.cost, p.relative) for p in one.points] == [
        (p.settings, p.cost, p.relative) for p in two.points
    ]


def test_filters_follow_the_optimal_curve() -> None:
    plan = tree_plan()
    demand = nc.workloads.tree_demand(kind="uniform", levels=5, items=16, p=0.2, seed=1)
    curve = nc.filters.place(demand.tree, demand.flow, k=9).curve
    found = whatif(plan, k=range(10), workers=1)
    assert [point.cost for point in found.points] == pytest.approx(curve.tolist())
    assert found.knee is not None


def test_prices_have_no_knee_and_hybrids_and_queries_are_swept_too() -> None:
    interest = nc.workloads.market(symbols=200, users=20, seed=1)
    mixed = nc.channels.hybrid(interest, groups=3)
    capped = whatif(mixed, cap=[0.1, 0.3], workers=1)
    assert len(capped.points) == 3  # the plan's own share of unicast is a setting too
    assert capped.points[-1].cost == pytest.approx(min(mixed.cost, capped.points[-1].found))
    priced = whatif(mixed, w3=[0.5, 2.0], workers=1)
    assert priced.knee is None
    merged = whatif(decoded(queries_plan(3)), km=[0.0, 5.0, 50.0], workers=1)
    assert [p.found for p in merged.points] == sorted(p.found for p in merged.points)
    both = whatif(decoded(queries_plan(3)), km=[0.5, 5.0], ku=[0.0, 0.1], workers=1)
    assert len(both.points) == 9


def test_what_a_plan_makes_use_of_stands_for_a_bound_it_has_not() -> None:
    plan = market()
    joins = plan.joins[0].tolist()
    assert family(plan).setting("joins_per_subscriber") == max(joins.count(user) for user in joins)
    limited = whatif(plan, joins_per_subscriber=[1, 2], workers=1)
    assert all(a.cost >= b.cost for a, b in zip(limited.points, limited.points[1:], strict=False))


def test_a_point_that_takes_too_long_or_has_no_plan_says_so() -> None:
    plan = market()
    bound = whatif(plan, rate_per_group=[1e-6], workers=1)
    assert "rate_per_group" in bound.points[0].failed
    assert bound.as_dict()["failed"][0]["rate_per_group"] == 1e-6
    slow = nc.channels.hybrid(nc.workloads.market(symbols=2000, users=60, seed=1), 5, unicast="none")
    by_search = {name: value for name, value in slow.parameters.items() if name not in ("unicast", "channelizer")}
    slow = replace(slow, parameters=by_search)
    given_up = whatif(slow, w2=[2.0], time_limit=0.02, workers=1)
    assert all("longer than 0.02 s" in point.failed for point in given_up.points if point.settings["w2"] == 2.0)


def test_what_cannot_be_swept_is_refused() -> None:
    with pytest.raises(InputError, match=r"channels plans have the settings .*, got 'k'"):
        whatif(market(), k=[1])
    with pytest.raises(InputError, match="one or two settings"):
        whatif(market(), groups=[1], sessions=[1], alpha=[1])
    with pytest.raises(InputError, match="zero or more"):
        whatif(market(), groups=[-1])
    with pytest.raises(InputError, match=r"filters plans have the settings .*, got 'filter_delay'"):
        whatif(tree_plan(), filter_delay=[1])


def test_the_knee_is_farthest_below_the_chord() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        x = np.sort(rng.choice(100, 8, replace=False)).astype(float)
        y = np.sort(rng.random(8))[::-1]
        at = knee([[v] for v in x], y.tolist())
        # Distance to a line through the ends of a square is the drop below it divided by √2.
        u, v = (x - x[0]) / (x[-1] - x[0]), (y - y[-1]) / (y[0] - y[-1])
        distance = np.abs(u + v - 1) / np.sqrt(2) * np.sign(1 - u - v)
        assert at is None or at == int(np.argmax(distance))


@pytest.mark.parametrize("settings", [["--groups", "1,2,8"], ["--groups", "2,8", "--sessions", "5,20"]])
def test_the_command_writes_table_json_and_picture(settings: list[str], tmp_path: Path, capsys: Any) -> None:
    market().save(tmp_path / "plan")
    out = tmp_path / "sweep"
    assert cli.run(["whatif", str(tmp_path / "plan"), *settings, "--workers", "1", "--out", str(out), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    written = json.loads((out / "whatif.json").read_text())
    assert written["points"] == shown["points"]
    assert all(
        set(point) == {*([o[2:] for o in settings if o.startswith("--")]), "cost", "relative"}
        for point in shown["points"]
    )
    assert pq.read_table(out / "whatif.parquet").num_rows == len(shown["points"])
    assert "<polyline" in (out / "whatif.svg").read_text()
    assert (out / "whatif.csv").stat().st_size > 0
    assert cli.run(["whatif", str(tmp_path / "plan"), *settings, "--workers", "1"]) == 0
    assert "this setting" in capsys.readouterr().out


def test_the_command_needs_a_setting_of_this_kind_of_plan(tmp_path: Path, capsys: Any) -> None:
    write_tables(certify(MAKERS["queries"](3)), tmp_path / "plan")
    assert cli.run(["whatif", str(tmp_path / "plan")]) == 2
    assert cli.run(["whatif", str(tmp_path / "plan"), "--km", "many"]) == 2
    assert cli.run(["whatif", str(tmp_path / "plan"), "--groups", "3"]) == 2
    assert "queries plans have the settings km, kt, ku, ka, got 'groups'" in capsys.readouterr().err


def test_semantic_plans_are_swept_over_channels_and_latency_bounds() -> None:
    rng = np.random.default_rng(3)
    ring = [(i, (i + 1) % 8) for i in range(8)] + [(0, 4)]
    window = pa.table({"x": rng.integers(0, 20, 60)})
    profiles = [f"x BETWEEN {a} AND {a + 6}" for a in (0, 3, 6, 9, 12)]
    clients = [(int(p), int(g)) for p, g in zip(rng.integers(0, 5, 12), rng.integers(1, 8, 12), strict=True)]
    plan = nc.semantic.plan(nc.Topology(ring), profiles, clients, window, 0)
    found = whatif(plan, max_channels=[1, 2, 4], workers=1)
    assert [p.cost for p in found.points] == sorted((p.cost for p in found.points), reverse=True)
    assert found.points[-1].settings["max_channels"] == plan.n_channels
    # All messages of the window are kept here, so the plan itself is one of those compared.
    assert found.present["cost"] == pytest.approx(plan.cost.full)
    assert found.points[-1].cost <= plan.cost.full * (1 + 1e-9)
    bounded = whatif(plan, latency_bound=[1, 3, 4, 20], workers=1)
    assert "latency" in bounded.points[0].failed
    assert bounded.points[-1].cost == pytest.approx(plan.cost.full)


def test_a_hybrid_is_swept_by_the_heuristics_that_made_it() -> None:
    interest = nc.workloads.random(60, 20, 0.3, seed=2)
    made = {g: nc.channels.hybrid(interest, g, "random", "none", seed=3) for g in (3, 6)}
    found = decoded(made[3].to_tables()).whatif(groups=[6], workers=1)
    assert [point.cost for point in found.points] == pytest.approx([float(made[3].cost), float(made[6].cost)])
    search = nc.channels.hybrid(interest, 6, seed=3)
    assert float(search.cost) < float(made[6].cost), "another method would be seen"


def test_a_setting_that_no_plan_can_have_is_refused_and_not_taken_for_the_best_of_the_others() -> None:
    plan = nc.plan(nc.Demand(nc.workloads.market(symbols=30, markets=2, users=8)), groups=2, sessions=4, method="gf")
    with pytest.raises(InputError, match="groups must be at most"):
        plan.whatif(groups=[2, 10**8])
