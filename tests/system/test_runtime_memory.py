"""Ten minutes of traffic: no process grows, and a subscriber that takes nothing holds nothing up for ever.

And a process that gets no more memory ends, is started again, and nothing is missed.
"""

from __future__ import annotations

import asyncio
import os
import resource
from collections.abc import Mapping
from pathlib import Path
from statistics import median

import psutil
import pytest

from narrowcast.deliver.client.connect import Connection, Subscription, connect
from narrowcast.deliver.parts.edge import Edge
from narrowcast.deliver.processes.supervise import Supervisor, local_system
from narrowcast.deliver.transport.dds.config import DdsSettings
from system.live import a_plan, by_channel, upto
from system.test_runtime import EDGES, Edges, make_plan, message, running, within

SECONDS = int(os.environ.get("MEMORY_SECONDS", "600"))
RATE, EVERY = 400, 5.0
TEXT = "x" * 400  # so that nats-server has filled the blocks it keeps in memory before anything is compared
GROWTH, SLACK_MB = 1.10, 8.0
MOST_HELD = 25_000  # messages in the process of a subscriber that takes nothing: its credit, and what a frame adds


class Meters:
    """The memory of each process, as it goes."""

    def __init__(self) -> None:
        self.megabytes: dict[str, list[float]] = {}

    def read(self, pids: Mapping[str, int]) -> None:
        for name, pid in pids.items():
            self.megabytes.setdefault(name, []).append(psutil.Process(pid).memory_info().rss / 1e6)

    def growth(self, name: str) -> tuple[float, float]:
        """The medians of the second and of the last fifth: at first everything is only being filled."""
        found = self.megabytes[name]
        fifth = len(found) // 5
        return median(found[fifth : 2 * fifth]), median(found[-fifth:])


async def publish(connection: Connection, seconds: float) -> int:
    loop, n = asyncio.get_running_loop(), 0
    begun = loop.time()
    while (spent := loop.time() - begun) < seconds:
        due = int(spent * RATE) - n
        if due > 0:
            await connection.publish([message(n + k) | {"text": TEXT} for k in range(due)])
            n += due
        await asyncio.sleep(0.05)
    return n


async def drain(subscription: Subscription, got: list[int]) -> None:
    async for batch in subscription:
        got[0] += len(batch)


def pids_of(supervisor: Supervisor, edges: Edges) -> dict[str, int]:
    assert supervisor.server.process is not None
    running = {**supervisor.processes, **edges.processes}
    return {"nats-server": supervisor.server.process.pid, **{name: each.pid for name, each in running.items()}}


async def watch(meters: Meters, pids: Mapping[str, int]) -> None:
    while True:
        meters.read(pids)
        await asyncio.sleep(EVERY)


def held(connection: Connection, subscription: Subscription) -> int:
    """Messages that the process of a subscriber keeps for it."""
    assert connection._edge is not None
    part = connection._edge.part
    assert isinstance(part, Edge)
    waiting = sum(len(getattr(effect, "messages", ())) for effect in subscription._queue._queue)  # type: ignore[attr-defined]
    return waiting + sum(len(reader.held) for each in part.subscriptions.values() for reader in each.readers.values())


@pytest.mark.soak
@pytest.mark.timeout(SECONDS + 300)
def test_memory_is_flat_and_a_slow_subscriber_holds_nothing_for_ever(tmp_path: Path) -> None:
    multicast = DdsSettings(domain=67)
    local = local_system(tmp_path / "data", make_plan(tmp_path / "plan"), key=("symbol",), multicast=multicast)
    edges, meters, got = Edges(tmp_path, local.folder, multicast), Meters(), [0]

    async def run() -> int:
        async with (
            running(local, sync="2m") as supervisor,
            connect(local.folder) as publisher,
            connect(local.folder) as slow,
        ):
            for name in EDGES:
                edges.start(name)
            await asyncio.wait_for(edges.subscribed(), 30)
            stuck = await slow.subscribe("price >= 0").ready(30)  # and never reads a batch
            quick = await publisher.subscribe("symbol = 'GE'").ready(30)
            tasks = [
                asyncio.ensure_future(drain(quick, got)),
                asyncio.ensure_future(watch(meters, pids_of(supervisor, edges))),
            ]
            try:
                sent = await publish(publisher, SECONDS)
                assert held(slow, stuck) <= MOST_HELD
                while got[0] < sum(message(n)["symbol"] == "GE" for n in range(sent)):
                    await asyncio.sleep(0.1)
            finally:
                for task in tasks:
                    task.cancel()
            return sent

    try:
        sent = within(run(), SECONDS + 200)
    finally:
        edges.stop()
    print(f"{sent:,} messages in {SECONDS} s")
    for name in meters.megabytes:
        early, late = meters.growth(name)
        print(f"{name}: {early:.1f} MB early, {late:.1f} MB late")
    for name in meters.megabytes:
        early, late = meters.growth(name)
        assert late <= GROWTH * early + SLACK_MB, f"{name} grew from {early:.1f} to {late:.1f} MB"


@pytest.mark.long
@pytest.mark.parametrize("role", ["source-0", "nats-server"])
def test_a_process_that_gets_no_more_memory_is_started_again_and_nothing_is_missed(tmp_path: Path, role: str) -> None:
    local = local_system(tmp_path / "data", a_plan(tmp_path / "plan"), multicast=DdsSettings(domain=93, groups=4))
    n = 240

    async def run() -> None:
        async with running(local, sync="2m") as supervisor, connect(local.folder) as client:
            ann = await client.subscribe("s = 'a'", name="ann").ready()
            await by_channel(client, client, ann, {"s": "a"})
            poor = supervisor.server.process if role == "nats-server" else supervisor.processes[role]
            assert poor is not None
            resource.prlimit(poor.pid, resource.RLIMIT_AS, (1 << 20, 1 << 20))
            for first in range(0, n, 4):
                await client.publish([{"s": "a", "n": first + k, "x": "y" * 900_000} for k in range(4)])
            assert await upto(ann, n - 1, 60) == (list(range(n)), [])
            assert poor.poll() is not None, "it had all the memory that it needs"
            await by_channel(client, client, ann, {"s": "a"})

    within(run(), 110)
