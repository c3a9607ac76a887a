"""Streaming queries killed whole, at any moment, and started again: every row is sent once, and counted once."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import narrowcast as nc
from data.same_statistics import assert_same
from data.streaming_job import HALF_LIFE_S
from narrowcast.data.statistics.match import Decay
from narrowcast.data.statistics.measure import MeasureSettings, measure_folder
from narrowcast.model import snapshot
from running import running

pytestmark = pytest.mark.spark

LAST = -1
JOB = Path(__file__).with_name("streaming_job.py")
SUBSCRIPTIONS = {
    "ann": "symbol = 'S1' AND price > 50",
    "bob": "price < 10 OR symbol IN ('S2', 'S3')",
    "cid": "n >= 0",
    "dan": "symbol = 'S1'",
    "eve": "symbol IS NULL",
}


def write_inputs(folder: Path, rows: int, *, files: int, seed: int) -> pa.Table:
    """Rows with nulls in several files, and who wants which."""
    rng = np.random.default_rng(seed)
    (folder / "rows").mkdir(parents=True)
    n = np.arange(rows)
    symbols = np.array([f"S{k}" for k in range(8)], object)[rng.integers(8, size=rows)]
    symbols[rng.random(rows) < 0.02] = None
    ts = 1_700_000_000_000_000 + rng.permutation(rows) * (40_000_000_000 // rows)  # eleven hours, in no order
    table = pa.table(
        {
            "n": n,
            "symbol": pa.array(symbols, pa.string()),
            "price": pa.array(rng.uniform(0, 100, rows), mask=rng.random(rows) < 0.05),
            "ts": pa.array(ts, mask=rng.random(rows) < 0.03).cast(pa.timestamp("us", "UTC")),
        }
    )
    step = -(-rows // files)
    for k in range(files):
        pq.write_table(table.slice(k * step, step), folder / "rows" / f"part-{k:04d}.parquet")
    subscriptions = {"subscriber": list(SUBSCRIPTIONS), "profile": list(SUBSCRIPTIONS.values())}
    pq.write_table(pa.table(subscriptions), folder / "subscriptions.parquet")
    (folder / "wanted").write_text(str(rows))
    return table


class Job:
    """The process, and the lines it writes as they come."""

    def __init__(self, folder: Path, entries: int, queries: Sequence[str]) -> None:
        env = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        with (folder / "stderr").open("ab") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, str(JOB), str(folder), str(entries), *queries],
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
                env=env,
            )
        self.lines: queue.Queue[str | None] = queue.Queue()
        self.reader = Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.lines.put(line.strip())
        self.lines.put(None)

    def next_line(self, timeout: float) -> str | None:
        """What it wrote next; None if it has ended."""
        return self.lines.get(timeout=timeout)

    def kill(self) -> None:
        """It and its Spark, at once."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(30)
        self.reader.join(30)


def killed(job: Job, rng: np.random.Generator) -> bool:
    """Kill it at a random moment of its work, after one to three micro-batches; whether it was still at it."""
    try:
        took = 2.0
        for _ in range(rng.integers(1, 4)):
            start = time.monotonic()
            if job.next_line(300) in (None, "done"):
                return False
            took = min(time.monotonic() - start, 10.0)
        # Anything may be under way then: staging, deciding, publishing, adding up, writing the state.
        time.sleep(float(rng.uniform(0, took)))
        return job.process.poll() is None
    finally:
        job.kill()


def run_to_the_end(job: Job, folder: Path) -> None:
    try:
        line: str | None = ""
        while line not in (None, "done"):
            line = job.next_line(540)
        assert line == "done", (folder / "stderr").read_text()[-2000:]
        job.process.wait(60)
    finally:
        job.kill()


def kill_and_finish(folder: Path, *queries: str, entries: int = 2, kills: int, seed: int) -> None:
    """Start and kill so many times, then let it finish. A kill after the end of the work would be no trial."""
    rng = np.random.default_rng(seed)
    at_work = [killed(Job(folder, entries, queries), rng) for _ in range(kills)]
    run_to_the_end(Job(folder, entries, queries), folder)
    assert all(at_work), "it was done before it was killed: no trial"


def received(connection: Any, profile: str) -> list[int]:
    """What a subscriber gets from the beginning of the log to its last message, which everybody gets."""
    got: list[int] = []
    subscription = connection.subscribe(f"({profile}) OR n = {LAST}", from_start=True, timeout=60.0)
    for batch in subscription:
        got += [row["n"] for row in batch]
        if got[-1] == LAST:
            break
    subscription.close()
    assert got.pop() == LAST
    return got


def wanted(table: pa.Table) -> dict[str, list[int]]:
    """By the definition, row by row."""
    tests = {
        "ann": lambda r: r["symbol"] == "S1" and r["price"] is not None and r["price"] > 50,
        "bob": lambda r: (r["price"] is not None and r["price"] < 10) or r["symbol"] in ("S2", "S3"),
        "cid": lambda r: True,
        "dan": lambda r: r["symbol"] == "S1",
        "eve": lambda r: r["symbol"] is None,
    }
    found: dict[str, list[int]] = {name: [] for name in tests}
    for row in table.to_pylist():
        for name, test in tests.items():
            if test(row):
                found[name].append(row["n"])
    return found


def assert_received(url: str, table: pa.Table) -> None:
    """Every subscriber has each of its rows once, and nothing else."""
    with nc.connect(url) as connection:
        connection.publish([{"n": LAST}])
        for name, rows in wanted(table).items():
            got = Counter(received(connection, SUBSCRIPTIONS[name]))
            assert len(rows) > 10
            assert got == Counter(rows), f"{name}: {sum(got.values())} of {len(rows)}"


def assert_counted(spark: Any, folder: Path, table: pa.Table) -> None:
    """The statistics are those of the batch pipeline."""
    inputs = {"messages": folder / "messages.parquet", "subscriptions": folder / "subscriptions.parquet"}
    pq.write_table(table, inputs["messages"])
    measure_folder(spark, inputs, folder / "measured", MeasureSettings(key=("symbol",), decay=Decay(HALF_LIFE_S)))
    found = snapshot.latest(folder / "out")
    assert found is not None
    assert found.messages == table.num_rows
    assert_same(found, folder / "measured")


@pytest.mark.long
@pytest.mark.timeout(900)
def test_killed_twice_every_row_is_sent_once_and_counted_once(spark: Any, tmp_path: Path) -> None:
    table = write_inputs(tmp_path, 20_000, files=8, seed=1)
    with running(tmp_path / "nats") as url:
        kill_and_finish(tmp_path, "sent", "followed", entries=5, kills=2, seed=1)
        assert_received(url, table)
    assert_counted(spark, tmp_path, table)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_killed_twenty_times_every_message_is_counted_once(spark: Any, tmp_path: Path) -> None:
    table = write_inputs(tmp_path, 30_000, files=1, seed=2)
    with running(tmp_path / "nats") as url:
        with nc.connect(url) as connection:
            for start in range(0, table.num_rows, 200):
                connection.publish(table.slice(start, 200))
        kill_and_finish(tmp_path, "followed", kills=20, seed=2)
    assert_counted(spark, tmp_path, table)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_a_million_rows_with_three_restarts_reach_every_subscriber_once(tmp_path: Path) -> None:
    table = write_inputs(tmp_path, 1_000_000, files=20, seed=3)
    with running(tmp_path / "nats") as url:
        kill_and_finish(tmp_path, "sent", kills=3, seed=3)
        assert_received(url, table)
