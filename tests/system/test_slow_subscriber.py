"""A subscriber that takes nothing costs nobody else anything, and gets everything once it goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from narrowcast.deliver.client.connect import connect
from narrowcast.deliver.processes.supervise import local_system
from narrowcast.deliver.transport.dds.config import DdsSettings
from system.live import a_plan, by_channel, running, until, upto

pytestmark = pytest.mark.timeout(120)
ROWS, TABLES = 2_000, 20


def planned(part: Any) -> set[str]:
    """The subscriptions that the plan in force has channels for."""
    routing = part.plans.get(part.epoch["current"])
    return set() if routing is None else set(routing.taken)


async def story(folder: Path) -> None:
    local = local_system(folder / "data", a_plan(folder / "plan"), key=("s",), multicast=DdsSettings(domain=68))
    n = ROWS * TABLES
    async with running(local), connect(local.folder) as publisher, connect(local.folder) as client:
        fast = await client.subscribe("s = 'a'").ready(20)
        await by_channel(publisher, client, fast, {"s": "a"})
        async with connect(local.folder) as other:
            beside = await client.subscribe("s = 'a'", name="beside", credit=10).ready(20)
            apart = await other.subscribe("s = 'a'", name="apart", credit=10).ready(20)
            part = client._edge.part  # type: ignore[union-attr]
            await until(lambda: {fast.name, beside.name, apart.name} <= planned(part), what="no plan has all of them")
            await by_channel(publisher, client, fast, {"s": "a"})
            await publisher.publish(pa.table({"s": ["a"], "n": [-1000], "text": [""]}))  # what columns need is loaded
            await upto(fast, -1000)
            reading = asyncio.ensure_future(upto(fast, n - 1))
            for first in range(0, n, ROWS):
                rows = {"s": ["a"] * ROWS, "n": list(range(first, first + ROWS)), "text": ["x" * 100] * ROWS}
                await publisher.publish(pa.table(rows))
            numbers, gaps = await reading
            assert ([k for k in numbers if k >= 0], gaps) == (list(range(n)), [])
            assert client.ways["log"] < n // 10, "others had to read the log"
            for slow in (beside, apart):
                assert slow._queue.qsize() <= 10, "more waits here than it has credit for"
                late, gaps = await upto(slow, n - 1)
                assert ([k for k in late if k >= 0], gaps) == (list(range(n)), [])


@pytest.mark.long
def test_those_who_take_nothing_hold_nobody_up_and_get_everything_later(tmp_path: Path) -> None:
    asyncio.run(story(tmp_path))
