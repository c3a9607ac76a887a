"""Every engine takes the same exams, on real sockets on loopback."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path

import pytest

from narrowcast.deliver.transport import Address, Carrier, Link, Multicast, Overlay, Receive, Unicast
from narrowcast.deliver.transport.dds.config import DdsSettings
from narrowcast.deliver.transport.dds.multicast import DdsMulticast
from narrowcast.deliver.transport.dds.node import DdsNode
from narrowcast.deliver.transport.nats.link import NatsLink, connect_nats
from narrowcast.deliver.transport.nats.log import NatsLog
from narrowcast.deliver.transport.nats.registry import NatsRegistry
from narrowcast.deliver.transport.nats.server import NatsServer
from narrowcast.deliver.transport.nats.unicast import NatsUnicast
from narrowcast.errors import TransportError
from narrowcast.testing.engines import exam_carrier, exam_log, exam_registry


@asynccontextmanager
async def nats(folder: Path) -> AsyncIterator[tuple[NatsServer, NatsLink]]:
    server = NatsServer(folder)
    link = await connect_nats(await server.start())
    try:
        yield server, link
    finally:
        await link.close()
        await server.stop()


class Together:
    """Carriers by the kind of address, as a process has them."""

    def __init__(self, carriers: Mapping[type[Address], Carrier]) -> None:
        self._carriers = carriers

    async def start(self, receive: Receive) -> None:
        for carrier in self._carriers.values():
            await carrier.start(receive)

    async def join(self, address: Address) -> None:
        await self._carriers[type(address)].join(address)

    async def leave(self, address: Address) -> None:
        await self._carriers[type(address)].leave(address)

    async def send(self, address: Address, data: bytes) -> None:
        await self._carriers[type(address)].send(address, data)

    async def close(self) -> None:
        for carrier in self._carriers.values():
            await carrier.close()


def test_nats_is_a_log_and_a_registry(tmp_path: Path) -> None:
    async def run() -> None:
        async with nats(tmp_path) as (_, link):
            log, registry = NatsLog(link), NatsRegistry(link)
            for _ in range(2):  # what is there already is used
                await log.start((0, 1))
                await registry.start()
            await exam_log(log)
            await exam_registry(registry)

    asyncio.run(asyncio.wait_for(run(), 120))


@pytest.mark.parametrize(
    "addresses",
    [[Unicast("ann"), Unicast("ann/ü >*")], [Overlay("root", (("root", "leaf"),)), Overlay("root")]],
    ids=["unicast", "overlay"],
)
def test_nats_is_a_carrier(tmp_path: Path, addresses: list[Address]) -> None:
    async def run() -> None:
        async with nats(tmp_path) as (_, link):

            async def open_carrier(node: str) -> Carrier:
                return NatsUnicast(link, node)

            await exam_carrier(open_carrier, addresses, frame_bytes=100_000)

    asyncio.run(asyncio.wait_for(run(), 120))


def test_a_process_gets_no_packets_of_groups_that_only_others_have_joined() -> None:
    """Linux would give them to every socket that listens at the port on all addresses."""

    def opened() -> dict[int, int]:
        found = {}
        for path in Path("/proc/self/fd").iterdir():
            with suppress(OSError):
                each = socket.socket(fileno=int(path.name))
                udp = (each.family, each.type) == (socket.AF_INET, socket.SOCK_DGRAM)
                if udp and each.getsockname()[0] == "0.0.0.0":
                    found[each.fileno()] = each.getsockopt(socket.IPPROTO_IP, 49)  # IP_MULTICAST_ALL
                each.detach()
        return found

    before = opened()
    node = DdsNode(DdsSettings(domain=65))
    try:
        received_at = {number: every for number, every in opened().items() if number not in before}
        assert received_at
        assert not any(received_at.values())
    finally:
        node.close()


async def until(done: Callable[[], bool]) -> None:
    while not done():
        await asyncio.sleep(0.01)


def test_multicast_on_loopback_is_a_carrier(tmp_path: Path) -> None:
    """Two sessions in one group; frames of many packets' size; the sender is there before those who join."""
    sessions = [Multicast(3, 7), Multicast(3, 8)]

    class Known(DdsMulticast):
        async def start(self, receive: Receive) -> None:
            await super().start(receive)
            for session in sessions:
                await self.prepare(session)

    async def run() -> None:
        async with nats(tmp_path) as (_, link):

            async def open_carrier(node: str) -> Carrier:
                kind = Known if node == "sender" else DdsMulticast
                return Together({Multicast: kind(DdsSettings(domain=61, groups=4)), Link: NatsUnicast(link, node)})

            await exam_carrier(open_carrier, sessions, frame_bytes=735_000)

    asyncio.run(asyncio.wait_for(run(), 120))


def test_a_sender_that_is_found_while_others_are_counted_is_a_sender() -> None:
    """Cyclone's Python asks how many there are, then for as many, and indexes by what it is told the second time."""

    class Counting:
        def get_matched_publications(self) -> list[int]:
            raise IndexError("invalid index")

    node = DdsNode(DdsSettings(domain=65))
    try:
        assert node.has_sender(Counting())
        assert not node.has_sender(node.reader("g0-s1")[0])
    finally:
        node.close()


