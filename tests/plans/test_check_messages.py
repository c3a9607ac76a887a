"""`check --messages` for every kind: messages sent through the plan as its tables say, and who would miss one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest

import narrowcast as nc
from narrowcast.cli import run
from narrowcast.plans.filters.result import TreeDemand
from narrowcast.workloads import network as generate_network

ROWS = pa.table({"item": [f"i{n % 6}" for n in range(60)], "x": [n % 10 for n in range(60)]})


def table(*rows: tuple[str, str, str]) -> pa.Table:
    return pa.table(dict(zip(("subscriber", "profile", "node"), zip(*rows, strict=True), strict=True)))


def test_filters_bring_every_wanted_message_to_its_node() -> None:
    tree = nc.Tree([-1, 0, 0, 1, 1, 2], names=["r", "a", "b", "a1", "a2", "b1"])
    plan = nc.plan(TreeDemand(tree, np.array([6.0, 5.0, 2.0, 3.0, 3.0, 2.0])), "filters", k=2)
    assert plan.filters.size
    wishes = table(("ann", "item IN ('i1', 'i2')", "a1"), ("bob", "x > 5", "b1"), ("cat", "item = 'i3'", "a"))
    found = nc.check(plan, ROWS, wishes)
    assert found.sound
    wanted = sum(len(nc.Matcher([text]).match(ROWS)[0]) for text in wishes["profile"].to_pylist())
    assert found.checked[-1] == f"{wanted} wanted messages reach their subscribers"
    lost = nc.check(plan, ROWS, table(("ann", "item = 'i1'", "a1"), ("dan", "x = 1", "z9")))
    assert lost.faults == ("message 1 is wanted by dan at its node, which is not in the tree: 'z9'",)


@pytest.mark.parametrize("method", ["search", "merge"])
def test_semantic_channels_bring_them_to_the_gateways_and_to_nobody_unknown(method: str) -> None:
    star = nc.Topology([(0, 1), (0, 2), (0, 3)], names=["s", "a", "b", "c"])
    texts = ["x < 4", "x BETWEEN 3 AND 7", "x > 5"]
    plan = nc.semantic.plan(star, texts, [(0, 1), (1, 2), (2, 3)], ROWS, 0, method)
    good = table(("ann", "x < 4", "a"), ("bob", "x = 5", "b"), ("cat", "x > 8", "c"))
    assert nc.check(plan, ROWS, good).sound
    (lost,) = nc.check(plan, ROWS, table(("ann", "x = 9", "a"))).faults
    assert lost == "message 9 is wanted by ann at a, which none of its channels reaches"
    (gone,) = nc.check(plan, ROWS, table(("ann", "x = 9", "nowhere"))).faults
    assert gone.endswith("which is not a node of the plan")


def test_network_plans_know_every_wish_that_messages_show(tmp_path: Path) -> None:
    demand = generate_network(sites=3, users=12, symbols=40, markets=2, wanted=5, groups=4, sessions=8, seed=1)
    plan = nc.plan(demand, "network", seed=1)
    key = plan.key[0]
    tables = plan.to_tables().tables["interest"].to_pylist()
    flows = sorted({row["flow"] for row in tables})
    messages = pa.table({key: flows})
    wishes = pa.table(
        {
            "subscriber": [row["subscriber"] for row in tables],
            "profile": [f"{key} = '{row['flow']}'" for row in tables],
        }
    )
    found = nc.check(plan, messages, wishes)
    assert found.sound
    assert found.checked[-1].startswith(f"{len(tables):,} wanted")
    stranger = pa.concat_tables([wishes, pa.table({"subscriber": ["nobody"], "profile": [f"{key} = '{flows[0]}'"]})])
    (lost,) = nc.check(plan, messages, stranger).faults
    assert lost == f"message 0 (flow {flows[0]!r}) is wanted by nobody, who was not planned for it"


def test_the_command_asks_for_nodes_where_they_are_needed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    star = nc.Topology([(0, 1), (0, 2)], names=["s", "a", "b"])
    nc.semantic.plan(star, ["x < 4"], [(0, 1)], ROWS, 0).save(tmp_path / "plan")
    csv.write_csv(ROWS, tmp_path / "messages.csv")
    csv.write_csv(table(("ann", "x < 4", "a")), tmp_path / "wishes.csv")
    csv.write_csv(table(("ann", "x < 4", "a")).drop_columns(["node"]), tmp_path / "without.csv")
    plan, sent = str(tmp_path / "plan"), str(tmp_path / "messages.csv")
    assert run(["check", plan, "--messages", sent, "--subscriptions", str(tmp_path / "wishes.csv")]) == 0
    assert "24 wanted messages" in capsys.readouterr().out
    assert run(["check", plan, "--messages", sent, "--subscriptions", str(tmp_path / "without.csv")]) == 2
    assert "node" in capsys.readouterr().err
