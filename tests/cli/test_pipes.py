"""Commands at the end of a pipe that closes early, and for users who can write nowhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import narrowcast as nc


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    interest = nc.Interest.from_pairs([0, 0, 1], [0, 1, 1], [5.0, 2.0])
    nc.plan(interest, groups=2, sessions=2, method="gf").save(tmp_path / "plan")
    return tmp_path / "plan"


@pytest.mark.parametrize("command", ["check {plan}", "explain {plan} --group 0", "check {plan} --json"])
def test_a_reader_that_has_seen_enough_is_no_failure(command: str, plan: Path) -> None:
    line = f"{sys.executable} -m narrowcast.cli {command.format(plan=plan)}"
    # Nobody reads at all: the pipe is closed before the first line is written.
    done = subprocess.run(
        ["bash", "-c", f"{line} | true; exit ${{PIPESTATUS[0]}}"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_user_who_can_write_nowhere_matches_all_the_same() -> None:
    match = "import narrowcast as nc, pyarrow as pa; print(nc.Matcher(['a > 1']).match(pa.table({'a': [1, 2]}))[0])"
    code = f"import os; os.access = lambda *_, **__: False; {match}; print(os.environ['NUMBA_CACHE_DIR'])"
    env = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"} | {"HOME": "/nonexistent"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stderr
    rows, cache = done.stdout.split()
    assert rows == "[1]"
    assert list(Path(cache).rglob("*.nbi"))
    shutil.rmtree(cache)
