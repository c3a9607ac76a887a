"""Processes that share an edge by its socket get what an edge of their own would give, also when it starts again."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from narrowcast.deliver.client.connect import Subscription, connect
from narrowcast.deliver.parts.effects import Deliver, Gap, Subscribed
from narrowcast.deliver.processes.roles import run_role
from narrowcast.deliver.processes.shared.notes import effect_notes, effect_of, note_bytes, read_note
from narrowcast.deliver.processes.system import EdgeSection, System
from narrowcast.errors import NarrowcastError, TransportError
from running import running

pytestmark = pytest.mark.timeout(60)


@asynccontextmanager
async def an_edge(url: str, folder: Path) -> AsyncIterator[Path]:
    """A shared edge, as `narrowcast edge` runs it, for as long as the block."""
    stop, socket = asyncio.Event(), folder / "edge.sock"
    system = System(nats=url, folder=folder, edge=EdgeSection("shared", out="out", socket="edge.sock"))
    task = asyncio.ensure_future(run_role("edge", system, stop=stop))
    while not socket.exists():
        await asyncio.sleep(0.02)
        assert not task.done(), task
    try:
        yield socket
    finally:
        stop.set()
        await task


async def take(subscription: Subscription, n: int) -> list[int]:
    """The numbers of the next n messages."""
    found: list[int] = []
    while len(found) < n:
        found += [row["n"] for row in await asyncio.wait_for(anext(subscription), 10)]
    return found


def rows(first: int, end: int) -> list[dict[str, Any]]:
    return [{"n": n, "s": "ab"[n % 2]} for n in range(first, end)]


async def whole_story(url: str, folder: Path) -> None:
    async with connect(url) as publisher:
        async with an_edge(url, folder) as socket:
            assert stat.S_IMODE(socket.stat().st_mode) == 0o600
            one, two = connect(url, edge=socket), connect(url, edge=socket)
            await one.__aenter__()
            await two.__aenter__()
            evens = await one.subscribe("s = 'a'", name="evens").ready(10)
            all_, again = two.subscribe("n >= 0", name="all"), two.subscribe("n >= 0", name="again")
            slow = two.subscribe("n >= 0", name="slow", credit=3)
            for each in (all_, again, slow):
                await each.ready(10)
            await publisher.publish(rows(0, 10))
            await publisher.publish(pa.Table.from_pylist(rows(10, 20)))
            assert await take(evens, 10) == list(range(0, 20, 2))
            assert await take(all_, 20) == await take(again, 20) == list(range(20))
            async with connect(url, edge=socket) as third:
                with pytest.raises(TransportError, match="another process has"):
                    await take(third.subscribe("n > 0", name="evens"), 1)
            for junk in (b"\xff" * 64, b"\0\0\0\2\0\0\0\0{}", b"\0\0\0\2\0\0\0\0[]", b"\0\0\0\1"):
                _, writer = await asyncio.open_unix_connection(socket)
                writer.write(junk)
                writer.close()
            await publisher.publish(rows(20, 24))
            assert await take(evens, 2) == [20, 22]
        await publisher.publish(rows(24, 30))  # nobody serves them now
        async with an_edge(url, folder):
            assert await take(evens, 3) == [24, 26, 28]
            assert await take(all_, 10) == list(range(20, 30))
            assert await take(slow, 30) == list(range(30))
            await evens.close()
            await one.__aexit__()
            await two.__aexit__()


def test_subscriptions_of_several_processes_share_an_edge_and_go_on_when_it_starts_again(tmp_path: Path) -> None:
    with running(tmp_path / "nats") as url:
        asyncio.run(whole_story(url, tmp_path))


def test_a_process_that_reads_nothing_holds_up_no_other(tmp_path: Path) -> None:
    """It has credit for all of it; what its socket does not take waits with the edge, and not in memory."""

    async def story(url: str) -> None:
        async with an_edge(url, tmp_path) as socket, connect(url) as publisher, connect(url, edge=socket) as client:
            _, stuck = await asyncio.open_unix_connection(socket)
            asks = {"subscribe": "stuck", "profile": "n >= 0", "position": [], "credit": 1 << 30}
            stuck.write(note_bytes(asks))
            wanted = await client.subscribe("n >= 0", credit=1 << 30).ready(10)
            for first in range(0, 40_000, 4_000):
                rows = range(first, first + 4_000)
                await publisher.publish(pa.table({"n": list(rows), "text": ["x" * 1000] * len(rows)}))
            assert await take(wanted, 40_000) == list(range(40_000))
            (served,) = [each for each in asyncio.all_tasks() if "EdgeServer._drained" in repr(each)]
            assert not served.done(), "nothing waits for the process that reads nothing"
            stuck.close()

    with running(tmp_path / "nats") as url:
        asyncio.run(story(url))


def test_without_an_edge_at_the_socket_the_error_says_how_to_start_one(tmp_path: Path) -> None:
    async def story(url: str) -> None:
        async with connect(url, edge=tmp_path / "none.sock") as connection:
            with pytest.raises(NarrowcastError, match="narrowcast edge"):
                await connection.subscribe("n > 0").ready(5)

    with running(tmp_path / "nats") as url:
        asyncio.run(story(url))


_PLACES = st.lists(st.integers(1, (1 << 72) - 1), unique=True, max_size=5).map(sorted)


@settings(max_examples=40)
@given(_PLACES, st.binary(max_size=20), st.integers(0, 1 << 70))
def test_what_an_edge_tells_is_the_same_on_the_other_side(places: list[int], payload: bytes, end: int) -> None:
    told = Deliver("u", 3, tuple((at, payload) for at in places), (places[-1] if places else 0) + end)

    async def over(effect: Deliver | Gap | Subscribed) -> list[Any]:
        stream = asyncio.StreamReader()
        notes = effect_notes(effect)
        stream.feed_data(b"".join(notes))
        return [effect_of(*await read_note(stream)) for _ in notes]

    found = asyncio.run(over(told))
    assert tuple(message for each in found for message in each.messages) == told.messages
    assert found[-1].position == told.position
    assert all(each.position >= each.messages[-1][0] for each in found if each.messages)
    for other in (Gap("u", 0, 1, end, "slow"), Subscribed("u", {0: end, 3: 7})):
        assert asyncio.run(over(other)) == [other]
