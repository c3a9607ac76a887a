"""A sink on a real log: whatever dies between any two steps, each batch is published once, whole, as one try had it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from narrowcast.deliver.processes.backbone import Backbone, backbone
from narrowcast.deliver.spark.transactions import ENTRY_BITS, BatchSink, Pile
from narrowcast.deliver.transport import ConflictError
from narrowcast.deliver.transport.extra import engine
from narrowcast.deliver.transport.nats.link import connect_nats
from narrowcast.deliver.transport.nats.log import NatsLog
from narrowcast.deliver.transport.nats.stage import NatsStage
from narrowcast.deliver.wire import Batch, decode_entry
from narrowcast.errors import TransportError
from running import running


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("nats")) as found:
        yield found


class Dead(BaseException):
    """The process is gone."""


class Dying:
    """Passes calls on until the count is out; then the process dies, before or after the call's effect."""

    def __init__(self, inner: Any, life: list[int], *, late: bool) -> None:
        self._inner, self._life, self._late = inner, life, late

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name not in ("append_next", "put", "drop"):
            return found

        async def call(*args: Any, **kwargs: Any) -> Any:
            self._life[0] -= 1
            if self._life[0] < 0 and not self._late:
                raise Dead
            result = await found(*args, **kwargs)
            if self._life[0] < 0:
                raise Dead
            return result

        return call


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[tuple[Backbone, NatsStage]]:
    bone = await backbone(url, name="test")
    stage = NatsStage(bone.link)
    await stage.start()
    try:
        yield bone, stage
    finally:
        await bone.close()


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(work(), 60)

    asyncio.run(limited())


