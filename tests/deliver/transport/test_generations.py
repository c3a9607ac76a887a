"""Generations on a real server that is killed and whose store is replaced: an entry has one number for everybody."""

from __future__ import annotations

import asyncio
import shutil
import time
from contextlib import aclosing, suppress
from pathlib import Path

import pytest

from narrowcast.deliver.transport import Entry
from narrowcast.deliver.transport.generations import NumberedLog
from narrowcast.deliver.transport.nats.link import connect_nats
from narrowcast.deliver.transport.nats.log import NatsLog
from narrowcast.deliver.transport.nats.server import NatsServer
from narrowcast.deliver.wire import bare_of, generation_of
from narrowcast.errors import TransportError


class Watched:
    """A server with some logs on it, and what each says of entries: by number, its bytes."""

    def __init__(self, folder: Path) -> None:
        self.server = NatsServer(folder, sync="2m")
        self.said: dict[int, bytes] = {}
        self.back = 0
        self.at = 0  # how far whoever reads has got
        self.at_once = self.yielded = 0  # entries that a tail gave one way and the other

    def note(self, number: int, data: bytes) -> None:
        assert self.said.setdefault(number, data) == data, f"entry {bare_of(number)} is two things under one number"

    async def log(self) -> NumberedLog:
        inner = NatsLog(await connect_nats(self.server.url))
        await inner.start((0,))
        return NumberedLog(inner)

    async def publish(self, name: str, log: NumberedLog) -> None:
        n = 0
        while True:
            data = f"{name} {n}".encode()
            with suppress(TransportError):
                self.note(await log.append(0, data, dedup=data.decode()), data)
                n += 1
            await asyncio.sleep(0.002)

    async def read(self, log: NumberedLog) -> None:
        while True:
            with suppress(TransportError):
                found = await log.read(0, self.at, most=50)
                self.back += found.back
                for entry in found.entries:
                    assert entry.sequence > self.at
                    self.at = entry.sequence
                    self.note(self.at, entry.data)
            await asyncio.sleep(0.005)

    async def tail(self, log: NumberedLog) -> None:
        """What is taken where it is read, two of three, and what is yielded, are one row of numbers."""
        last = 0

        def note(entry: Entry) -> None:
            nonlocal last
            assert entry.sequence > last
            last = entry.sequence
            self.note(entry.sequence, entry.data)

        def take(entry: Entry, _: bool) -> bool:
            if entry.sequence % 3:
                note(entry)
                self.at_once += 1
            return bool(entry.sequence % 3)

        async with aclosing(log.tail(0, 0, take)) as tail:
            async for entry in tail:
                note(entry)
                self.yielded += 1

    async def grown(self, tasks: list[asyncio.Task[None]], entries: int = 150) -> None:
        """Wait until there are some more, and have been read, unless somebody fails."""
        enough = len(self.said) + entries
        while len(self.said) < enough or self.at < sorted(self.said)[enough - 1]:
            await asyncio.sleep(0.01)
            assert [task.exception() for task in tasks if task.done()] == []

    async def restart(self, copy: Path | None = None) -> None:
        assert self.server.process is not None
        self.server.process.kill()
        self.server.process.wait(10)
        if copy is not None:
            shutil.rmtree(self.server.folder / "jetstream")
            shutil.copytree(copy, self.server.folder / "jetstream")
        await self.server.start()


def test_publishers_readers_and_tails_give_every_entry_the_same_number_and_a_lost_log_is_told(tmp_path: Path) -> None:
    async def run() -> None:
        watched = Watched(tmp_path / "nats")
        await watched.server.start()
        work = [watched.publish("ann", await watched.log()), watched.publish("bob", await watched.log())]
        work += [watched.read(await watched.log()), watched.tail(await watched.log())]
        tasks = [asyncio.ensure_future(each) for each in work]
        await watched.grown(tasks)
        await watched.restart()
        await watched.grown(tasks)
        assert watched.back == 0, "a restart without loss was taken for one"
        shutil.copytree(tmp_path / "nats" / "jetstream", tmp_path / "copy")
        await watched.grown(tasks)
        await watched.restart(tmp_path / "copy")
        await watched.grown(tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await watched.server.stop()
        assert watched.back == 1
        assert min(watched.at_once, watched.yielded) > 100
        assert len({generation_of(number) for number in watched.said}) == 3
        sequences = [bare_of(number) for number in watched.said]
        assert len(set(sequences)) < len(sequences), "no sequence number was used twice: nothing was tried"

    asyncio.run(asyncio.wait_for(run(), 120))


def test_a_generation_is_later_than_all_that_were_seen_though_log_and_clock_go_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restored machine may not know the time yet: numbered below the lost one, all that follows would be ignored."""

    async def run() -> None:
        watched = Watched(tmp_path / "nats")
        await watched.server.start()
        log = await watched.log()
        shutil.copytree(tmp_path / "nats" / "jetstream", tmp_path / "copy")
        before = await log.append(0, b"lost", dedup="lost")
        now = time.time_ns
        monkeypatch.setattr(time, "time_ns", lambda: now() - 10**17)
        await watched.restart(tmp_path / "copy")
        after = None
        while after is None:
            await asyncio.sleep(0.05)
            with suppress(TransportError):
                after = await log.append(0, b"next", dedup="next")
        await watched.server.stop()
        assert bare_of(after) <= bare_of(before), "nothing was lost: nothing was tried"
        assert generation_of(after) > generation_of(before)

    asyncio.run(asyncio.wait_for(run(), 60))


@pytest.mark.parametrize("by", ["an entry", "begin"])
def test_a_generation_that_another_began_is_known_when_retention_has_dropped_its_beginning(
    tmp_path: Path, by: str
) -> None:
    """A publisher may not write the stream's metadata: whoever set the log up does, whether it appends or not."""

    async def run() -> None:
        server = NatsServer(tmp_path / "nats", sync="2m")
        await server.start()
        inner = [NatsLog(await connect_nats(server.url), max_bytes=200_000) for _ in range(3)]
        for at, each in enumerate(inner):
            await each.start((0,), make=at == 0)
        keeper, publisher, reader = map(NumberedLog, inner)
        first = await publisher.append(0, b"first", dedup="first")
        await (keeper.append(0, b"marker", dedup="marker") if by == "an entry" else inner[0].begin((0,)))
        numbers = [await publisher.append(0, b"x" * 50_000, dedup=str(k)) for k in range(8)]
        assert (await inner[2].bounds(0))[0] > bare_of(first), "nothing was dropped: nothing was tried"
        found = await reader.read(0, numbers[-3], most=10)
        assert not found.back
        assert [entry.sequence for entry in found.entries] == numbers[-2:]
        assert generation_of(await publisher.append(0, b"last", dedup="last")) == generation_of(first)
        await server.stop()

    asyncio.run(asyncio.wait_for(run(), 60))
