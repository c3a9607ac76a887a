"""Every kind of plan, live: demand changes, the plan follows by itself, and everything travels as it says.

Twenty-four subscribers, each with an edge of its own; statistics of the running log; `narrowcast adapt` beside it. Half
of them change their minds, and a plan for what they want now comes into force without a word from anybody. Nothing
is missed, repeated or wrong; what is delivered comes by the planned channels; what arrives is what the plan prices.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import narrowcast as nc
from adapt.plain_statistics import PlainStatistics
from history import History, check
from narrowcast.adapt import timeline
from narrowcast.deliver.client.connect import Connection, Subscription, connect
from narrowcast.deliver.parts import records
from narrowcast.deliver.processes.backbone import Backbone, backbone
from narrowcast.deliver.processes.supervise import brokers_of, local_system
from narrowcast.deliver.processes.system import System
from narrowcast.deliver.transport.dds.config import DdsSettings
from system.stories import KINDS, PEOPLE, Kind
from system.test_runtime import in_log, point, running

RATE = 150  # messages a second


class Live:
    """Who wants what in one running system, what was sent, and what came."""

    def __init__(self, kind: Kind, base: Backbone, publisher: Connection, edges: list[Connection]) -> None:
        self.kind, self.base, self.publisher, self.edges = kind, base, publisher, edges
        self.history, self.later, self.rows = History(), False, list[dict[str, Any]]()
        self.people: dict[int, Subscription] = {}
        self.tasks: list[asyncio.Task[None]] = []
        self.links: dict[str, int] = {}  # by broker: messages to others

    async def subscribe(self, person: int) -> None:
        name = f"p{person}{'b' if self.later else ''}"
        edge = self.edges[person]
        found = await edge.subscribe(self.kind.profile(person, self.later), name=name).ready(60)
        self.history.subscribed(name, found.profile, {shard: point(at) for shard, at in found.start.items()})
        self.people[person] = found
        self.tasks.append(asyncio.ensure_future(self._collect(found)))

    async def _collect(self, subscription: Subscription) -> None:
        async for batch in subscription:
            assert batch.gap is None
            for at, row in zip(batch.places, batch, strict=True):
                self.history.delivered(subscription.name, batch.shard, *point(at), row)

    async def change(self) -> None:
        """Whoever wants something else now leaves and comes again."""
        self.later = True
        changed = [p for p in range(PEOPLE) if self.kind.profile(p, True) != self.kind.profile(p, False)]
        for person in changed:
            left = self.people.pop(person)
            self.history.ended(left.name)
            await left.close()
        await asyncio.gather(*map(self.subscribe, changed))

    def profiles(self) -> dict[str, str]:
        return {each.name: each.profile for each in self.people.values()}

    async def publish(self, stop: asyncio.Event) -> None:
        begin, first = time.monotonic(), len(self.rows)
        while not stop.is_set():
            n = len(self.rows)
            due = min(100, int((time.monotonic() - begin) * RATE) - (n - first))
            if due < 5:
                await asyncio.sleep(0.02)
                continue
            rows = [self.kind.row(k, self.later) for k in range(n, n + due)]
            await self.publisher.publish(rows)
            self.rows += rows

    async def keep_statistics(self, kept: PlainStatistics) -> None:
        while True:
            while entries := (await self.base.log.read(0, kept.at, most=512)).entries:
                kept.take(entries, time.time())
            kept.write(self.profiles(), time.time())
            await asyncio.sleep(1.0)

    def heard(self, data: bytes) -> None:
        told = json.loads(data)
        if told["role"] == "broker":
            self.links[told["name"]] = told["counts"].get("messages to brokers", 0)

    async def covered(self) -> None:
        """Until the plan in force carries what everybody wants."""
        for edge in self.edges:
            part: Any = edge._edge.part if edge._edge else None
            while not all(
                part.epoch["current"] in reader.taken
                for own in part.subscriptions.values()
                for reader in own.readers.values()
            ):
                await asyncio.sleep(0.05)

    async def received(self) -> int:
        """Messages that arrived so far at edges, or on links between brokers, once that does not change any more."""
        last = -1
        while (now := self._received()) != last:
            last = now
            await asyncio.sleep(1.6)
        return now

    def _received(self) -> int:
        if self.kind.gateways:
            return sum(self.links.values())
        return sum(edge._edge.counts["messages arrived"] for edge in self.edges if edge._edge)  # type: ignore[union-attr]

    async def plan_in_force(self) -> Path | None:
        """The folder of the plan that was taken over from adapt, if one was."""
        data = (await self.base.registry.get(records.EPOCH)).data
        offer = None if data is None else records.unpack(data).get("offer")
        return None if offer is None else Path(offer["folder"])

    def ways(self) -> Counter[str]:
        return sum((Counter(edge.ways) for edge in self.edges), Counter())


def adapting(local: System, kind: Kind, snapshots: Path | None) -> subprocess.Popen[bytes]:
    """The command itself."""
    section = replace(kind.adapt, schema=kind.schema)
    (local.folder / "adapt.toml").write_text(replace(local, adapt=section).to_toml())
    command = [sys.executable, "-m", "narrowcast.cli", "adapt", "--system", str(local.folder / "adapt.toml")]
    given = [] if snapshots is None else ["--snapshots", str(snapshots)]
    with (local.folder / "adapt.log").open("ab") as out:
        return subprocess.Popen([*command, *given], stdout=out, stderr=out)


async def until(true: Callable[[], Awaitable[Any]], seconds: float, why: Callable[[], str]) -> None:
    end = time.monotonic() + seconds
    while not await true():
        assert time.monotonic() < end, why()
        await asyncio.sleep(0.1)


async def story(
    live: Live, local: System, process: list[subprocess.Popen[bytes]], snapshots: Path | None, seconds: float
) -> Any:
    """The whole of it; what was measured under the plan that came by itself."""
    kind, stop = live.kind, asyncio.Event()

    def said() -> str:
        return f"{timeline.read(local.folder / 'adapt')[-3:]}\n{(local.folder / 'adapt.log').read_text()}"

    async def looked() -> bool:
        assert process[0].poll() is None, said()
        return bool(timeline.read(local.folder / "adapt"))

    await asyncio.gather(*map(live.subscribe, range(PEOPLE)))
    await asyncio.wait_for(live.covered(), 60)
    before = live.ways()
    publishing = asyncio.ensure_future(live.publish(stop))
    background = [publishing]
    if snapshots is not None:
        kept = PlainStatistics(snapshots, kind.key, 5.0, kind.wants)
        background.append(asyncio.ensure_future(live.keep_statistics(kept)))
    process.append(adapting(local, kind, snapshots))
    try:
        await until(looked, 200, said)
        await asyncio.sleep(seconds)
        assert await live.plan_in_force() is None, "the plan moved before demand did"
        await live.change()
        await until(live.plan_in_force, 120, said)
        await asyncio.sleep(seconds)
        stop.set()
        await publishing
        process[0].terminate()
        await asyncio.wait_for(live.covered(), 30)
        # A stretch under one plan.
        folder, first = await live.plan_in_force(), len(live.rows)
        counted = await live.received()
        stop.clear()
        publishing = asyncio.ensure_future(live.publish(stop))
        await asyncio.sleep(seconds)
        stop.set()
        await publishing
        counted = await live.received() - counted
        assert folder is not None
        assert folder == await live.plan_in_force()
        priced = kind.priced(nc.load(folder), live.profiles(), live.rows[first:])
        return counted, priced, live.ways() - before
    finally:
        stop.set()
        for task in background:
            task.cancel()


def trial(tmp_path: Path, name: str, domain: int, *, seconds: float = 6.0, spark: bool = False) -> None:
    """`spark`: with its statistics in place of the test's, for plans that have no flow key."""
    kind = KINDS[name]
    plan = kind.plan(tmp_path / "plan")
    on = {"brokers": brokers_of(nc.load(plan)), "multicast": None} if kind.gateways else {
        "multicast": DdsSettings(domain=domain, groups=12)  # a socket joins 20, and all edges here share one
    }  # fmt: skip
    key = () if spark else (kind.key,)
    local = local_system(tmp_path / "data", plan, key=key, **on)  # type: ignore[arg-type]
    process: list[subprocess.Popen[bytes]] = []

    async def run() -> tuple[Live, Any]:
        async with AsyncExitStack() as stack:
            supervisor = await stack.enter_async_context(running(local, sync="2m"))
            publisher = await stack.enter_async_context(connect(local.folder))
            base = await backbone(supervisor.server.url, name="test")
            stack.push_async_callback(base.close)
            edges = [
                await stack.enter_async_context(connect(local.folder, gateway=kind.gateway(p))) for p in range(PEOPLE)
            ]
            live = Live(kind, base, publisher, edges)
            await base.listen_statistics(live.heard)
            try:
                measured = await story(live, local, process, None if spark else tmp_path / "snapshots", seconds)
                where = await asyncio.wait_for(in_log(supervisor.server.url, live.history), 60)
                for row in live.rows:
                    live.history.acked(0, *where[row["n"]], row)
                last = max(where.values())
                async with asyncio.timeout(30):
                    while not all(point(each.position.get(0, 0)) >= last for each in live.people.values()):
                        await asyncio.sleep(0.05)
            finally:
                for task in live.tasks:
                    task.cancel()
            return live, measured

    try:
        live, (received, priced, ways) = asyncio.run(run())
    finally:
        for each in process:
            each.terminate()
            with suppress(subprocess.TimeoutExpired):
                each.wait(15)
    verdict = check(live.history, wants=kind.wants)
    by_plan = (ways["channel"] + ways["unicast"]) / sum(ways.values())
    print(f"{name}: {len(live.rows)} messages, {verdict}; {by_plan:.1%} by the plan {dict(ways)}; ", end="")
    print(f"{received} received for {priced:.0f} priced ({received / priced - 1:+.1%})")
    assert verdict.sound, str(verdict)
    assert by_plan >= 0.95
    assert abs(received / priced - 1) <= 0.05


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(180)
def test_filters_follow_demand_by_themselves_and_all_of_it_travels_as_priced(tmp_path: Path) -> None:
    trial(tmp_path, "filters", domain=149, seconds=2.0)


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.timeout(500)
@pytest.mark.parametrize("name", ["semantic", "queries"])
def test_plans_by_content_follow_the_statistics_that_spark_keeps(name: str, tmp_path: Path) -> None:
    trial(tmp_path, name, domain=156 + list(KINDS).index(name), seconds=10.0, spark=True)


@pytest.mark.nightly
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", KINDS)
def test_the_plan_follows_demand_by_itself_and_all_of_it_travels_as_priced(name: str, tmp_path: Path) -> None:
    trial(tmp_path, name, domain=150 + list(KINDS).index(name))
