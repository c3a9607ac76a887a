"""Ten million messages against ten thousand profiles fit into 4 GB, driver, executors and Python workers together."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from narrowcast import workloads

MEASURE = """
import sys
from narrowcast.data.statistics.measure import MeasureSettings, find_inputs, measure_folder
from narrowcast.data.spark.session import session
inputs = {n: p for n, p in find_inputs(sys.argv[1]).items() if n in ("messages", "subscriptions")}
settings = MeasureSettings(key=("symbol",))
measure_folder(session("local[2]"), inputs, sys.argv[2], settings, explain=lambda s: print(s, flush=True))
"""


def tree_memory(root: int) -> int:
    """Bytes of memory that a process and all below it use, shared pages counted once (PSS)."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(words[1]), []).append(int(stat.parent.name))
    total, waiting = 0, [root]
    while waiting:
        process = waiting.pop()
        waiting += children.get(process, [])
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


@pytest.mark.spark
@pytest.mark.nightly
@pytest.mark.timeout(7200)
@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="memory is read from Linux's /proc")
def test_ten_million_messages_and_ten_thousand_profiles_fit_into_4_gb(tmp_path: Path) -> None:
    messages = int(os.environ.get("NARROWCAST_MESSAGES", "10000000"))
    workloads.write("market", tmp_path / "w", messages=messages, users=5000, seed=1)
    command = [sys.executable, "-c", MEASURE, str(tmp_path / "w"), str(tmp_path / "out")]
    most = 0

    def watch(process: subprocess.Popen[bytes]) -> None:
        nonlocal most
        while process.poll() is None:
            most = max(most, tree_memory(process.pid))
            time.sleep(0.5)

    with subprocess.Popen(command) as running:
        watcher = threading.Thread(target=watch, args=(running,))
        watcher.start()
        assert running.wait() == 0
        watcher.join()
    print(f"{messages:,} messages took at most {most / 2**30:.2f} GB")
    assert most < 4 * 2**30
