"""`narrowcast explain`: the same of a person and of a program, for every kind of plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evaluate.plans import MAKERS
from narrowcast import cli
from narrowcast.model.folder import write_tables
from narrowcast.plans.verbs import certify

ASKED = [
    ("channels", "flow", "f0"), ("channels", "subscriber", "u0"), ("channels", "group", "0"),
    ("channels", "session", "0"), ("channels", "channel", "1"), ("hybrid", "flow", "f0"),
    ("hybrid", "subscriber", "u0"), ("filters", "node", "v0"), ("queries", "query", "0"), ("queries", "channel", "0"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "what", "name"), ASKED)
def test_what_is_asked_is_said_in_a_sentence_a_table_and_json(
    kind: str, what: str, name: str, tmp_path: Path, capsys: Any
) -> None:
    write_tables(certify(MAKERS[kind](12)), tmp_path / "plan")
    ask = ["explain", str(tmp_path / "plan"), f"--{what}", name]
    assert cli.run([*ask, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert cli.run(ask) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert found["headline"] in shown
    best = found["next_best"]
    assert ("Next best: " + best["what"] if best else "o other choice") in shown


def test_one_thing_is_explained_at_a_time(tmp_path: Path, capsys: Any) -> None:
    write_tables(certify(MAKERS["channels"](12)), tmp_path / "plan")
    assert cli.run(["explain", str(tmp_path / "plan")]) == 2
    assert "explain needs exactly one of --flow" in capsys.readouterr().err
    assert cli.run(["explain", str(tmp_path / "plan"), "--flow", "nothing"]) == 2
    assert cli.run(["explain", str(tmp_path / "plan"), "--node", "v0"]) == 3
    assert "no node to explain" in capsys.readouterr().err
