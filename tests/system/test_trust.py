"""What an attack found, on real processes: foreign systems, forged frames, restored logs, large messages, rubbish in
the registry, honest binding, replicas."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from narrowcast.deliver.client.connect import Connection, Subscription, connect
from narrowcast.deliver.parts import records
from narrowcast.deliver.processes.backbone import backbone
from narrowcast.deliver.processes.supervise import Supervisor, local_multicast, local_system
from narrowcast.deliver.processes.system import System
from narrowcast.deliver.transport import Multicast
from narrowcast.deliver.transport.dds.config import DdsSettings
from narrowcast.deliver.transport.dds.multicast import DdsMulticast
from narrowcast.deliver.transport.dds.node import DdsNode
from narrowcast.deliver.transport.nats.server import DYING_WITH_US, free_port, server_binary
from narrowcast.deliver.wire import Batch, Frame, Pulse, Seal, encode, encode_entry, encode_payload, end_of, place
from narrowcast.deliver.wire.frame import EVERY, NO_FLOW, PREFIX
from narrowcast.errors import InputError
from narrowcast.model import Demand, Interest
from narrowcast.model.folder import write_tables
from narrowcast.plans.channels import api as channels

RUBBISH = [b"", b"{", b"[]", b"\xff\xfe", b'{"term":"x"}', b"[" * 100_000, b"9" * 5000, os.urandom(300)]


def a_plan(folder: Path) -> Path:
    """Two flows that two subscribers take, in sessions of their own."""
    interest = Interest.from_pairs([0, 1], [0, 1], [1.0, 1.0], flow_names=["a", "b"], user_names=["ann", "bob"])
    plan = channels.plan(Demand(interest, key=("s",)), groups=2, sessions=2, method="gf")
    return write_tables(plan.to_tables(), folder)


async def by_channel(client: Connection, wanted: Subscription, limit: float = 20.0) -> list[dict[str, Any]]:
    """Publish until messages come by channel: the plan is in force, and carriers have found each other."""
    got: list[dict[str, Any]] = []
    end, k = asyncio.get_running_loop().time() + limit, 0
    while client.ways["channel"] < 20 and asyncio.get_running_loop().time() < end:
        k -= 1
        await client.publish({"s": "a", "n": k})
        while not got or got[-1]["n"] != k:
            got += await asyncio.wait_for(anext(wanted), 10)
    assert client.ways["channel"] >= 20, client.ways
    return got


async def upto(wanted: Subscription, last: int, limit: float = 30.0) -> tuple[list[int], list[str]]:
    """What comes until message `last` is there: numbers, and why others do not."""
    numbers: list[int] = []
    gaps: list[str] = []
    while last not in numbers:
        batch = await asyncio.wait_for(anext(wanted), limit)
        gaps += [batch.gap] if batch.gap else []
        numbers += [row["n"] for row in batch]
    return numbers, gaps


@pytest.mark.parametrize("domain", [66, None])
def test_two_systems_on_one_host_do_not_mix(tmp_path: Path, domain: int | None) -> None:
    """With one domain for both, which is given, and by default, where the second takes another."""

    async def run() -> None:
        async def system(name: str) -> System:
            folder = tmp_path / name
            where = local_multicast(folder, interface="lo", groups=4, domain=domain)
            return local_system(folder, a_plan(tmp_path / f"plan {name}"), multicast=where)

        one = await system("one")
        async with running(one), connect(one.folder) as first:
            ann = await first.subscribe("s = 'a'", name="ann").ready()
            await by_channel(first, ann)
            two = await system("two")
            assert one.multicast is not None
            assert two.multicast is not None
            assert (one.multicast.domain == two.multicast.domain) is (domain is not None)
            async with running(two), connect(two.folder) as second:
                bob = await second.subscribe("s = 'a'", name="ann").ready()
                await by_channel(second, bob)
                for k in range(300):
                    await first.publish({"s": "a", "n": k})
                    await second.publish({"s": "a", "n": 1000 + k})
                assert await upto(ann, 299) == (list(range(300)), [])
                assert await upto(bob, 1299) == (list(range(1000, 1300)), [])
                assert min(first.ways["channel"], second.ways["channel"]) > 200
                foreign = [each._edge.part.counts["foreign"] for each in (first, second) if each._edge is not None]
                assert all(foreign) if domain is not None else not any(foreign), foreign

    asyncio.run(asyncio.wait_for(run(), 120))


@pytest.mark.parametrize("kept", ["an older copy", "nothing"])
def test_a_log_that_went_back_is_noticed_and_everybody_goes_on_with_the_new_one(tmp_path: Path, kept: str) -> None:
    async def run() -> None:
        folder = tmp_path / "data"
        local = local_system(folder, a_plan(tmp_path / "plan"), multicast=DdsSettings(domain=67))
        async with running(local) as supervisor, connect(folder) as client:
            wanted = await client.subscribe("s = 'a'", name="ann").ready()
            await client.publish([{"s": "a", "n": k} for k in range(50)])
            assert await upto(wanted, 49) == (list(range(50)), [])
            shutil.copytree(folder / "jetstream", tmp_path / "copy")
            for k in range(50, 100):
                await client.publish({"s": "a", "n": k})
            assert await upto(wanted, 99) == (list(range(50, 100)), [])
            position = dict(wanted.position)

            server, supervisor.server.process = supervisor.server.process, None  # nobody starts it again but us
            assert server is not None
            server.kill()
            server.wait(10)
            shutil.rmtree(folder / "jetstream")
            if kept == "an older copy":
                shutil.copytree(tmp_path / "copy", folder / "jetstream")
            await supervisor.server.start()

            for k in range(100, 200):
                await client.publish({"s": "a", "n": k})
            assert await upto(wanted, 199) == (list(range(100, 200)), ["restored"])
            late = client.subscribe("s = 'a'", name="late", position=position)
            assert await upto(late, 199) == (list(range(100, 200)), ["restored"])
            fresh = await client.subscribe("s = 'a'", name="bob").ready()
            before = client.ways["channel"]
            k = 200
            while k < 210 or (client.ways["channel"] == before and k < 800):
                await client.publish({"s": "a", "n": k})
                k += 1
                await asyncio.sleep(0.05)
            assert await upto(fresh, k - 1) == (list(range(200, k)), [])
            assert await upto(wanted, k - 1) == (list(range(200, k)), [])
            assert client.ways["channel"] > before, "nothing came by channel after the log went back"
        async with running(local), connect(folder) as client:  # a start without loss is no reason for a gap
            again = client.subscribe("s = 'a'", name="ann", position=wanted.position)
            await client.publish({"s": "a", "n": 300})
            assert await upto(again, 300) == ([300], [])

    asyncio.run(asyncio.wait_for(run(), 180))


class Intruder:
    """Somebody in the segment: hears what goes by, and sends what it likes into the sessions it hears."""

    def __init__(self, multicast: DdsSettings) -> None:
        self.carrier = DdsMulticast(multicast)
        self.sessions = [Multicast(group, session) for group in range(3) for session in range(4)]
        self.heard: list[bytes] = []
        self._mine: set[int] = set()
        self._random = Random(5)
        self._seal = Seal(1, sealed=True)

    async def start(self) -> None:
        await self.carrier.start(self._hear)
        for session in self.sessions:
            await self.carrier.join(session)
            await self.carrier.prepare(session)

    def _hear(self, data: bytes) -> None:
        if hash(data) not in self._mine and len(data) >= PREFIX.size:
            self.heard = [*self.heard[-200:], data]

    def lies(self, data: bytes) -> list[bytes]:
        """Made from one frame that was heard: as it is, damaged, cut, and others with its names on them."""
        rng = self._random
        _, _, _, system, epoch, channel, plan = PREFIX.unpack_from(data)
        flipped = bytearray(data)
        flipped[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        far = end_of((1 << 110) + rng.randrange(1 << 30))
        message = (place(far >> 16, 0), NO_FLOW, encode_payload({"s": "a", "n": -666}))
        near = far - 500_000
        claims = [Frame(0, channel, epoch, near, far, messages) for messages in ((), (message,))]
        claims += [] if channel != EVERY else [Pulse(0, epoch, near, far)]  # type: ignore[list-item]
        self._seal.system = system
        self._seal.know(epoch, plan)
        self._seal.add_root(epoch, rng.randbytes(32))
        made = [data, bytes(flipped), data[: rng.randrange(len(data))], rng.randbytes(80)]
        made += [encode(claim, system, plan) for claim in claims]
        return made + [self._seal.pack(claim) for claim in claims]

    @property
    def sent(self) -> int:
        return self.carrier.counts["frames sent"]

    async def attack(self, packets: int) -> None:
        while self.sent < packets:
            for lie in self.lies(self._random.choice(self.heard)):
                session = self._random.choice(self.sessions)
                self._mine.add(hash(lie))
                await self.carrier.send(session, lie)
            await asyncio.sleep(0)


def assaulted(folder: Path, packets: int, *, seal: bool = True) -> None:
    """Publish and subscribe while somebody in the segment sends packets; see that nothing came of them."""

    async def run() -> None:
        multicast = DdsSettings(domain=68, groups=4)
        local = local_system(folder / "data", a_plan(folder / "plan"), multicast=multicast, seal=seal)
        async with running(local), connect(local.folder) as client:
            ann = await client.subscribe("s = 'a'", name="ann").ready()
            intruder = Intruder(multicast)
            await intruder.start()
            await by_channel(client, ann)
            while not intruder.heard:
                await client.publish({"s": "a", "n": -1})
                await asyncio.sleep(0.05)
            await client.publish({"s": "a", "n": -2})
            await upto(ann, -2)
            before = client.ways
            attack = asyncio.ensure_future(intruder.attack(packets))
            n = 0
            while not attack.done() or n < 200:
                await client.publish({"s": "a", "n": n})
                found = await upto(ann, n)
                assert found == ([n], []), found
                n += 1
            await attack
            after = client.ways
            assert client._edge is not None
            counts = client._edge.part.counts
            await intruder.carrier.close()
            assert intruder.sent >= packets
            assert after["channel"] - before["channel"] > 0.8 * n, (before, after, n, counts)
            assert counts["forged"] > packets / 50, counts
            assert counts["replayed"] > packets / 100, counts
            assert counts["foreign"] > 0, counts

    asyncio.run(asyncio.wait_for(run(), 60 + packets / 500))


def test_twenty_thousand_packets_from_inside_the_segment_get_nothing_in_and_silence_nobody(tmp_path: Path) -> None:
    assaulted(tmp_path, 20_000)


def test_without_a_seal_the_same_packets_do_harm(tmp_path: Path) -> None:
    """So that one sees that the attack is one."""
    with pytest.raises((AssertionError, TimeoutError)):
        assaulted(tmp_path, 2000, seal=False)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_million_packets_from_inside_the_segment_get_nothing_in_and_silence_nobody(tmp_path: Path) -> None:
    assaulted(tmp_path, 1_000_000)


@asynccontextmanager
async def running(local: System) -> AsyncIterator[Supervisor]:
    stop, supervisor = asyncio.Event(), Supervisor(local, sync="2m")
    task = asyncio.ensure_future(supervisor.run(stop))
    try:
        while not supervisor._ready and not task.done():
            await asyncio.sleep(0.05)
        if task.done():
            task.result()
        yield supervisor
    finally:
        stop.set()
        await asyncio.wait_for(task, 30)


def test_large_messages_and_rubbish_in_the_registry_stop_no_process_and_no_delivery(tmp_path: Path) -> None:
    async def run() -> None:
        local = local_system(tmp_path, None, key=("n",), multicast=DdsSettings(domain=64))
        async with running(local) as supervisor, connect(tmp_path) as client:
            pids = {name: process.pid for name, process in supervisor.processes.items()}
            wanted = await client.subscribe("n >= 0").ready()
            base = await backbone(supervisor.server.url, name="attacker")
            for k, data in enumerate(RUBBISH):
                for key in ("epoch", "lease", "offer", f"plan.{900 + k}", "plan.x", "sub.zz", "node.6161", "source.0"):
                    await base.registry.put(key, data)
                await base.registry.put(records.named(records.SUBSCRIPTION, f"evil-{k}"), data)
            with pytest.raises(InputError, match="message must be at most 1048476 bytes, got 11000"):
                await client.publish({"n": 9, "x": "y" * 1_100_000})
            sent = [{"n": k, "x": "y" * size} for k, size in enumerate((10, 900_000, 20, 1_000_000, 30))]
            for each in sent:
                await client.publish(each)
            large = b'{"n":7,"x":"' + b"y" * 1_100_000 + b'"}'
            entry = encode_entry(Batch("attacker", 0, (encode_payload({"n": 6}), large)))
            await base.log.append(0, entry, dedup="attacker")
            await client.publish({"n": 8})
            got: list[dict[str, Any]] = []
            while len(got) < 8:
                got += await asyncio.wait_for(anext(wanted), 30)
            assert [row["n"] for row in got] == [0, 1, 2, 3, 4, 6, 7, 8]
            assert got[:5] == sent
            await asyncio.sleep(2.0)
            assert {name: process.pid for name, process in supervisor.processes.items()} == pids, "one was restarted"
            await base.close()

    asyncio.run(asyncio.wait_for(run(), 120))


def test_multicast_on_loopback_takes_nothing_from_another_interface() -> None:
    def open_to_all() -> list[bytes]:
        found = []
        for path in Path("/proc/self/fd").iterdir():
            try:
                each = socket.socket(fileno=int(path.name))
            except OSError:
                continue
            if each.family == socket.AF_INET and each.type == socket.SOCK_DGRAM and each.getsockname()[0] == "0.0.0.0":
                found.append(each.getsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, 16).rstrip(b"\0"))
            each.detach()
        return found

    before = len(open_to_all())
    node = DdsNode(DdsSettings(domain=65))
    try:
        assert len(open_to_all()) > before
        assert open_to_all().count(b"lo") == len(open_to_all()) - before
    finally:
        node.close()


def test_log_and_registry_have_three_replicas_also_where_somebody_made_them_with_one(tmp_path: Path) -> None:
    ports = [(free_port(), free_port()) for _ in range(3)]
    routes = ", ".join(f'"nats://127.0.0.1:{cluster}"' for _, cluster in ports)
    servers = []
    for k, (port, cluster) in enumerate(ports):
        path = tmp_path / f"{k}.conf"
        path.write_text(
            f'server_name: n{k}\nlisten: "127.0.0.1:{port}"\njetstream {{ store_dir: "{tmp_path}/{k}" }}\n'
            f'cluster {{ name: c, listen: "127.0.0.1:{cluster}", routes: [{routes}] }}\n'
        )
        with (tmp_path / f"{k}.log").open("wb") as log:
            command = [*DYING_WITH_US, server_binary(), "-c", str(path)]
            servers.append(subprocess.Popen(command, stdout=log, stderr=log))
    url = ",".join(f"nats://127.0.0.1:{port}" for port, _ in ports)

    async def run() -> dict[str, int]:
        await (await backbone(url, name="early", found=System(), patience=60.0)).close()
        base = await backbone(url, name="boss", found=System(replicas=3), replicas=3, patience=60.0)
        await (await backbone(url, name="client")).close()
        names = ("KV_nc", "nc-log-0")
        found = {name: (await base.link.js.stream_info(name)).config.num_replicas for name in names}
        await base.close()
        return found

    try:
        assert asyncio.run(asyncio.wait_for(run(), 120)) == {"KV_nc": 3, "nc-log-0": 3}
    finally:
        for server in servers:
            server.terminate()
        for server in servers:
            server.wait(10)
