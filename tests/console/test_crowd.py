"""A console of 500 subscribers and 100 groups, with a browser that looks: what a refresh costs both, in CPU time."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from console.test_browser import Visit, browser
from console.test_console import EDGES, GROUPS, crowd
from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.node import STEADY
from narrowcast.deliver.processes.backbone import backbone
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Multicast
from running import running

__all__ = ["browser"]  # the fixture
pytestmark = [pytest.mark.engines, pytest.mark.xdist_group("browser")]
SECONDS = 5


@contextmanager
def apart(folder: Path) -> Iterator[str]:
    """A server, started and ended in a thread: the browser has an event loop in this one."""
    server = running(folder)
    with ThreadPoolExecutor(1) as pool:
        try:
            yield pool.submit(server.__enter__).result(60)
        finally:
            pool.submit(server.__exit__, None, None, None).result(60)


async def pretend(url: str, ready: threading.Event, ended: threading.Event) -> None:
    """The registry of a system in force, and what its 502 processes say each second, without the processes."""
    base = await backbone(url, name="crowd")
    taken = {f"sub-{k}": (k % GROUPS,) for k in range(EDGES)}
    routing = Routing({g: Multicast(g, 0) for g in range(GROUPS)}, taken)
    await base.registry.put(records.numbered(records.PLAN, 1), routing.to_bytes())
    await base.registry.put(records.EPOCH, records.pack(STEADY | {"current": 1}))
    await base.registry.put(records.LEASE, records.pack({"holder": "coordinator", "term": 1}))
    for k in range(EDGES):
        record = {"profile": "symbol = 'IBM'", "edge": f"edge-{k}"}
        await base.registry.put(records.named(records.SUBSCRIPTION, f"sub-{k}"), records.pack(record))
    n = 0
    while not ended.is_set():
        n += 1
        begin = time.monotonic()
        for data in crowd(n):
            await base.publish_statistics(str(json.loads(data)["name"]), data)
        if n == 3:
            ready.set()
        await asyncio.sleep(max(0.0, begin + 1 - time.monotonic()))
    await base.close()


def test_a_refresh_costs_the_page_under_50_ms_and_the_server_a_twentieth_of_a_core(
    browser: Any, tmp_path: Path
) -> None:
    with apart(tmp_path / "nats") as url:
        ready, ended = threading.Event(), threading.Event()
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_until_complete, args=(pretend(url, ready, ended),))
        thread.start()
        command = [sys.executable, "-m", "narrowcast.cli", "console", "--system", url, "--port", "0"]
        console = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=tmp_path)
        assert console.stdout is not None
        try:
            assert ready.wait(60)
            visit = Visit(browser, console.stdout.readline().strip())
            visit.until(f"document.getElementById('t-subscribers').textContent === '{EDGES}'")
            visit.until("document.querySelectorAll('#edges tr').length === 40")
            visit.until("Number(document.body.dataset.refreshed) >= 3")  # what comes first is not what goes on
            before, begin = sum(psutil.Process(console.pid).cpu_times()[:2]), time.monotonic()
            visit.page.evaluate("performance.clearMeasures()")
            time.sleep(SECONDS)
            spent, passed = sum(psutil.Process(console.pid).cpu_times()[:2]) - before, time.monotonic() - begin
            took = visit.page.evaluate("performance.getEntriesByName('refresh').map(e => e.duration)")
            assert len(took) >= SECONDS / 2, took
            assert sorted(took)[len(took) // 2] < 50, took
            assert spent / passed < 0.05, f"{spent:.2f} s of CPU in {passed:.1f} s"
            print(f"server {spent / passed:.1%} of a core, page {sorted(took)[len(took) // 2]:.1f} ms")
            assert visit.page.evaluate("document.querySelectorAll('svg.wide-only [data-box]').length") < 40
            visit.close()
        finally:
            ended.set()
            console.terminate()
            console.wait(15)
            console.stdout.close()
            thread.join(30)
            loop.close()
