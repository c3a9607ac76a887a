"""`narrowcast measure` killed whole, at any moment: what is there is complete, and the next run tidies up."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow.parquet as pq
import pytest

from narrowcast import workloads
from narrowcast.data.spark.output import read_manifest
from narrowcast.data.statistics.measure import find_inputs, measure_folder
from narrowcast.errors import InputError

pytestmark = pytest.mark.spark

STEPS = ("flows (accepted)", "interest (accepted)", "quarantine", "flow_audience", "audiences")


def write_inputs(folder: Path, n: int) -> None:
    """n flows that two people want, all with the same audience."""
    folder.mkdir()
    (folder / "flows.csv").write_text("flow,rate\n" + "".join(f"f{k},{k}\n" for k in range(n)))
    pairs = "".join(f"f{k},{who}\n" for k in range(n) for who in ("ann", "bob"))
    (folder / "interest.csv").write_text("flow,subscriber\n" + pairs)


def killed(inputs: Path, out: Path, step: str, wait_s: float) -> int:
    """Run the command and kill it and its Spark a moment after a step; its return code."""
    code = "from narrowcast.cli import main; main()"
    words = ["measure", str(inputs), "--out", str(out), "--master", "local[1]", "--explain", "--overwrite"]
    running = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stderr is not None
    with running:
        for line in running.stderr:
            if line.startswith(step):
                break
        time.sleep(wait_s)
        os.killpg(running.pid, signal.SIGKILL)
    return running.returncode


def is_whole(out: Path, n: int) -> bool:
    """Whether a complete result of n flows is there; what is there but not complete is an error."""
    try:
        manifest = read_manifest(out)
    except InputError:
        assert not out.exists()
        return False
    for table, rows in manifest["tables"].items():
        assert pq.read_table(out / f"{table}.parquet").num_rows == rows
    return bool(pq.read_table(out / "audiences.parquet")["n_flows"].to_pylist() == [n])


def kill_and_run_again(spark: Any, folder: Path, points: list[tuple[str, float]]) -> None:
    write_inputs(folder / "before", 3)
    write_inputs(folder / "after", 7)
    outs = [folder / f"out{i}" for i in range(len(points))]
    for out in outs[1:]:
        # All but the first replace an earlier result.
        measure_folder(spark, find_inputs(folder / "before"), out)
    with ThreadPoolExecutor(3) as threads:
        codes = list(threads.map(lambda p: killed(folder / "after", p[0], *p[1]), zip(outs, points, strict=True)))
    assert -signal.SIGKILL in codes
    for out in outs:
        assert is_whole(out, 3) or is_whole(out, 7) or not out.exists()
    for half in folder.glob(".out*.half-*"):
        with pytest.raises(InputError, match="no complete result here"):
            read_manifest(half)
    for out in outs:
        measure_folder(spark, find_inputs(folder / "after"), out, overwrite=True)
        assert is_whole(out, 7)
    assert list(folder.glob(".out*.half-*")) == []


@pytest.mark.long
def test_killed_at_three_points_no_half_table_is_read_as_complete(spark: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    kill_and_run_again(spark, tmp_path, [(step, rng.uniform(0, 0.3)) for step in STEPS[2:]])


def test_ctrl_c_ends_in_seconds_and_leaves_nothing_behind(tmp_path: Path) -> None:
    workloads.write("market", tmp_path / "in", messages=20_000, users=300, symbols=500, seed=1)
    (tmp_path / "scratch").mkdir()
    code = "from narrowcast.cli import main; main()"
    words = ["measure", str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--master", "local[1]", "--explain"]
    running = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env={**os.environ, "TMPDIR": str(tmp_path / "scratch")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stderr is not None
    with running:
        said = ""
        for line in running.stderr:
            said += line
            if line.startswith("matcher"):
                break
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does: Spark's JVM and workers get it too
        begun = time.monotonic()
        said += running.stderr.read()
        running.wait()
        seconds = time.monotonic() - begun
    assert running.returncode == 130, said
    assert "Traceback" not in said
    assert seconds < 30  # two or three on an idle machine
    end = time.monotonic() + 20  # the JVM tidies up as it ends, a moment after us
    while any((tmp_path / "scratch").iterdir()) and time.monotonic() < end:
        time.sleep(0.2)
    left = [path.name for path in (tmp_path / "scratch").rglob("*")]
    assert left == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "scratch"]


def test_ctrl_c_while_java_starts_leaves_no_java(tmp_path: Path) -> None:
    workloads.write("market", tmp_path / "in", messages=20, users=3, symbols=20, seed=1)
    code = "from narrowcast.cli import main; main()"
    words = ["measure", str(tmp_path / "in"), "--out", str(tmp_path / "out"), "--master", "local[1]"]
    running = subprocess.Popen(
        [sys.executable, "-c", code, *words], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, start_new_session=True
    )
    ours = psutil.Process(running.pid)
    end = time.monotonic() + 60
    while not any("pyspark-shell" in _words(child) for child in ours.children()) and time.monotonic() < end:
        time.sleep(0.05)
    java = ours.children(recursive=True)
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=60)  # Java holds the other end of standard error
    assert (running.returncode, said) == (130, b"narrowcast: stopped; nothing half-written was left in place\n")
    assert psutil.wait_procs(java, timeout=20)[1] == []
    assert not (tmp_path / "out").exists()


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:  # it has ended
        return []


@pytest.mark.nightly
@pytest.mark.timeout(3000)
def test_killed_at_many_points_no_half_table_is_read_as_complete(spark: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    kill_and_run_again(spark, tmp_path, [(str(rng.choice(STEPS)), rng.uniform(0, 1.0)) for _ in range(15)])
