"""Ctrl-C in the middle of work: one line, exit code 130, nothing half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import typer

import narrowcast as nc
from narrowcast import cli, workloads

pytestmark = pytest.mark.slow


@pytest.mark.long
def test_ctrl_c_while_planning_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    workloads.write("market", tmp_path / "market", users=200, messages=10, seed=0)
    tables = [str(tmp_path / "market" / name) for name in ("flows.parquet", "interest.parquet")]
    command = [sys.executable, "-m", "narrowcast.cli", "plan", "channels", *tables, "--out", str(tmp_path / "plan")]
    process = subprocess.Popen(
        [*command, "--time-limit", "120"], stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    time.sleep(6)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.strip() == "narrowcast: stopped; nothing half-written was left in place"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["market"]


@pytest.mark.parametrize("after", [1.5, 4.0], ids=["while workers start", "while they plan"])
def test_ctrl_c_in_whatif_is_one_line_from_all_processes_together(tmp_path: Path, after: float) -> None:
    interest = nc.workloads.market(symbols=2000, users=100, share=0.05)
    nc.plan(interest, groups=10, sessions=50, method="search", time_limit=0.5).save(tmp_path / "plan")
    command = [sys.executable, "-m", "narrowcast.cli", "whatif", str(tmp_path / "plan"), "--groups", "5,20,40"]
    process = subprocess.Popen(
        [*command, "--time-limit", "60"], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    _wait_for_children(process.pid, 2)
    time.sleep(after - 1.5)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: the workers get it too
    begun = time.monotonic()
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "narrowcast: stopped; nothing half-written was left in place\n")
    assert time.monotonic() - begun < 20  # not the hundred seconds that the points would take


def test_ctrl_c_in_a_replay_of_adapt_is_one_line(tmp_path: Path) -> None:
    workloads.write("commuter", tmp_path / "day")
    tables = [
        "--replay",
        str(tmp_path / "day/messages.parquet"),
        "--subscriptions",
        str(tmp_path / "day/wishes.parquet"),
    ]
    command = [sys.executable, "-m", "narrowcast.cli", "adapt", *tables, "--every-s", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    time.sleep(6)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "narrowcast: stopped; nothing half-written was left in place\n")


def _wait_for_children(pid: int, count: int) -> None:
    for _ in range(600):
        if len(psutil.Process(pid).children()) >= count:
            return
        time.sleep(0.05)
    raise AssertionError("no worker started")


def test_what_goes_wrong_while_ctrl_c_is_obeyed_is_no_fault(capsys: pytest.CaptureFixture[str]) -> None:
    app = typer.Typer()

    @app.command()
    def work() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise ConnectionError("Java has gone already")

    assert cli.run([], app=app) == 130
    assert capsys.readouterr().err == "narrowcast: stopped; nothing half-written was left in place\n"
