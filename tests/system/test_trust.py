"""What an attack found, on real processes: foreign systems, forged frames, restored logs, large messages, rubbish in
the registry, honest binding, replicas."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from narrowcast.deliver.client.connect import connect
from narrowcast.deliver.parts import records
from narrowcast.deliver.processes.backbone import backbone
from narrowcast.deliver.processes.supervise import local_multicast, local_system
from narrowcast.deliver.processes.system import System
from narrowcast.deliver.transport.dds.config import DdsSettings
from narrowcast.deliver.transport.dds.node import DdsNode
from narrowcast.deliver.transport.nats.server import DYING_WITH_US, free_port, server_binary
from narrowcast.deliver.wire import Batch, encode_entry, encode_payload
from narrowcast.errors import InputError
from system.live import a_plan, by_channel, running, upto
from system.packets import assaulted, assaulted_from_afar, harmed, unharmed

RUBBISH = [b"", b"{", b"[]", b"\xff\xfe", b'{"term":"x"}', b"[" * 100_000, b"9" * 5000, os.urandom(300)]


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
            await by_channel(first, first, ann, {"s": "a"})
            two = await system("two")
            assert one.multicast is not None
            assert two.multicast is not None
            assert (one.multicast.domain == two.multicast.domain) is (domain is not None)
            async with running(two), connect(two.folder) as second:
                bob = await second.subscribe("s = 'a'", name="ann").ready()
                await by_channel(second, second, bob, {"s": "a"})
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


def test_f2_ten_thousand_packets_from_inside_the_segment_get_nothing_in_and_silence_nobody(tmp_path: Path) -> None:
    unharmed(assaulted(tmp_path, 10_000), 10_000)


def test_without_seals_the_same_packets_are_delivered_and_silence_a_subscriber(tmp_path: Path) -> None:
    """So that one sees that the attack is one."""
    harmed(assaulted(tmp_path, 5_000, seal=False), 5_000)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_million_packets_from_inside_the_segment_get_nothing_in_and_silence_nobody(tmp_path: Path) -> None:
    unharmed(assaulted(tmp_path, 1_000_000), 1_000_000)


def test_f2_packets_from_another_host_get_nothing_in_and_silence_nobody(tmp_path: Path) -> None:
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("iptables") is None:
        pytest.skip("needs root, iproute2 and iptables for network namespaces")
    unharmed(assaulted_from_afar(tmp_path, 5_000), 5_000)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_million_packets_from_another_host_get_nothing_in_and_silence_nobody(tmp_path: Path) -> None:
    unharmed(assaulted_from_afar(tmp_path, 1_000_000), 1_000_000)


def test_large_messages_and_rubbish_in_the_registry_stop_no_process_and_no_delivery(tmp_path: Path) -> None:
    async def run() -> None:
        local = local_system(tmp_path, None, key=("n",), multicast=DdsSettings(domain=64))
        async with running(local) as supervisor, connect(tmp_path) as client:
            pids = {name: process.pid for name, process in supervisor.processes.items()}
            wanted = await client.subscribe("n >= -1000").ready()
            await by_channel(client, client, wanted, {})  # else the source would have nothing to do with what follows
            base = await backbone(supervisor.server.url, name="attacker")
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
            for k, data in enumerate(RUBBISH):
                for key in ("epoch", "lease", "offer", f"plan.{900 + k}", "plan.x", "sub.zz", "node.6161", "source.0"):
                    await base.registry.put(key, data)
                await base.registry.put(records.named(records.SUBSCRIPTION, f"evil-{k}"), data)
            await client.publish({"n": 9})
            assert await upto(wanted, 9) == ([9], [])
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
