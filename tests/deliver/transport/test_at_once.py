"""Messages of NATS without the library's detours: the same answers, errors and order."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from nats.errors import NoRespondersError
from nats.errors import TimeoutError as NatsTimeout

from deliver.transport.test_engines import nats
from narrowcast.deliver.transport.nats.at_once import listen_at_once


def test_a_message_that_cannot_be_dealt_with_does_not_end_the_others(tmp_path: Path) -> None:
    heard: list[bytes] = []

    def take(message: Any) -> None:
        if message.data == b"bad":
            raise ValueError(message.data)
        heard.append(message.data)

    async def run() -> None:
        async with nats(tmp_path) as (_, link):
            await listen_at_once(link.nc, "some.*", take)
            for data in (b"1", b"bad", b"2"):
                await link.nc.publish("some.thing", data)
            await link.nc.flush()
            end = time.monotonic() + 5
            while len(heard) < 2 and time.monotonic() < end:
                await asyncio.sleep(0.01)

    asyncio.run(run())
    assert heard == [b"1", b"2"]


def test_a_library_without_that_queue_is_used_its_own_way(tmp_path: Path) -> None:
    heard: list[bytes] = []

    async def run() -> None:
        async with nats(tmp_path) as (_, link):
            usual = link.nc.subscribe

            async def other(*given: Any, **named: Any) -> Any:
                found = await usual(*given, **named)
                if "cb" not in named:
                    found._pending_queue = None
                return found

            link.nc.subscribe = other
            await listen_at_once(link.nc, "some", lambda message: heard.append(message.data))
            await link.nc.publish("some", b"1")
            await link.nc.flush()
            await asyncio.sleep(0.05)

    asyncio.run(run())
    assert heard == [b"1"]


def test_questions_have_their_own_answers_and_errors(tmp_path: Path) -> None:
    async def run() -> None:
        async with nats(tmp_path) as (_, link):

            async def echo(message: Any) -> None:
                await asyncio.sleep(0.01 if message.data == b"0" else 0)
                if message.data != b"none":
                    await message.respond(message.data + (message.headers or {}).get("X", "").encode())

            await link.nc.subscribe("echo", cb=echo)
            ask = link.requests.ask
            found = await asyncio.gather(*(ask("echo", str(n).encode(), 2.0, {"X": "!"}) for n in range(50)))
            assert found == [f"{n}!".encode() for n in range(50)]
            with pytest.raises(NoRespondersError):
                await ask("nobody", b"", 2.0)
            begin = time.monotonic()
            with pytest.raises(NatsTimeout):
                await ask("echo", b"none", 0.2)
            assert 0.15 < time.monotonic() - begin < 1.5
            assert not link.requests._waiting

    asyncio.run(run())


def test_what_is_sent_keeps_its_order_with_what_the_library_sends(tmp_path: Path) -> None:
    heard: list[bytes] = []

    async def run() -> None:
        async with nats(tmp_path) as (_, link):
            await listen_at_once(link.nc, "some", lambda message: heard.append(message.data))
            questions = []
            for n in range(100):
                await link.nc.publish("some", f"{n} usual".encode())
                questions.append(asyncio.ensure_future(link.requests.ask("some", f"{n} question".encode(), 0.3)))
                await asyncio.sleep(0)
            await asyncio.gather(*questions, return_exceptions=True)

    asyncio.run(run())
    assert heard == [f"{n} {kind}".encode() for n in range(100) for kind in ("usual", "question")]
