"""Connecting: tried again with pauses until it works or time is up; and what NATS will not take."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

import narrowcast as nc
from narrowcast.deliver.parts.publisher import PublisherSettings
from narrowcast.deliver.processes.backbone import backbone
from narrowcast.deliver.processes.system import KEY, System
from narrowcast.deliver.transport import FinalError, Link
from narrowcast.deliver.transport.nats.link import connect_nats, dial
from narrowcast.deliver.transport.nats.log import NatsLog
from narrowcast.deliver.transport.nats.registry import NatsRegistry
from narrowcast.deliver.transport.nats.server import NatsServer, free_port
from narrowcast.deliver.transport.nats.unicast import NatsUnicast
from narrowcast.deliver.transport.retry import retried
from narrowcast.errors import InputError, TransportError
from running import running


def test_sixty_four_that_connect_before_the_server_is_up_all_get_in(tmp_path: Path) -> None:
    async def run() -> None:
        server = NatsServer(tmp_path, sync="2m")
        url = await server.start()
        await (await backbone(url, name="setup", found=System())).close()
        await server.stop()
        many = [asyncio.ensure_future(backbone(url, name=f"client-{k}", patience=30.0)) for k in range(64)]
        await asyncio.sleep(4.0)
        assert not any(each.done() for each in many), "somebody gave up"
        await server.start()
        try:
            for each in await asyncio.gather(*many):
                await each.close()
        finally:
            await server.stop()

    asyncio.run(asyncio.wait_for(run(), 120))


def test_the_end_is_one_line_that_says_where_why_and_how_long() -> None:
    port = free_port()

    async def run() -> str:
        begin = asyncio.get_running_loop().time()
        with pytest.raises(TransportError) as caught:
            await connect_nats(f"nats://me:secret@127.0.0.1:{port}", patience=1.0)
        assert 0.4 < asyncio.get_running_loop().time() - begin < 3.0
        return str(caught.value)

    said = asyncio.run(run())
    assert f"127.0.0.1:{port}" in said
    assert "times in" in said
    assert "secret" not in said
    assert "\n" not in said


def test_one_that_takes_connections_and_says_nothing_is_given_up_too() -> None:
    async def run() -> None:
        callers: list[asyncio.StreamWriter] = []
        server = await asyncio.start_server(lambda reader, writer: callers.append(writer), "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(TransportError, match=rf"127\.0\.0\.1:{port} \(tried 1 times in 1\.\d s\)"):
            await connect_nats(f"nats://127.0.0.1:{port}", patience=1.0)
        for caller in callers:
            caller.close()
            await caller.wait_closed()
        server.close()

    asyncio.run(asyncio.wait_for(run(), 30))


def test_pauses_grow_and_differ_and_a_final_answer_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    async def no() -> None:
        raise TransportError("no")

    async def never() -> None:
        raise FinalError("never")

    async def run() -> None:
        monkeypatch.setattr("narrowcast.deliver.transport.retry.asyncio.sleep", noted)
        with pytest.raises(TransportError, match="no "):
            await asyncio.wait_for(_until(pauses, no), 5)
        count = len(pauses)
        with pytest.raises(FinalError, match="never"):
            await retried(never, "there")
        assert len(pauses) == count

    asyncio.run(run())
    assert len(set(pauses)) == len(pauses)
    assert pauses[0] < 0.1
    assert max(pauses) > 1.0
    assert all(pause <= 3.0 for pause in pauses)


async def _until(pauses: list[float], attempt: Any) -> None:
    """Tried until there were twelve pauses, none of which takes time."""

    async def counted() -> None:
        if len(pauses) == 12:
            raise FinalError("no more")
        await attempt()

    await retried(counted, "there", 1000.0)


def test_wrong_credentials_and_a_server_without_a_system_are_said_at_once(tmp_path: Path) -> None:
    async def run() -> None:
        server = NatsServer(tmp_path, sync="2m")
        url = await server.start()
        begin = asyncio.get_running_loop().time()
        try:
            with pytest.raises(FinalError, match="Authorization"):
                await backbone(url.replace("narrowcast:", "narrowcast:not-"), name="stranger")
            with pytest.raises(FinalError, match="no narrowcast system"):
                await backbone(url, name="early")
            assert asyncio.get_running_loop().time() - begin < 12.0, "it was tried again"
            link = await dial(url)
            registry = NatsRegistry(link)
            await registry.start()
            for rubbish in (b"\xff", b"nats = [", b"[" * 100_000, b"shards = 'x'"):
                await registry.put(KEY, rubbish)
                with pytest.raises(FinalError, match="cannot be read"):
                    await backbone(url, name="early")
            await link.close()
        finally:
            await server.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


def test_replicas_are_asked_for_the_registry_too_and_one_server_says_that_it_has_none(tmp_path: Path) -> None:
    """On three servers: tests/system/test_trust.py."""

    async def run() -> None:
        server = NatsServer(tmp_path, sync="2m")
        url = await server.start()
        try:
            with pytest.raises(FinalError, match="NATS refused the registry: replicas > 1 not supported"):
                await backbone(url, name="boss", found=System(replicas=3), replicas=3)
        finally:
            await server.stop()

    asyncio.run(asyncio.wait_for(run(), 60))


@pytest.fixture
def url(tmp_path: Path) -> Any:
    with running(tmp_path / "nats") as found:
        yield found


def test_nothing_of_a_batch_is_sent_if_one_message_cannot_be(url: str) -> None:
    rows = [{"n": k} for k in range(5000)]
    with nc.connect(url) as connection:
        for wrong in ({"x": {"$time": 10**30}}, {"x": "y" * 1_100_000}, {"x": object()}, {"x": float}):
            with pytest.raises(InputError):
                connection.publish([*rows, wrong])
        with pytest.raises(InputError, match="message must be at most 1048476 bytes, got 1100008"):
            connection.publish({"x": "y" * 1_100_000})
        with pytest.raises(InputError, match="shard must be from 0 to 0, got 7"):
            connection.publish(rows, shard=7)
        assert list(connection.subscribe("n >= 0", from_start=True, timeout=0.5)) == []


def test_the_largest_messages_are_published_and_read_and_so_are_larger_entries(url: str) -> None:
    async def run() -> None:
        link = await dial(url)
        log = NatsLog(link)
        await log.start((0,))
        sizes = [900_000, 1_000_000, 5 << 20, log.most_bytes]
        for n, size in enumerate(sizes):
            await log.append(0, b"x" * size, dedup=f"d{n}")
        with pytest.raises(FinalError, match=f"at most {log.most_bytes} bytes, got {log.most_bytes + 1}"):
            await log.append(0, b"x" * (log.most_bytes + 1), dedup="more")
        found: list[int] = []
        while len(found) < len(sizes):
            stretch = await log.read(0, 1 + len(found), most=256)  # behind the one that begins the generation
            assert stretch.entries, "a reader stands still before a large entry"
            found += [len(entry.data) for entry in stretch.entries]
        assert found == sizes
        await link.close()

    asyncio.run(asyncio.wait_for(run(), 60))
    assert PublisherSettings().most_payload == 1_048_476


@pytest.mark.long
def test_a_node_starts_while_its_server_stands_still_and_is_reached_when_it_goes_on(tmp_path: Path) -> None:
    async def run() -> None:
        server = NatsServer(tmp_path, sync="2m")
        url = await server.start()
        link, other = await connect_nats(url), await connect_nats(url)
        assert server.process is not None
        server.process.send_signal(signal.SIGSTOP)
        got: list[bytes] = []
        try:
            await NatsUnicast(link, "me").start(got.append)
        finally:
            server.process.send_signal(signal.SIGCONT)
        sender = NatsUnicast(other)
        while not got:
            await sender.send(Link("me"), b"hello")
            await asyncio.sleep(0.05)
        assert got[0] == b"hello"
        await link.close()
        await other.close()
        await server.stop()

    asyncio.run(asyncio.wait_for(run(), 30))
