"""Ctrl-C in the middle of work: one line, exit code 130, nothing half-written."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from narrowcast import workloads


@pytest.mark.slow
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
