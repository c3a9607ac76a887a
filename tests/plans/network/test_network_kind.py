"""A network plan passes the public exam, keeps its limits, and its judge notices what is wrong."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import narrowcast as nc
from narrowcast.errors import InfeasibleError, InputError, PlanError
from narrowcast.model.network_demand import NetworkDemand
from narrowcast.plans.kinds import KINDS
from narrowcast.plans.network.plan import make
from narrowcast.plans.network.result import NetworkPlan
from narrowcast.plans.verbs import judge
from narrowcast.testing import exam_kind
from plans.network.small import small_network


def test_it_passes_the_public_exam() -> None:
    exam_kind(KINDS["network"], [small_network(seed) for seed in range(6)], channels=2, filters=1)


def test_a_site_alone_and_one_that_nobody_is_in_pass_it_too() -> None:
    topology = nc.Topology([(0, 1)], names=["a", "b"])
    interest = nc.Interest.from_pairs([0, 1], [0, 0], [5.0, 1.0], flow_names=["x", "y"], user_names=["ann"])
    common = {"hosts": ["h"], "host_site": [0], "host": [0], "key": ("k",), "groups": 1, "sessions": 1}
    apart = NetworkDemand(topology, interest, sites=["A", "B"], gateway=[0, 1], source=[0, 0], **common)
    exam_kind(KINDS["network"], [apart])
    assert make(apart).cost.links == 0


def test_every_verb_takes_it(tmp_path) -> None:
    plan = nc.plan(small_network(3), "network", channels=2).save(tmp_path / "plan")
    again = nc.load(tmp_path / "plan")
    assert again.check().sound
    assert again.cost == plan.cost
    page = again.report(tmp_path / "report.html").read_text()
    assert "The cost by site" in page
    assert 'data-plot="overlay"' in page
    assert again.diff(nc.plan(small_network(3), "network", channels=1)).after is not None
    assert "plan_flow_channel.csv" in again.export("csv", tmp_path / "csv").texts
    found = again.whatif(channels=[1, 4], workers=1, time_limit=2)
    assert [point.cost for point in found.points] == sorted((p.cost for p in found.points), reverse=True)
    for what, name in (("flow", "f0"), ("subscriber", "u0"), ("site", "S0"), ("node", "b0")):
        told = again.explain(**{what: name})
        assert told.headline
        assert told.cost == pytest.approx(plan.cost.total)


def _damaged(plan: NetworkPlan, name: str, table: pa.Table) -> tuple[str, ...]:
    tables = plan.to_tables()
    return judge(replace(tables, tables={**tables.tables, name: table}, checks={})).faults


@cache
def _planned(seed: int) -> NetworkPlan:
    return make(small_network(seed), channels=2, price_group=0.0)


@pytest.mark.parametrize("table", ["flow_channel", "trees", "unicast", "flow_session", "session_group", "paths"])
def test_the_judge_notices_each_missing_row_that_matters(table: str) -> None:
    seen = 0
    for seed in range(12):
        plan = _planned(seed)
        rows = plan.to_tables().tables[table]
        for at in range(min(rows.num_rows, 3)):
            kept = pa.concat_tables([rows.slice(0, at), rows.slice(at + 1)])
            assert _damaged(plan, table, kept), f"seed {seed}: row {at} of {table} is gone and nobody noticed"
            seen += 1
    assert seen or table == "paths"


def test_the_judge_knows_every_limit() -> None:
    plan = make(small_network(1), channels=2, price_group=0.0)
    tables = plan.to_tables().tables
    sites = tables["sites"]
    none = sites.set_column(2, "groups", pa.array([0] * sites.num_rows))
    if tables["session_group"].num_rows:
        assert any("groups, it may use 0" in fault for fault in _damaged(plan, "sites", none))
    links = tables["links"]
    narrow = links.set_column(4, "capacity", pa.array([1e-9] * links.num_rows))
    assert any("it bears" in fault for fault in _damaged(plan, "links", narrow))
    people = tables["subscribers"]
    hasty = people.set_column(2, "latency_bound", pa.array([1e-9] * people.num_rows))
    assert any("wants it within" in fault for fault in _damaged(plan, "subscribers", hasty))
    hosts = tables["hosts"]
    deaf = hosts.set_column(2, "multicast", pa.array([False] * hosts.num_rows))
    if tables["flow_session"].num_rows:
        assert any("cannot do multicast" in fault for fault in _damaged(plan, "hosts", deaf))


def test_an_unsound_plan_is_not_written(tmp_path) -> None:
    plan = make(small_network(1), channels=2)
    tables = plan.to_tables()
    fewer = {**tables.tables, "unicast": tables.tables["unicast"].slice(1)}
    with pytest.raises(PlanError, match="not written"):
        replace(plan, written=replace(tables, tables=fewer)).save(tmp_path / "plan")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"channels": -1}, "channels must be a whole number"),
        ({"filters": 1.5}, "filters must be a whole number"),
        ({"price_send": -1}, "price_send must be a number, zero or more"),
        ({"price_cpu": float("nan")}, "price_cpu must be a number"),
        ({"method": "magic"}, "method must be one of joint, stitched"),
        ({"time_limit": 0}, "time_limit must be above 0"),
        ({"moves": 3}, "moves must be left out without a previous plan"),
        ({"filter_delay": -1}, "filter_delay must be zero or more"),
    ],
)
def test_impossible_options_are_refused_with_one_line(options: dict, told: str) -> None:
    with pytest.raises(InputError, match=told):
        make(small_network(0), **options)


def test_parts_that_no_path_joins_are_refused() -> None:
    demand = small_network(0)
    lone = nc.Topology([(0, 1)], n_brokers=demand.topology.n_brokers, names=demand.topology.names)
    with pytest.raises(InputError, match="no path joins the sites"):
        make(replace(demand, topology=lone, capacity=np.inf))


def test_a_bound_that_no_way_keeps_is_infeasible() -> None:
    demand = small_network(2)
    with pytest.raises(InfeasibleError, match="latency_bound must be at least"):
        make(replace(demand, bound=np.full(demand.interest.n_users, 1e-6)))


def test_a_capacity_moves_traffic_and_too_small_a_one_is_infeasible() -> None:
    """Two ways from A to B, the cheap one too thin for both flows."""
    topology = nc.Topology([(0, 1), (0, 2), (1, 2)], cost=[1, 2, 2], delay=[1, 1, 1], names=["a", "b", "c"])
    interest = nc.Interest.from_pairs([0, 1], [0, 1], [10.0, 10.0], flow_names=["x", "y"], user_names=["p", "q"])
    common = {"hosts": ["h", "i"], "host_site": [1, 2], "host": [0, 1], "groups": 0, "sessions": 0, "source": [0, 0]}
    sites = {"sites": ["A", "B", "C"], "gateway": [0, 1, 2]}
    free = NetworkDemand(topology, interest, **sites, **common)
    assert make(free, channels=4).loads.max() <= 1000
    thin = replace(free, capacity=np.array([500.0, np.inf, np.inf]))
    plan = make(thin, channels=4)
    assert plan.loads[0] <= 500
    assert plan.check().sound
    with pytest.raises(InfeasibleError, match="capacity of the link"):
        make(replace(free, capacity=np.full(3, 10.0)), channels=4)


def test_hosts_join_no_more_groups_than_they_may() -> None:
    for seed in range(5):
        free = make(small_network(seed), channels=2, price_group=0.0)
        tight = make(replace(small_network(seed), joins_per_host=1), channels=2, price_group=0.0)
        assert tight.check().sound
        assert tight.cost >= free.cost * (1 - 1e-9)
    assert (
        make(replace(small_network(1), joins_per_host=0), channels=2).to_tables().tables["flow_session"].num_rows == 0
    )


@pytest.mark.slow
def test_going_on_from_a_plan_changes_no_more_than_it_may() -> None:
    from narrowcast.plans.network.methods.previous import carried_over, count_moves

    demand = nc.workloads.network(sites=5, users=60, symbols=200, seed=1)
    old = make(demand, channels=6, time_limit=3)
    rng = np.random.default_rng(0)
    n = demand.interest
    rates = n.rates * rng.lognormal(0, 1, n.n_flows)
    drifted = replace(demand, interest=replace(n, rates=rates))
    free = make(drifted, channels=6, time_limit=3)
    start = carried_over(free.problem, old.problem, old.decisions)
    for moves in (0, 20, 200):
        plan = make(drifted, channels=6, time_limit=3, previous=old, moves=moves)
        assert plan.check().sound
        assert count_moves(plan.problem, start, plan.decisions) <= moves
    assert make(drifted, channels=6, time_limit=3, previous=old).cost <= free.cost * 1.001
