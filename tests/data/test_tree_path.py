"""From messages, profiles and a tree to a filters plan: every figure is what the raw messages say."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import narrowcast as nc
from narrowcast.reports.text import percent

pytestmark = pytest.mark.spark

NODES = {"w": None, "a": "w", "b": "w", "c": "a", "d": "a", "e": "b", "f": "b"}
SUBSCRIPTIONS = [
    ("ann", "symbol = 'IBM' AND price > 60", "c"),
    ("bob", "symbol = 'IBM'", "c"),
    ("cy", "symbol = 'GE' AND price < 20", "d"),
    ("di", "price > 80", "e"),
    ("di", "symbol = 'MSFT'", "e"),
    ("ed", "symbol IN ('GE', 'MSFT') AND price > 50", "f"),
    ("flo", "symbol = 'IBM' AND price > 60", "f"),
]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    symbols = ("IBM", "GE", "MSFT", "AMD")  # nobody wants AMD but above 80
    messages = [{"symbol": symbols[i * 7 % 4], "price": float(i * 37 % 100)} for i in range(400)]
    times = pd.date_range("2026-01-05", periods=400, freq="25ms")
    log = pa.Table.from_pylist(messages).append_column("ts", pa.array(times, pa.timestamp("us")))
    pq.write_table(log, folder / "messages.parquet")
    columns = ("subscriber", "profile", "node")
    pq.write_table(
        pa.table(dict(zip(columns, zip(*SUBSCRIPTIONS, strict=True), strict=True))), folder / "subscriptions.parquet"
    )
    pq.write_table(pa.table({"node": list(NODES), "parent": list(NODES.values())}), folder / "tree.parquet")
    return folder


def wanted_below(folder: Path) -> dict[str, set[int]]:
    """The messages that somebody at or below each node wants, one by one."""
    messages = pq.read_table(folder / "messages.parquet").drop(["ts"]).to_pylist()
    below: dict[str, set[int]] = {node: set() for node in NODES}
    for _, profile, node in SUBSCRIPTIONS:
        test = nc.Profile.parse(profile)
        found = {i for i, message in enumerate(messages) if test.matches(message)}
        at: str | None = node
        while at is not None:
            below[at] |= found
            at = NODES[at]
    return below


def traffic(below: dict[str, set[int]], filters: set[str]) -> float:
    """Messages a second on all links together, each followed from the root: the definition, message by message."""
    seconds, total = 399 * 0.025, 0
    for message in below["w"]:
        waiting = ["w"]
        while waiting:
            at = waiting.pop()
            children = [child for child, parent in NODES.items() if parent == at]
            passed = [child for child in children if at not in filters or message in below[child]]
            total += len(passed)
            waiting += passed
    return total / seconds


def check(plan: Any, folder: Path) -> None:
    below = wanted_below(folder)
    filters = {plan.node_names[v] for v in plan.filters.tolist()}
    best = min(traffic(below, {one, two}) for one in "wab" for two in "wab")
    assert plan.cost.total == pytest.approx(traffic(below, filters)) == pytest.approx(best)
    assert float(plan.cost.baselines["no filter"]) == pytest.approx(traffic(below, set()))
    assert float(plan.cost.baselines["every vertex"]) == pytest.approx(traffic(below, set("wab")))
    assert 0.05 < 1 - plan.cost.total / traffic(below, set()) < 0.95


@pytest.mark.parametrize("key", ["symbol", None])
def test_what_a_measured_plan_saves_is_what_the_raw_messages_say(spark: Any, inputs: Path, key: str | None) -> None:
    tables = (inputs / "messages.parquet", inputs / "subscriptions.parquet")
    demand = nc.measure(*tables, key or (), tree=inputs / "tree.parquet", spark=spark)
    found = pd.read_parquet(demand.folder / "tree_demand.parquet").set_index("node")["size"]
    below = wanted_below(inputs)
    assert found.to_dict() == pytest.approx({node: len(some) / (399 * 0.025) for node, some in below.items()})
    plan = nc.plan(demand, "filters", k=2)
    assert nc.check(plan).sound
    check(plan, inputs)


def test_the_same_by_commands_from_tables_to_the_report(spark: Any, inputs: Path, tmp_path: Path) -> None:
    """Measured by the library (a second Spark would take a minute), the rest by commands."""
    nc.measure(
        inputs / "messages.parquet", inputs / "subscriptions.parquet", (), tree=inputs / "tree.parquet", spark=spark,
        out=tmp_path / "measured",
    )  # fmt: skip

    def run(*arguments: object) -> str:
        command = [sys.executable, "-m", "narrowcast.cli", *map(str, arguments)]
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd=tmp_path).stdout

    made = json.loads(run("plan", "filters", "measured", "--k", 2, "--out", "plan", "--json"))
    run("plan", "filters", inputs / "tree.parquet", "measured", "--k", 2, "--out", "again")
    both = [nc.load(tmp_path / name) for name in ("plan", "again")]
    assert both[0].filters.size
    assert both[0].cost.total == both[1].cost.total == made["cost"]["total"]
    check(both[0], inputs)
    assert json.loads(run("check", "plan", "--json"))["sound"]
    run("report", "plan", "--out", "report.html")
    saved = 1 - both[0].cost.total / traffic(wanted_below(inputs), set())
    assert f"save {percent(saved)} of the traffic" in (tmp_path / "report.html").read_text()


def test_subscriptions_without_a_node_say_why_nothing_is_measured_below_the_tree(spark: Any, inputs: Path) -> None:
    from narrowcast.data.statistics.measure import measure_folder

    table = pq.read_table(inputs / "subscriptions.parquet").drop(["node"])
    bare = inputs / "bare.parquet"
    pq.write_table(table, bare)
    given = {"messages": inputs / "messages.parquet", "subscriptions": bare, "tree": inputs / "tree.parquet"}
    found = measure_folder(spark, given, inputs.parent / "bare")
    assert any("no column node" in line for line in found.remarks)
    assert not (inputs.parent / "bare" / "tree_demand.parquet").exists()
