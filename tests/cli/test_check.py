"""`narrowcast check`: exit 0 for a sound plan, 1 with every fault named, 2 for a folder that cannot be read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import narrowcast as nc
from evaluate.plans import KINDS, MAKERS
from narrowcast import cli
from narrowcast.model.folder import read_tables, write_tables
from narrowcast.plans.verbs import certify


@pytest.mark.parametrize("kind", KINDS)
def test_a_sound_plan_is_called_sound_with_what_was_checked(kind: str, tmp_path: Path, capsys: Any) -> None:
    write_tables(certify(MAKERS[kind](4)), tmp_path / "plan")
    assert cli.run(["check", str(tmp_path / "plan")]) == 0
    shown = capsys.readouterr().out
    assert "sound" in shown
    assert "✓" in shown
    assert cli.run(["check", str(tmp_path / "plan"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["faults"] == []


def test_a_plan_written_again_with_a_row_less_fails_and_names_who_is_left_out(tmp_path: Path, capsys: Any) -> None:
    plan = certify(MAKERS["channels"](4))
    fewer = {**plan.tables, "subscriber_group": plan.tables["subscriber_group"].slice(1)}
    write_tables(replace(plan, tables=fewer), tmp_path / "plan")
    assert cli.run(["check", str(tmp_path / "plan"), "--json"]) == 1
    result = json.loads(capsys.readouterr().out)
    assert result["sound"] is False
    assert any("does not get it" in fault for fault in result["faults"])
    assert "table subscriber_group was changed after the plan was checked" in result["faults"]
    assert cli.run(["check", str(tmp_path / "plan")]) == 1
    assert "unsound" in capsys.readouterr().out


def test_a_table_changed_on_disk_is_refused_before_anything_is_judged(tmp_path: Path, capsys: Any) -> None:
    folder = write_tables(certify(MAKERS["hybrid"](4)), tmp_path / "plan")
    pq.write_table(read_tables(folder).tables["unicast"].slice(1), folder / "unicast.parquet")
    assert cli.run(["check", str(folder)]) == 2
    assert "was changed after the plan was written" in capsys.readouterr().err


MESSAGES = pa.table({"symbol": ["IBM", "MSFT", "IBM", "GE", None], "price": [90.0, 10.0, 120.0, 5.0, 1.0]})
WISHES = pa.table(
    {
        "subscriber": ["desk-1", "desk-1", "desk-2", "desk-3"],
        "profile": ["symbol = 'IBM' AND price > 100", "symbol = 'MSFT'", "symbol IN ('IBM', 'MSFT')", "symbol = 'GE'"],
    }
)


@pytest.mark.parametrize("kind", ["channels", "hybrid"])
def test_messages_are_sent_through_the_plan_and_a_wish_it_does_not_know_is_named(
    kind: str, tmp_path: Path, capsys: Any
) -> None:
    names = {"flow_names": ["IBM", "MSFT", "GE"], "user_names": ["desk-1", "desk-2", "desk-3"]}
    pq.write_table(MESSAGES, tmp_path / "messages.parquet")
    pq.write_table(WISHES, tmp_path / "subscriptions.parquet")
    options = ["--messages", str(tmp_path / "messages.parquet"), "--subscriptions",
               str(tmp_path / "subscriptions.parquet"), "--json"]  # fmt: skip
    for known, code in ((5, 0), (4, 1)):
        wishes = ([0, 1, 0, 1, 2][:known], [0, 0, 1, 1, 2][:known])
        interest = nc.Demand(nc.Interest.from_pairs(*wishes, [3.0, 2.0, 1.0], **names), key=("symbol",))
        plan = (
            nc.channels.plan(interest, groups=2, sessions=2, method="gf").to_tables()
            if kind == "channels"
            else nc.channels.hybrid(interest, groups=1).to_tables()
        )
        write_tables(certify(plan), tmp_path / f"plan{known}")
        assert cli.run(["check", str(tmp_path / f"plan{known}"), *options]) == code
        result = json.loads(capsys.readouterr().out)
        assert "6 wanted messages reach their subscribers" in result["checked"]
        if code:
            assert result["faults"] == ["message 3 (flow 'GE') is wanted by desk-3, who was not planned for it"]


def test_messages_need_subscriptions_and_on_a_tree_their_nodes(tmp_path: Path, capsys: Any) -> None:
    pq.write_table(MESSAGES, tmp_path / "m.parquet")
    pq.write_table(WISHES, tmp_path / "s.parquet")
    write_tables(certify(MAKERS["filters"](4)), tmp_path / "plan")
    assert cli.run(["check", str(tmp_path / "plan"), "--messages", str(tmp_path / "m.parquet")]) == 2
    both = ["--messages", str(tmp_path / "m.parquet"), "--subscriptions", str(tmp_path / "s.parquet")]
    assert cli.run(["check", str(tmp_path / "plan"), *both]) == 2
    assert "node" in capsys.readouterr().err.splitlines()[-1]