async def staged(sink: BatchSink, batch: int, word: str, n: int = 3) -> list[Pile]:
    """Two piles of a try, two entries in the first and the rest in the second."""
    piles = [sink.piling(batch), sink.piling(batch)]
    for k in range(n):
        await piles[k // 2].add((f"{word}{k}a".encode(), f"{word}{k}b".encode()))
    return [piling.pile for piling in piles]


async def published(bone: Backbone, name: str) -> list[tuple[int, int, str]]:
    """The batch, number in it and words of each entry of a sink."""
    found = []
    after = 0
    while stretch := (await bone.log.read(0, after, most=100)).entries:
        for entry in stretch:
            batch = decode_entry(entry.data)
            if isinstance(batch, Batch) and batch.publisher == name:
                at, k = divmod(batch.number, 1 << ENTRY_BITS)
                found.append((at, k, b" ".join(batch.payloads).decode()))
        after = stretch[-1].sequence
    return found


def whole(batch: int, word: str, n: int = 3) -> list[tuple[int, int, str]]:
    return [(batch, k, f"{word}{k}a {word}{k}b") for k in range(n)]


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_a_process_that_dies_at_any_step_leaves_a_batch_that_the_next_one_finishes(url: str, late: bool) -> None:
    async def work() -> None:
        async with opened(url) as (bone, stage):
            deaths = 0
            for life in range(20):
                name = f"dying-{late}-{life}"
                left = [life]
                log, registry, dying = (Dying(each, left, late=late) for each in (bone.log, bone.registry, stage))
                died = False
                try:
                    first = BatchSink(name, log, registry, dying)  # type: ignore[arg-type]
                    await first.publish(0, await staged(first, 0, "x"), shard=0)
                except Dead:
                    died = True
                # Another process tries again, and its rows came out in another way.
                second = BatchSink(name, bone.log, bone.registry, stage)
                await second.publish(0, await staged(second, 0, "y", 4), shard=0)
                await second.publish(1, await staged(second, 1, "z"), shard=0)
                found = await published(bone, name)
                assert found in (whole(0, "x") + whole(1, "z"), whole(0, "y", 4) + whole(1, "z")), life
                assert await second.published() == 1
                deaths += died
                if not died:
                    break
            # Staging, deciding, publishing, done, dropping: each step was the last one once.
            assert deaths == 3 + 1 + 3 + 1 + 1

    run(work)


def test_a_second_publisher_that_wakes_up_late_repeats_nothing(url: str) -> None:
    async def work() -> None:
        async with opened(url) as (bone, stage):
            asleep, awake = asyncio.Event(), asyncio.Event()

            class Sleepy(Dying):
                async def append_next(self, *args: Any, **kwargs: Any) -> int:
                    if args[1].find(b"x1a") > 0:
                        asleep.set()
                        await awake.wait()
                    result: int = await self._inner.append_next(*args, **kwargs)
                    return result

            zombie = BatchSink("zombie", Sleepy(bone.log, [99], late=False), bone.registry, stage)  # type: ignore[arg-type]
            piles = await staged(zombie, 0, "x")
            task = asyncio.ensure_future(zombie.publish(0, piles, shard=0))
            await asyncio.wait_for(asleep.wait(), 10)
            other = BatchSink("zombie", bone.log, bone.registry, stage)
            await other.publish(0, await staged(other, 0, "y"), shard=0)
            await other.publish(1, await staged(other, 1, "z"), shard=0)
            awake.set()
            await asyncio.wait_for(task, 30)
            assert await published(bone, "zombie") == whole(0, "x") + whole(1, "z")

    run(work)


def test_a_batch_without_rows_and_one_that_was_published_change_nothing(url: str) -> None:
    async def work() -> None:
        async with opened(url) as (bone, stage):
            sink = BatchSink("calm", bone.log, bone.registry, stage)
            await sink.publish(0, [sink.piling(0).pile], shard=0)
            await sink.publish(5, await staged(sink, 5, "x"), shard=0)
            await sink.publish(4, await staged(sink, 4, "y"), shard=0)
            assert await published(bone, "calm") == whole(5, "x")

    run(work)


def test_the_end_of_a_chain_is_where_its_last_entry_is_and_nobody_appends_elsewhere(url: str) -> None:
    async def work() -> None:
        async with opened(url) as (bone, _):
            log = bone.log
            assert await log.end_of_chain(0, "c1") is None
            first = await log.append_next(0, b"one", chain="c1", after=0)
            await log.append(0, b"not of the chain", dedup="other")
            second = await log.append_next(0, b"two", chain="c1", after=first)
            end = await log.end_of_chain(0, "c1")
            assert end is not None
            assert (end.sequence, end.data) == (second, b"two")
            for after in (0, first):
                with pytest.raises(ConflictError, match="does not end at"):
                    await log.append_next(0, b"two", chain="c1", after=after)

    run(work)


def test_a_batch_whose_fate_the_log_has_forgotten_is_refused(tmp_path: Path) -> None:
    with running(tmp_path / "nats") as url:

        async def work() -> None:
            async with opened(url) as (bone, stage):
                left = [4]  # three entries staged and the decision written: dead before the first is published
                parts = (Dying(each, left, late=False) for each in (bone.log, bone.registry, stage))
                sink = BatchSink("late", *parts)  # type: ignore[arg-type]
                with pytest.raises(Dead):
                    await sink.publish(0, await staged(sink, 0, "x"), shard=0)
                for k in range(3):
                    await bone.log.append(0, b"others", dedup=f"others-{k}")
                await bone.link.js.purge_stream("nc-log-0", keep=1)
                again = BatchSink("late", bone.log, bone.registry, stage)
                with pytest.raises(TransportError, match="the log has dropped entries"):
                    await again.publish(0, [], shard=0)

        run(work)


def test_a_log_made_before_there_were_chains_learns_of_them_and_keeps_what_it_has(tmp_path: Path) -> None:
    with running(tmp_path / "nats") as url:

        async def work() -> None:
            link = await connect_nats(url, system="old")
            api = engine("nats.js.api")
            republish = api.RePublish(src="old.log.0", dest="old.live.0")
            made = api.StreamConfig(name="old-log-0", subjects=["old.log.0"], allow_direct=True, republish=republish)
            await link.js.add_stream(made)
            await link.js.publish("old.log.0", b"before")
            log = NatsLog(link)
            await log.start((0,))
            assert await log.append_next(0, b"after", chain="c", after=0) == 3  # behind one that begins a generation
            kept = [entry.data for entry in (await log.read(0, 0, most=9)).entries]
            assert (kept[0], kept[2:]) == (b"before", [b"after"])
            heard = log.tail(0, 3)
            first = asyncio.ensure_future(anext(heard))
            await asyncio.sleep(0.1)
            await log.append_next(0, b"live", chain="c", after=3)
            assert (await asyncio.wait_for(first, 5)).data == b"live"
            await heard.aclose()
            await link.close()

        run(work)
