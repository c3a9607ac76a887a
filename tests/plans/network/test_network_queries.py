"""Queries in a network: merged under the one cost, judged by themselves, explained and written like flows."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import narrowcast as nc
from naive.network_queries import least_merged
from narrowcast.cli import run
from narrowcast.errors import InputError
from narrowcast.plans.kinds import KINDS
from narrowcast.plans.network.plan import make
from narrowcast.plans.network.queries import AskedQueries, with_answers, without_answers
from narrowcast.plans.network.result import NetworkPlan
from narrowcast.plans.queries.result import QueryDemand
from narrowcast.plans.queries.sizes import as_sizes
from narrowcast.plans.verbs import decoded, judge
from narrowcast.testing import exam_kind
from plans.network.small import small_queries

PRICES = {"channels": 2, "filters": 1, "price_filter": 0.002, "price_group": 0.0005}


@cache
def _planned(seed: int) -> NetworkPlan:
    return make(small_queries(seed, flows=2), **PRICES)


def _ratio(seed: int, queries: int) -> float:
    demand = small_queries(seed, queries, flows=2)
    plan = make(demand, **PRICES)
    assert plan.check().sound
    if "stitched" in plan.cost.baselines:
        assert plan.cost <= plan.cost.baselines["stitched"] * (1 + 1e-12)
    return float(plan.cost) / least_merged(demand, 0.05, **PRICES)


def test_a_few_small_networks_merge_as_well_as_trying_all_ways() -> None:
    found = [_ratio(seed, 3) for seed in range(12)]
    assert sum(ratio <= 1 + 1e-9 for ratio in found) >= 11, found


@pytest.mark.nightly
def test_sixty_small_networks_merge_as_well_as_trying_all_ways_in_95_of_100() -> None:
    found = [_ratio(seed, 5 if seed % 4 == 0 else 4) for seed in range(60)]
    assert sum(ratio <= 1 + 1e-9 for ratio in found) >= 57, sorted(found)[-8:]


def test_plans_with_queries_pass_the_public_exam() -> None:
    exam_kind(KINDS["network"], [small_queries(seed, 3, flows=2) for seed in (0, 4)], channels=2, filters=1)


def test_prices_of_links_decide_what_is_merged() -> None:
    """Two queries that share half: in one site one answer serves both; in two far apart each gets its own."""
    topology = nc.Topology([(0, 1), (0, 2)], cost=[1.0, 1.0], names=["a", "b", "c"])
    interest = nc.Interest.from_pairs([0], [0], [1e-6], n_users=2, flow_names=["x"], user_names=["ann", "bob"])
    asked = QueryDemand([[[0, 4000]], [[2000, 6000]]], ("price",), ("p", "q"), ("ann", "bob"))
    common = {"sites": ["A", "B", "C"], "gateway": [0, 1, 2], "groups": 0, "sessions": 0, "hosts": ["h", "i"],
              "host_site": [1, 2], "source": [0], "key": ("symbol",)}  # fmt: skip
    apart = nc.NetworkDemand(topology, interest, host=[0, 1], queries=AskedQueries(asked, "A"), **common)
    assert make(apart).demand.queries.sets == ((0,), (1,))
    together = make(replace(apart, host=[0, 0]))
    assert together.demand.queries.sets == ((0, 1),)
    assert together.demand.interest.flow_names == ("x", "answers 0")
    assert together.cost.links == pytest.approx(3600 / 1e9 * (6000 * 100 / 60 + 1e-6 * 100))
    often = replace(asked, names=("p", "q"))
    mixed = replace(apart, host=[0, 0], queries=AskedQueries(often, "A", every=[1, 2]))
    assert make(mixed).demand.queries.sets == ((0,), (1,))


def test_flows_and_answers_come_apart_again() -> None:
    demand = small_queries(0)
    again = without_answers(with_answers(demand, [list(range(len(demand.queries.every)))]))
    assert again.queries.sets == ()
    assert np.array_equal(again.interest.users, demand.interest.users)
    assert again.interest.flow_names == demand.interest.flow_names


def _faults(plan: NetworkPlan, name: str, table: pa.Table) -> tuple[str, ...]:
    tables = plan.to_tables()
    return judge(replace(tables, tables={**tables.tables, name: table}, checks={})).faults


@pytest.mark.parametrize("name", ["queries", "merges", "channels", "frequency"])
def test_the_judge_notices_each_missing_row(name: str) -> None:
    for seed in range(4):
        rows = _planned(seed).to_tables().tables[name]
        for at in range(min(rows.num_rows, 4)):
            kept = pa.concat_tables([rows.slice(0, at), rows.slice(at + 1)])
            assert _faults(_planned(seed), name, kept), f"seed {seed}: row {at} of {name} is gone and nobody noticed"


def _with(table: pa.Table, column: str, change) -> pa.Table:
    values = [change(at, value) for at, value in enumerate(table[column].to_pylist())]
    return table.set_column(table.column_names.index(column), column, pa.array(values, table[column].type))


@pytest.mark.parametrize(
    ("table", "column", "change", "told"),
    [
        ("channels", "high", lambda at, v: v - 5 if at == 0 else v, "rows would be lost"),
        ("channels", "low", lambda at, v: v - 5 if at == 0 else v, "wider than its queries need"),
        ("flows", "rate", lambda at, v: v * 1.5, "its set's answer has"),
        ("frequency", "every", lambda at, v: 0, "every must be 1 or more"),
        ("frequency", "every", lambda at, v: 3, "its set's answer has"),
        ("merges", "set", lambda at, v: v + 100, "has no piece"),
        ("interest", "subscriber", lambda at, v: "u0", "does not get answers"),
    ],
)
def test_the_judge_names_what_is_wrong_with_answers(table: str, column: str, change, told: str) -> None:
    plan = next(p for p in map(_planned, range(12)) if len(set(p.demand.queries.asked.clients)) > 1)
    found = _faults(plan, table, _with(plan.to_tables().tables[table], column, change))
    assert any(told in fault for fault in found), found


@pytest.mark.parametrize(
    "about", [{"period_s": 0}, {"period_s": "soon"}, {"row_bytes": float("nan")}, {"site": "?"}, None]
)
def test_damaged_parameters_are_faults(about: dict | None) -> None:
    tables = _planned(0).to_tables()
    rest = {name: value for name, value in tables.parameters.items() if name != "queries"}
    more = {} if about is None else {"queries": {**tables.parameters["queries"], **about}}
    assert not judge(replace(tables, parameters={**rest, **more})).sound


def test_a_plan_without_one_of_its_query_tables_is_one_error(tmp_path: Path) -> None:
    tables = _planned(0).to_tables()
    for name in ("queries", "merges", "channels", "frequency"):
        fewer = replace(tables, tables={n: t for n, t in tables.tables.items() if n != name})
        assert not judge(fewer).sound
        with pytest.raises(InputError, match="the plan cannot be"):
            decoded(fewer)


def test_an_answer_is_explained_and_reported_like_a_flow(tmp_path: Path) -> None:
    plan = next(p for p in map(_planned, range(12)) if len(p.demand.queries.sets) < len(p.demand.queries.every))
    at = max(range(len(plan.demand.queries.sets)), key=lambda i: len(plan.demand.queries.sets[i]))
    told = plan.explain(flow=f"answers {at}")
    assert "answers" in told.headline
    assert len(told.facts["queries"]) == len(plan.demand.queries.sets[at]) > 1
    apart = next(choice for choice in told.choices if choice.what == "each of its queries by itself")
    assert apart.change >= -1e-9
    page = plan.save(tmp_path / "plan").report(tmp_path / "report.html").read_text()
    assert "Merged queries" in page
    assert nc.load(tmp_path / "plan").whatif(channels=[1], workers=1, time_limit=2).points


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"site": "Atlantis"}, "must be a site of the network"),
        ({"period_s": 0.0}, "period_s must be above 0"),
        ({"row_bytes": float("inf")}, "row_bytes must be above 0"),
        ({"every": 0}, "every\\[0\\] must be at least 1"),
        ({"size": as_sizes(lambda boxes: boxes[:, 0, 0])}, "size must be an area"),
    ],
)
def test_impossible_queries_are_refused(change: dict, told: str) -> None:
    demand = small_queries(0)
    with pytest.raises(InputError, match=told):
        make(replace(demand, queries=replace(demand.queries, **change)))


def test_strange_clients_and_useless_options_are_refused() -> None:
    demand = small_queries(0)
    strange = replace(demand.queries.asked, clients=tuple("x" for _ in demand.queries.every))
    with pytest.raises(InputError, match="client x must be a subscriber"):
        make(replace(demand, queries=replace(demand.queries, asked=strange)))
    with pytest.raises(InputError, match="period_s must be left out"):
        make(replace(demand, queries=None), period_s=5.0)


def test_a_folder_with_queries_goes_from_tables_to_a_plan(tmp_path: Path, capsys) -> None:
    bank = tmp_path / "bank"
    nc.workloads.write("network", bank, users=20, messages=50, sites=3, symbols=60)
    people = sorted(set(pq.read_table(bank / "subscriptions.parquet")["subscriber"].to_pylist()))
    rows = [{"query": f"q{i}", "client": people[i], "profile": f"price BETWEEN {i} AND {i + 2000}", "every": 1 + i % 2}
            for i in range(4)]  # fmt: skip
    rows.append({"query": "bad", "client": people[0], "profile": "price > 'a'", "every": 1})
    pq.write_table(pa.Table.from_pylist(rows), bank / "queries.parquet")
    assert run(["plan", "network", str(bank)]) == 2
    assert "no site where the table is" in " ".join(capsys.readouterr().err.split())
    sources = pq.read_table(bank / "sources.parquet")
    site = pq.read_table(bank / "sites.parquet")["site"][0].as_py()
    more = pa.Table.from_pylist([{"flow": "answers", "site": site}], schema=sources.schema.remove_metadata())
    pq.write_table(pa.concat_tables([sources.replace_schema_metadata(None), more]), bank / "sources.parquet")
    assert (
        run(["plan", "network", str(bank), "--period", "10", "--out", str(tmp_path / "plan"), "--time-limit", "2"]) == 0
    )
    assert "4 queries in" in capsys.readouterr().out
    plan = nc.load(tmp_path / "plan")
    assert plan.check().sound
    assert plan.demand.queries.period_s == 10
    assert plan.demand.queries.every.tolist() == [1, 2, 1, 2]
    capsys.readouterr()
    assert run(["explain", str(tmp_path / "plan"), "--flow", "answers 0", "--json"]) == 0
    assert "queries" in json.loads(capsys.readouterr().out)["facts"]
