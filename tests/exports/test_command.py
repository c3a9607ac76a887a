"""`narrowcast export`: from a plan folder to an engine's files, or one line that says why not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import narrowcast as nc
from narrowcast import cli
from narrowcast.exports import TARGETS
from narrowcast.model.folder import write_tables


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    wants = nc.Interest.from_pairs([0, 0, 1, 2], [0, 1, 1, 2], [3.0, 2.0, 1.0], flow_names=["IBM", "SAP", "a b"])
    return write_tables(nc.channels.plan(wants, groups=2, sessions=3, method="gf").to_tables(), tmp_path / "plan")


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_is_written(target: str, folder: Path, tmp_path: Path, capsys) -> None:
    command = ["export", str(folder), "--to", target, "--out", str(tmp_path / "out")]
    guard = ["--guard", "session"] if target == "rti" else []
    assert cli.run([*command, *guard, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["files"]) | {"export.json"} == {path.name for path in (tmp_path / "out").iterdir()}
    assert cli.run([*command, *guard]) == 2
    assert "already exists" in capsys.readouterr().err
    assert cli.run([*command, *guard, "--overwrite"]) == 0
    assert target in capsys.readouterr().out


def test_a_bad_option_and_a_limit_are_one_line_each(folder: Path, tmp_path: Path, capsys) -> None:
    command = ["export", str(folder), "--to", "cyclonedds", "--out", str(tmp_path / "out")]
    assert cli.run([*command, "--base-address", "10.0.0.0/8", "--ttl", "999"]) == 2
    told = capsys.readouterr().err
    assert "--base-address 10.0.0.0/8" in told
    assert "--ttl 999" in told
    assert told.count("\n") == 1
    assert cli.run([*command, "--memberships", "1"]) == 3
    assert "igmp_max_memberships" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
