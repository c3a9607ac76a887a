"""Messages around a megabyte on the memory engines: refused by a line, or delivered, and nobody dies of them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from deliver.processes.test_drive import engines, until
from memory import MemoryLog, MemoryNetwork, MemoryRegistry
from narrowcast.deliver.parts.coordinator import Coordinator, CoordinatorSettings
from narrowcast.deliver.parts.edge import Edge
from narrowcast.deliver.parts.effects import Acked, Deliver, Effect, Rejected, Subscribed
from narrowcast.deliver.parts.events import Publish, Subscribe
from narrowcast.deliver.parts.publisher import Publisher
from narrowcast.deliver.parts.source import Source
from narrowcast.deliver.processes.drive import Driver, Engines
from narrowcast.deliver.processes.planner import FolderPlanner
from narrowcast.deliver.wire import MOST_PAYLOAD, Batch, encode_entry, encode_payload
from narrowcast.errors import InputError

SETTINGS = CoordinatorSettings(ttl=1.0, renew=0.2, pause=0.1)


@asynccontextmanager
async def running(log: MemoryLog, told: list[Effect]) -> AsyncIterator[dict[str, Driver]]:
    """A system of which the subscription `ann` is served by a channel."""
    registry, network = MemoryRegistry(), MemoryNetwork()
    drivers = {
        "client": Driver(Publisher("client"), Engines(log, registry), application=told.append),
        "source": Driver(Source("source-0", 0), engines(log, registry, network, "source-0"), tail=0),
        "edge": Driver(Edge("desk", (0,)), engines(log, registry, network, "desk"), application=told.append),
        "boss": Driver(Coordinator("boss", (0,), SETTINGS), Engines(log, registry), planner=FolderPlanner(None)),
    }
    for driver in drivers.values():
        await driver.start()
    drivers["edge"].tell(Subscribe("ann", "n >= 0"))
    await until(lambda: any(isinstance(effect, Subscribed) for effect in told))
    await until(lambda: drivers["source"].part.in_force > 0 and drivers["edge"].part.plans)  # type: ignore[attr-defined]
    try:
        yield drivers
    finally:
        for driver in drivers.values():
            assert not driver.failed.done(), f"{driver.part.name} died"
            await driver.stop()


def of_size(n: int, size: int) -> bytes:
    return encode_payload({"n": n, "x": "y" * (size - len(encode_payload({"n": n, "x": ""})))})


def delivered(told: list[Effect]) -> list[bytes]:
    return [payload for effect in told if isinstance(effect, Deliver) for _, payload in effect.messages]


@pytest.mark.parametrize("size", [900_000, 1_000_000, MOST_PAYLOAD])
def test_what_is_taken_is_delivered(size: int) -> None:
    async def run() -> None:
        told: list[Effect] = []
        async with running(MemoryLog(), told) as drivers:
            sent = [of_size(0, size), of_size(1, 30), of_size(2, size)]
            drivers["client"].tell(Publish(1, 0, tuple(sent)))
            await until(lambda: delivered(told) == sent)
            assert drivers["source"].part.counts["too large"] == 0

    asyncio.run(run())


def test_above_a_megabyte_the_publisher_is_told_and_what_is_in_the_log_all_the_same_comes_from_there() -> None:
    async def run() -> None:
        told: list[Effect] = []
        log = MemoryLog()
        async with running(log, told) as drivers:
            with pytest.raises(InputError, match=f"message must be at most {MOST_PAYLOAD} bytes, got 1100000"):
                of_size(0, 1_100_000)
            small = [of_size(n, 30) for n in range(4)]
            large = b'{"n":9,"x":"' + b"y" * 1_100_000 + b'"}'  # by a publisher of another make
            await log.append(0, encode_entry(Batch("other", 0, (small[0], large, small[1]))), dedup="other")
            await until(lambda: delivered(told) == [small[0], large, small[1]])
            drivers["client"].tell(Publish(1, 0, (small[2],)))
            await until(lambda: delivered(told)[3:] == [small[2]])
            assert drivers["source"].part.counts["too large"] == 1

    asyncio.run(run())


def test_an_entry_that_the_log_will_never_take_is_said_at_once() -> None:
    async def run() -> None:
        told: list[Effect] = []
        async with running(MemoryLog(most_bytes=1000), told) as drivers:
            drivers["client"].tell(Publish(1, 0, (of_size(0, 2000),)))
            await until(lambda: any(isinstance(effect, Rejected) for effect in told), seconds=1.0)
            drivers["client"].tell(Publish(2, 0, (of_size(1, 30),)))
            await until(lambda: delivered(told) == [of_size(1, 30)])
            assert [e.token for e in told if isinstance(e, Acked)] == [2]

    asyncio.run(run())
