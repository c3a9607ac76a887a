"""Planners say on a terminal what they do, for how long, and the best cost so far; elsewhere they are silent."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

import narrowcast as nc


def on_terminal(command: list[str], ends: int = 0) -> str:
    """What a command writes to standard error if that is a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=os.environ | {"TERM": "xterm"}) as it:
        os.close(theirs)
        said = b""
        try:
            while piece := os.read(ours, 65536):
                said += piece
        except OSError:
            pass  # the terminal is closed: it has ended
        finally:
            os.close(ours)
    assert it.returncode == ends
    return said.decode()


@pytest.mark.slow
def test_plan_channels_shows_time_and_the_best_cost_so_far(tmp_path: Path) -> None:
    nc.workloads.write("market", tmp_path / "market", messages=10, users=150, symbols=3000)
    plan = ["plan", "channels", str(tmp_path / "market"), "--groups", "20", "--sessions", "80", "--time-limit", "3"]
    command = [sys.executable, "-m", "narrowcast.cli", *plan]
    said = on_terminal(command)
    costs = [float(cost.replace(",", "")) for cost in re.findall(r"planning: best so far ([\d,.e+]+)", said)]
    assert len(costs) > 1
    assert costs == sorted(costs, reverse=True)
    assert re.search(r"0:00:0\d", said)
    assert "of 3 s" in said
    quiet = subprocess.run(command, capture_output=True, text=True, check=True)
    assert quiet.stderr == ""


def test_where_flooding_wastes_nothing_there_is_a_plan_and_no_division_by_zero(tmp_path: Path, capsys) -> None:
    from narrowcast import cli

    (tmp_path / "flows.csv").write_text("flow,rate\na,1\nb,2\n")
    (tmp_path / "interest.csv").write_text("flow,subscriber\na,u\nb,u\na,v\nb,v\n")
    tables = [str(tmp_path / "flows.csv"), str(tmp_path / "interest.csv"), "--key", "x"]
    for kind in ("channels", "hybrid"):
        out = str(tmp_path / kind)
        assert cli.run(["plan", kind, *tables, "--groups", "2", "--out", out]) == 0
        assert cli.run(["check", out]) == 0
        assert cli.run(["report", out, "--out", f"{out}.html"]) == 0
        assert cli.run(["explain", out, "--group", "0"]) == 0
    assert "0.0% of flooding's waste" in " ".join(capsys.readouterr().out.split())


@pytest.mark.slow
def test_measure_says_that_it_starts_before_it_has_looked_at_anything(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "narrowcast.cli", "measure", str(tmp_path / "nowhere"), "--out", str(tmp_path)]
    said = on_terminal(command, ends=2)
    assert 0 < said.find("starting") < said.find("no such folder")
