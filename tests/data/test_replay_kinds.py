"""Replays of plans of other kinds than channels: message by message, in plain Python, gives the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import narrowcast as nc
from narrowcast.data.planning.replay import replay
from narrowcast.errors import InputError
from narrowcast.plans.filters.plan import make as place_filters
from narrowcast.plans.filters.result import TreeDemand
from narrowcast.plans.network.cost import priced
from narrowcast.plans.network.plan import make as make_network
from narrowcast.plans.queries.plan import make as merge
from narrowcast.plans.queries.result import QueryDemand
from plans.network.small import small_network

pytestmark = pytest.mark.spark


def log(folder: Path, n: int = 400) -> Path:
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 100, n)
    table = pa.table({"x": x, "y": rng.uniform(0, 100, n), "source": [f"b{i % 2}" for i in range(n)]})
    pq.write_table(table, folder / "messages.parquet")
    return folder / "messages.parquet"


def rows(path: Path) -> list[dict[str, Any]]:
    return pq.read_table(path).to_pylist()


def test_merged_queries(spark: Any, tmp_path: Path) -> None:
    messages = log(tmp_path)
    boxes = nc.workloads.rectangles(n=12, seed=3)
    plan = merge(QueryDemand(boxes, ("x", "y")), km=200, kt=1, ku=0.05).save(tmp_path / "plan")
    found = replay(spark, tmp_path / "plan", messages, out=tmp_path / "out")

    def inside(row: dict[str, Any], box: Any) -> bool:
        return all(low <= row[name] <= high for name, (low, high) in zip(("x", "y"), box, strict=True))

    sent = sum(inside(row, box) for row in rows(messages) for box in plan.boxes)
    useful = sum(inside(row, box) for row in rows(messages) for box in boxes)
    heard = sum(len(s) * inside(row, b) for row in rows(messages) for s, b in zip(plan.sets, plan.boxes, strict=True))
    assert (found.cost["sent"], found.cost["useful"], found.cost["missed"]) == (sent, useful, 0)
    assert found.cost["irrelevant"] == heard - useful
    k = plan.constants
    assert found.cost["total"] == pytest.approx(k.km * len(plan.sets) + k.kt * sent + k.ku * (heard - useful))
    told = {row["name"]: row["useful"] for row in rows(tmp_path / "out" / "replay_queries.parquet")}
    assert sum(told.values()) == useful


def test_filters_on_a_tree(spark: Any, tmp_path: Path) -> None:
    messages = log(tmp_path)
    names = ("root", "a", "b", "a1", "a2", "b1")
    tree = nc.Tree([-1, 0, 0, 1, 1, 2], names=names)
    wants = {"a1": "x < 30", "a2": "x < 30", "b1": "y > 80"}
    flow = np.array([40.0, 20, 20, 20, 20, 20])
    plan = place_filters(TreeDemand(tree, flow), k=2).save(tmp_path / "plan")
    held = pa.table({"subscriber": list(wants), "profile": list(wants.values()), "node": list(wants)})
    pq.write_table(held, tmp_path / "subscriptions.parquet")
    found = replay(spark, tmp_path / "plan", messages, subscriptions=tmp_path / "subscriptions.parquet")
    below = {"root": ("a1", "a2", "b1"), "a": ("a1", "a2"), "b": ("b1",), "a1": ("a1",), "a2": ("a2",), "b1": ("b1",)}
    wanted = {"a1": lambda r: r["x"] < 30, "a2": lambda r: r["x"] < 30, "b1": lambda r: r["y"] > 80}
    real = [sum(any(wanted[leaf](row) for leaf in below[name]) for row in rows(messages)) for name in names]
    assert found.cost["wanted"] == real[0]
    assert found.cost["traffic"] == nc.filters.traffic(tree, real, plan.filters)
    assert found.cost["no_filter"] == nc.filters.traffic(tree, real, [])
    with pytest.raises(InputError, match="needs --subscriptions"):
        replay(spark, tmp_path / "plan", messages)


@pytest.mark.parametrize("variant", ["search", "semcast"])
def test_semantic_channels(spark: Any, tmp_path: Path, variant: str) -> None:
    messages = log(tmp_path)
    table = pq.read_table(messages)
    line = nc.Topology([(0, 1), (1, 2), (2, 3)])
    sources = np.arange(table.num_rows) % 2
    profiles = ["x < 30", "x < 50", "y > 70"]
    plan = nc.semantic.plan(line, profiles, [(0, 2), (1, 3), (2, 3)], table, sources=sources, variant=variant)
    plan.save(tmp_path / "plan")
    read = nc.load(tmp_path / "plan")
    if not set(read.broker_names) >= {"b0", "b1"}:
        named = dict(enumerate(read.broker_names))
        renamed = table.set_column(2, "source", pa.array([named[int(s)] for s in sources]))
        pq.write_table(renamed, messages)
    found = replay(spark, tmp_path / "plan", messages, out=tmp_path / "out")
    assert found.cost["total"] == pytest.approx(nc.semantic.bandwidth(plan, table, sources))
    assert (found.cost["messages"], found.cost["unknown_source"]) == (400, 0)
    assert found.predicted["total"] == pytest.approx(plan.cost.total)
    with pytest.raises(InputError, match="interest must be left out"):
        replay(spark, tmp_path / "plan", messages, interest=messages)


def test_a_network_costs_what_a_plan_says_that_was_made_with_the_rates_of_the_log(spark: Any, tmp_path: Path) -> None:
    d = replace(small_network(8, flows=6), key=("flow",))
    n = d.interest.n_flows
    plan = make_network(d, channels=2, price_group=0.0, price_send=50.0).save(tmp_path / "plan")
    counts = [3 * (flow + 1) for flow in range(n)]
    names = d.interest.flow_names or tuple(map(str, range(n)))
    sent = [name for name, times in zip(names, counts, strict=True) for _ in range(times)] + ["stranger"] * 5
    pq.write_table(pa.table({"flow": sent, "size": [7.0] * len(sent)}), tmp_path / "messages.parquet")
    users = d.interest.user_names or tuple(map(str, range(d.interest.n_users)))
    flow, user = d.interest.flow_of_pair.tolist(), d.interest.users.tolist()
    wants = {(users[u], f"flow = '{names[f]}'") for f, u in zip(flow, user, strict=True)} | {
        (users[0], "flow = 'stranger'")
    }
    held = pa.table({"subscriber": [who for who, _ in sorted(wants)], "profile": [text for _, text in sorted(wants)]})
    pq.write_table(held, tmp_path / "subscriptions.parquet")
    held_at, messages = tmp_path / "subscriptions.parquet", tmp_path / "messages.parquet"
    found = replay(spark, tmp_path / "plan", messages, subscriptions=held_at, out=tmp_path / "out")
    seconds = sum(counts) / d.interest.rates.sum()  # a log without times is as long as the plan's rates say
    real = replace(d, interest=replace(d.interest, rates=np.array(counts) / seconds), size=np.full(n, 7.0))
    expected = priced(replace(plan.problem, demand=real), plan.decisions)
    assert {name: found.cost[name] for name in expected.terms} == pytest.approx(expected.terms)
    useful = sum(counts[f] for f in flow) + 5
    assert (found.cost["unplanned"], found.cost["useful"], found.cost["missed"]) == (5, useful, 5)
    links = {row["name"]: row["messages"] for row in rows(tmp_path / "out" / "replay_links.parquet")}
    assert sum(links.values()) * 7 == pytest.approx(float(expected.loads.sum()) * seconds)
    sites = rows(tmp_path / "out" / "replay_sites.parquet")
    assert sum(row["messages"] for row in sites) == pytest.approx(
        expected.terms["sending"] / plan.problem.send_price * seconds
    )
