"""`narrowcast diff`: what moves, who joins and leaves, and the steps, for a person and for a program."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluate.plans import KINDS, MAKERS, channels_plan, some_interest
from narrowcast import cli
from narrowcast.model.folder import read_tables, write_tables
from narrowcast.plans.verbs import certify


@pytest.mark.parametrize("kind", KINDS)
def test_two_plans_of_any_kind_are_compared(kind: str, tmp_path: Path, capsys: Any) -> None:
    for seed in (3, 4):
        write_tables(certify(MAKERS[kind](seed)), tmp_path / f"{seed}")
    ask = ["diff", str(tmp_path / "3"), str(tmp_path / "4"), "--join-rate", "2"]
    assert cli.run([*ask, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    kinds = [step["kind"] for step in found["steps"]]
    assert "drain" in kinds
    assert found["seconds"] == pytest.approx(sum(step["lasts_s"] for step in found["steps"]))
    assert cli.run(ask) == 0
    shown = capsys.readouterr().out
    assert "cost" in shown.partition("\n")[0]
    assert "Migration in" in shown
    assert "has it at every step" in shown
    assert "eceiver" not in shown + str([*found]), "one word for who receives"


def test_the_new_plan_can_be_written_with_the_old_numbers(tmp_path: Path, capsys: Any) -> None:
    interest = some_interest(np.random.default_rng(1), 10, 6)
    for seed in (3, 4):
        write_tables(certify(channels_plan(seed, interest)), tmp_path / f"{seed}")
    out = tmp_path / "next"
    assert cli.run(["diff", str(tmp_path / "3"), str(tmp_path / "4"), "--out", str(out)]) == 0
    assert cli.run(["check", str(out)]) == 0
    capsys.readouterr()
    assert cli.run(["diff", str(tmp_path / "4"), str(out)]) == 0
    assert "Nothing has to be done." in capsys.readouterr().out


def test_a_migration_of_hours_has_its_seconds_written_out(tmp_path: Path, capsys: Any) -> None:
    for seed in (3, 4):
        write_tables(certify(MAKERS["channels"](seed)), tmp_path / f"{seed}")
    assert cli.run(["diff", str(tmp_path / "3"), str(tmp_path / "4"), "--join-rate", "0.001"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"Migration in \d+,\d{3} s", shown)
    assert "e+0" not in shown


def test_an_unsound_plan_is_not_moved_to(tmp_path: Path, capsys: Any) -> None:
    plan = certify(MAKERS["channels"](3))
    write_tables(plan, tmp_path / "old")
    fewer = {**plan.tables, "subscriber_group": plan.tables["subscriber_group"].slice(1)}
    write_tables(replace(plan, tables=fewer), tmp_path / "new")
    assert cli.run(["diff", str(tmp_path / "old"), str(tmp_path / "new")]) == 3
    assert "is unsound" in capsys.readouterr().err
    assert read_tables(tmp_path / "old").checks["sound"] is True
