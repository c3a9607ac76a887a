"""Two coordinators on one system: the one that leads is stopped in the middle of its work, and the other goes on.

It is stopped, not killed: nobody starts it again, its connection stays open, and when it wakes up it still
believes that it leads.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from history import History, check
from narrowcast.deliver.client.connect import Connection, Subscription, connect
from narrowcast.deliver.parts import records
from narrowcast.deliver.processes.backbone import Backbone, backbone
from narrowcast.deliver.processes.supervise import local_system
from system.live import a_plan, until
from system.test_runtime import in_log, point, running

LIMIT_S = 10.0  # a lease is good for three seconds; then plan, prepare, and a slow machine


def wants(profile: str, row: Mapping[str, Any]) -> bool:
    return f"'{row['s']}'" in profile


async def leader(base: Backbone) -> dict[str, Any]:
    data = (await base.registry.get(records.LEASE)).data
    return {} if data is None else records.unpack(data)


def is_planned_for(connection: Connection, name: str) -> bool:
    """Whether the plan in force has channels for a subscription."""
    part: Any = connection._edge.part if connection._edge else None
    readers = part.subscriptions[name].readers.values()
    return bool(readers) and all(part.epoch["current"] in reader.taken for reader in readers)


async def newcomer(connection: Connection, history: History, name: str) -> tuple[Subscription, float]:
    """Subscribes, and says how long it took until channels came along."""
    begun = time.monotonic()
    found = await connection.subscribe("s = 'a'", name=name).ready(20)
    history.subscribed(name, found.profile, {shard: point(at) for shard, at in found.start.items()})
    await until(lambda: is_planned_for(connection, name), 30.0, f"{name} has no channel")
    return found, time.monotonic() - begun


async def upto(subscription: Subscription, history: History, last: int) -> None:
    async for batch in subscription:
        assert batch.gap is None
        for at, row in zip(batch.places, batch, strict=True):
            history.delivered(subscription.name, batch.shard, *point(at), row)
        if any(row["n"] == last for row in batch):
            return


@pytest.mark.long
@pytest.mark.timeout(120)
def test_the_leader_stops_and_the_other_coordinator_goes_on_where_it_was(tmp_path: Path) -> None:
    local = local_system(tmp_path / "data", a_plan(tmp_path / "plan"), key=("s",), multicast=None)
    history, waited = History(), dict[str, float]()

    async def run() -> None:
        async with AsyncExitStack() as stack:
            supervisor = await stack.enter_async_context(running(local, sync="2m"))
            base = await backbone(supervisor.server.url, name="test")
            stack.push_async_callback(base.close)
            there: set[str] = set()
            await base.listen_statistics(lambda data: there.add(json.loads(data)["name"]))
            command = [sys.executable, "-m", "narrowcast.deliver.processes.roles", "coordinator"]
            second = subprocess.Popen([*command, str(local.folder / "coordinator.toml")])
            stack.callback(second.wait, 10)
            stack.callback(second.terminate)
            clients = [await stack.enter_async_context(connect(local.folder, multicast=False)) for _ in range(2)]
            ann, waited["before"] = await newcomer(clients[0], history, "ann")
            await until(
                lambda: sum(name.startswith("coordinator") for name in there) == 2, 40.0, "no second coordinator"
            )
            first = await leader(base)
            pid = supervisor.processes["coordinator"].pid
            os.kill(pid, signal.SIGSTOP)
            stack.callback(os.kill, pid, signal.SIGCONT)
            bob, waited["while it hands over"] = await newcomer(clients[1], history, "bob")
            now = await leader(base)
            assert now["holder"] != first["holder"]
            assert now["term"] > first["term"]
            os.kill(pid, signal.SIGCONT)
            eve, waited["after it came back"] = await newcomer(clients[0], history, "eve")
            assert (await leader(base))["holder"] == now["holder"], "who comes back does not take the lease away"
            rows = [{"s": "ab"[n % 2], "n": n} for n in range(41)]
            await clients[1].publish(rows)
            for subscription in (ann, bob, eve):
                await asyncio.wait_for(upto(subscription, history, 40), 30)
            where = await in_log(supervisor.server.url, history)
            for row in rows:
                history.acked(0, *where[row["n"]], row)

    asyncio.run(asyncio.wait_for(run(), 110))
    verdict = check(history, wants=wants)
    print(f"{verdict}; seconds until newcomers had a channel: {waited}")
    assert verdict.sound, str(verdict)
    assert waited["while it hands over"] <= LIMIT_S
