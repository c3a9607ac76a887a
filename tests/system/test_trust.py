"""What an attack found, on real processes: large messages, rubbish in the registry, honest binding, replicas."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from narrowcast.deliver.client.connect import connect
from narrowcast.deliver.parts import records
from narrowcast.deliver.processes.backbone import backbone
from narrowcast.deliver.processes.supervise import Supervisor, local_system
from narrowcast.deliver.processes.system import System
from narrowcast.deliver.transport.dds.config import DdsSettings
from narrowcast.deliver.transport.dds.node import DdsNode
from narrowcast.deliver.transport.nats.server import DYING_WITH_US, free_port, server_binary
from narrowcast.deliver.wire import Batch, encode_entry, encode_payload
from narrowcast.errors import InputError

RUBBISH = [b"", b"{", b"[]", b"\xff\xfe", b'{"term":"x"}', b"[" * 100_000, b"9" * 5000, os.urandom(300)]


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
            with pytest.raises(InputError, match="message must be at most 1048524 bytes, got 11000"):
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