@pytest.mark.parametrize("bell", [True, False])
def test_a_loop_that_stands_still_holds_some_bytes_of_multicast_and_goes_on_with_the_next(
    monkeypatch: pytest.MonkeyPatch, bell: bool
) -> None:
    """However long an application computes: what does not fit is read from the log."""
    monkeypatch.setattr("narrowcast.deliver.transport.dds.multicast.MOST_WAITING_BYTES", 10_000)
    if not bell:
        monkeypatch.delattr("os.eventfd", raising=False)
    heard: list[bytes] = []

    async def run() -> None:
        address = Multicast(0, 1)
        sender, desk = (DdsMulticast(DdsSettings(domain=66, groups=4, pack=False)) for _ in range(2))
        await sender.start(lambda data: None)
        await desk.start(heard.append)
        await sender.prepare(address)
        await desk.join(address)
        await sender.send(address, b"first")
        await until(lambda: heard == [b"first"])
        for k in range(50):
            assert sender._node.write(sender._writers[address], bytes([k]) * 1000)
        time.sleep(1)
        await until(lambda: len(heard) > 10)
        await sender.send(address, b"last")
        await until(lambda: heard[-1] == b"last")
        assert [data[0] for data in heard[1:-1]] == list(range(10))
        assert desk.counts["frames overrun"] == 40
        await sender.close()
        await desk.close()

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_group_that_is_not_mapped_is_refused_by_name() -> None:
    async def run() -> None:
        carrier = DdsMulticast(DdsSettings(domain=61, groups=4))
        await carrier.start(lambda data: None)
        try:
            with pytest.raises(Exception, match=r"one of the 4 groups of .*, got 4"):
                await carrier.join(Multicast(4, 0))
        finally:
            await carrier.close()

    asyncio.run(asyncio.wait_for(run(), 120))


def test_a_server_that_is_killed_comes_back_with_everything_and_its_watchers_see_on(tmp_path: Path) -> None:
    async def run() -> None:
        async with nats(tmp_path) as (server, link):
            log, registry = NatsLog(link), NatsRegistry(link)
            await log.start((0,))
            await registry.start()
            for n in range(20):
                await log.append(0, b"entry %d" % n, dedup=f"d{n}")
            await registry.put("list.a", b"1")
            async with aclosing(registry.watch("list.")) as watch, aclosing(log.tail(0, 20)) as tail:
                assert (await asyncio.wait_for(anext(watch), 5)).data == b"1"
                assert (await asyncio.wait_for(anext(tail), 5)).sequence == 21
                assert server.process is not None
                os.kill(server.process.pid, signal.SIGKILL)
                server.process.wait(10)
                with pytest.raises(TransportError):
                    await log.append(0, b"while it is away", dedup="away")
                await server.start()
                assert await _at_last(log) == 21  # one of them begins the generation
                assert [e.data for e in (await log.read(0, 1, most=100)).entries] == [
                    b"entry %d" % n for n in range(20)
                ]
                assert await log.append(0, b"entry 7", dedup="d7") == 9, "the server forgot what it had"
                assert len((await log.lineage(0)).born) == 2, "no generation began with the server's second start"
                await log.append(0, b"entry 20", dedup="d20")
                await registry.put("list.b", b"2")
                assert (await asyncio.wait_for(anext(watch), 10)).key == "list.b"
                assert (await asyncio.wait_for(anext(tail), 10)).sequence == 22

    asyncio.run(asyncio.wait_for(run(), 120))


async def _at_last(log: NatsLog) -> int:
    for _ in range(100):
        try:
            return await log.last(0)
        except TransportError:
            await asyncio.sleep(0.1)
    raise AssertionError("the log did not come back")


def test_credentials_are_made_once_for_their_owner_only_and_are_needed(tmp_path: Path) -> None:
    async def run() -> None:
        async with nats(tmp_path) as (server, _):
            for name in ("nats.password", "nats.url", "nats.conf"):
                assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600, name
            url = server.url
            with pytest.raises(TransportError, match=r"cannot reach NATS at 127\.0\.0\.1"):
                await connect_nats(url.partition("//")[0] + "//" + url.partition("@")[2])
        async with nats(tmp_path) as (again, _):
            assert again.url == url, "another password, or another port though the old one was free"

    asyncio.run(asyncio.wait_for(run(), 120))


def test_nobody_there_is_said_in_one_line_without_the_password() -> None:
    async def run() -> None:
        with pytest.raises(TransportError) as caught:
            await connect_nats("nats://me:secret@127.0.0.1:1", patience=0.5)
        assert "127.0.0.1:1" in str(caught.value)
        assert "secret" not in str(caught.value)

    asyncio.run(asyncio.wait_for(run(), 120))


def test_a_tail_that_nobody_takes_from_keeps_some_bytes_and_reads_the_others_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However large entries are, a source that falls behind does not hold the whole log in memory."""
    monkeypatch.setattr("narrowcast.deliver.transport.nats.log.MOST_WAITING_BYTES", 20_000)

    async def run() -> None:
        async with nats(tmp_path) as (_, link):
            log = NatsLog(link)
            await log.start((0,))
            first = await log.append(0, b"first", dedup="first")
            async with aclosing(log.tail(0, first - 1)) as tail:
                assert (await asyncio.wait_for(anext(tail), 5)).data == b"first"
                for k in range(100):
                    await log.append(0, bytes([k]) * 1000, dedup=f"d{k}")
                await asyncio.sleep(0.2)
                waiting = tail.ag_frame.f_locals["waiting"]
                assert 20_000 <= waiting < 21_000
                assert [(await asyncio.wait_for(anext(tail), 5)).data[0] for _ in range(100)] == list(range(100))

    asyncio.run(run())
