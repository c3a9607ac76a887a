"""Every kind of plan, live: demand changes, the plan follows by itself, and everything travels as it says.

The system is on one host, twenty-four subscribers, each with an edge of its own, are on three others: namespaces on a
bridge with snooping, or loopback for who is not root. Statistics of the running log; `narrowcast adapt` beside it. Half
of them change their minds, and a plan for what they want now comes into force without a word from anybody. Nothing
is missed, repeated or wrong; what is delivered comes by the planned channels; what arrives is what the plan prices.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import narrowcast as nc
from adapt.plain_statistics import PlainStatistics
from history import History, check
from narrowcast.adapt import timeline
from narrowcast.deliver.client.connect import Connection, connect
from narrowcast.deliver.parts import records
from narrowcast.deliver.processes.backbone import Backbone, backbone
from narrowcast.deliver.processes.supervise import brokers_of, local_system
from narrowcast.deliver.processes.system import System
from narrowcast.deliver.transport.dds.config import DdsSettings
from system.afar import Afar, far_end
from system.hosts import Hosts
from system.stories import KINDS, PEOPLE, Kind
from system.test_runtime import in_log, point, running

RATE = 150  # messages a second
HOSTS = 3  # with edges


class Live:
    """Who wants what in one running system, what was sent, and what came."""

    def __init__(self, kind: Kind, base: Backbone, publisher: Connection) -> None:
        self.kind, self.base, self.publisher, self.afar = kind, base, publisher, list[Afar]()
        self.history, self.later, self.rows = History(), False, list[dict[str, Any]]()
        self.people: dict[int, tuple[str, str]] = {}  # the name and the profile of each
        self.early: dict[str, list[tuple[int, int, dict[str, Any]]]] = {}  # came before it was known who that is
        self.links: dict[str, int] = {}  # by broker: messages to others

    async def subscribe(self, person: int) -> None:
        name = f"p{person}{'b' if self.later else ''}"
        wish = self.kind.profile(person, self.later)
        profile, start = await self.afar[person % HOSTS].subscribe(person, wish, name, 60)
        self.history.subscribed(name, profile, {shard: point(at) for shard, at in start.items()})
        self.people[person] = name, profile
        for shard, at, row in self.early.pop(name, ()):
            self.history.delivered(name, shard, *point(at), row)

    def told(self, name: str, shard: int, places: Sequence[int], rows: Sequence[dict[str, Any]]) -> None:
        for at, row in zip(places, rows, strict=True):
            if name in self.history.subscriptions:
                self.history.delivered(name, shard, *point(at), row)
            else:
                self.early.setdefault(name, []).append((shard, at, row))

    async def change(self) -> None:
        """Whoever wants something else now leaves and comes again."""
        self.later = True
        changed = [p for p in range(PEOPLE) if self.kind.profile(p, True) != self.kind.profile(p, False)]
        for person in changed:
            name, _ = self.people.pop(person)
            await self.afar[person % HOSTS].close(name)
            self.history.ended(name)
        await asyncio.gather(*map(self.subscribe, changed))

    def profiles(self) -> dict[str, str]:
        return dict(self.people.values())

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

    async def looks(self) -> list[dict[str, Any]]:
        return list(await asyncio.gather(*(each.look() for each in self.afar)))

    async def covered(self) -> bool:
        """Whether the plan in force carries what everybody wants."""
        return all(look["covered"] for look in await self.looks())

    async def arrived_upto(self, last: tuple[int, int]) -> bool:
        """Whether everybody has what the log holds up to there."""
        found = {name: at.get("0", 0) for look in await self.looks() for name, at in look["positions"].items()}
        return all(point(found[name]) >= last for name, _ in self.people.values())

    async def received(self) -> int:
        """Messages that arrived so far at edges, or on links between brokers, once that does not change any more."""
        last = -1
        while (now := await self._received()) != last:
            last = now
            await asyncio.sleep(1.6)
        return now

    async def _received(self) -> int:
        return sum(self.links.values() if self.kind.gateways else [look["arrived"] for look in await self.looks()])

    async def plan_in_force(self) -> Path | None:
        """The folder of the plan that was taken over from adapt, if one was."""
        data = (await self.base.registry.get(records.EPOCH)).data
        offer = None if data is None else records.unpack(data).get("offer")
        return None if offer is None else Path(offer["folder"])

    async def ways(self) -> Counter[str]:
        return sum((Counter(edge) for look in await self.looks() for edge in look["ways"]), Counter())


def adapting(local: System, kind: Kind, snapshots: Path | None) -> subprocess.Popen[bytes]:
    """The command itself."""
    section = replace(kind.adapt, schema=kind.schema)
    (local.folder / "adapt.toml").write_text(replace(local, adapt=section).to_toml())
    command = [sys.executable, "-m", "narrowcast.cli", "adapt", "--system", str(local.folder / "adapt.toml")]
    given = [] if snapshots is None else ["--snapshots", str(snapshots)]
    with (local.folder / "adapt.log").open("ab") as out:
        return subprocess.Popen([*command, *given], stdout=out, stderr=out)


async def until(true: Callable[[], Awaitable[Any]], seconds: float, why: Callable[[], str] = str) -> None:
    end = time.monotonic() + seconds
    while not await true():
        assert time.monotonic() < end, why()
        await asyncio.sleep(0.1)


class Place:
    """Where it all runs: `hosts`, of which the system has the first, or this machine alone."""

    def __init__(self, hosts: Hosts | None) -> None:
        self.hosts = hosts
        self.interface = "lo" if hosts is None else "eth0"
        self.address = "127.0.0.1" if hosts is None else hosts.address(0)

    def at_host(self, command: Sequence[str], host: int) -> Sequence[str]:
        return command if self.hosts is None else self.hosts.command(command, host)

    def multicast_packets(self) -> list[int]:
        """That came to each host of edges so far."""
        return [] if self.hosts is None else [self.hosts.multicast_packets(1 + k) for k in range(HOSTS)]


async def story(
    live: Live,
    local: System,
    place: Place,
    process: list[subprocess.Popen[bytes]],
    snapshots: Path | None,
    seconds: float,
) -> Any:
    """The whole of it; what was measured under the plan that came by itself."""
    kind, stop = live.kind, asyncio.Event()

    def said() -> str:
        return f"{timeline.read(local.folder / 'adapt')[-3:]}\n{(local.folder / 'adapt.log').read_text()}"

    async def looked() -> bool:
        assert process[0].poll() is None, said()
        return bool(timeline.read(local.folder / "adapt"))

    await asyncio.gather(*map(live.subscribe, range(PEOPLE)))
    await until(live.covered, 60)
    before = await live.ways()
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
        await until(live.covered, 30)
        # A stretch under one plan.
        folder, first = await live.plan_in_force(), len(live.rows)
        counted, packets = await live.received(), place.multicast_packets()
        stop.clear()
        publishing = asyncio.ensure_future(live.publish(stop))
        await asyncio.sleep(seconds)
        stop.set()
        await publishing
        counted = await live.received() - counted
        packets = [now - then for now, then in zip(place.multicast_packets(), packets, strict=True)]
        assert folder is not None
        assert folder == await live.plan_in_force()
        priced = kind.priced(nc.load(folder), live.profiles(), live.rows[first:])
        return counted, priced, await live.ways() - before, packets
    finally:
        stop.set()
        for task in background:
            task.cancel()


def trial(tmp_path: Path, name: str, domain: int, *, seconds: float = 6.0, spark: bool = False) -> None:
    """`spark`: with its statistics in place of the test's, for plans that have no flow key."""
    with ExitStack() as stack:
        hosts = stack.enter_context(Hosts(1 + HOSTS)) if os.geteuid() == 0 else None
        if hosts is not None:
            stack.enter_context(hosts.inside(0))
        trial_at(Place(hosts), tmp_path, name, domain, seconds, spark)


def trial_at(place: Place, tmp_path: Path, name: str, domain: int, seconds: float, spark: bool) -> None:
    kind = KINDS[name]
    plan = kind.plan(tmp_path / "plan")
    settings = DdsSettings(place.interface, domain, groups=12)  # a socket joins 20, and all edges of a host share one
    on: dict[str, Any] = {"multicast": settings}
    if kind.gateways:
        brokers = {name: at.replace("127.0.0.1", place.address) for name, at in brokers_of(nc.load(plan)).items()}
        on = {"brokers": brokers, "multicast": None}
    local = local_system(tmp_path / "data", plan, key=() if spark else (kind.key,), **on)
    process: list[subprocess.Popen[bytes]] = []

    async def run() -> tuple[Live, Any]:
        async with AsyncExitStack() as stack:
            supervisor = await stack.enter_async_context(running(local, sync="2m", listen=place.address))
            publisher = await stack.enter_async_context(connect(local.folder))
            base = await backbone(supervisor.server.url, name="test")
            stack.push_async_callback(base.close)
            live = Live(kind, base, publisher)
            for k in range(HOSTS):
                command = far_end(local.folder, {p: kind.gateway(p) for p in range(k, PEOPLE, HOSTS)})
                live.afar.append(await stack.enter_async_context(Afar(place.at_host(command, 1 + k), live.told)))
            await base.listen_statistics(live.heard)
            measured = await story(live, local, place, process, None if spark else tmp_path / "snapshots", seconds)
            where = await asyncio.wait_for(in_log(supervisor.server.url, live.history), 60)
            for row in live.rows:
                live.history.acked(0, *where[row["n"]], row)
            await until(lambda: live.arrived_upto(max(where.values())), 30)
            return live, measured

    try:
        live, (received, priced, ways, packets) = asyncio.run(run())
    finally:
        for each in process:
            each.terminate()
            with suppress(subprocess.TimeoutExpired):
                each.wait(15)
    verdict = check(live.history, wants=kind.wants)
    by_plan = (ways["channel"] + ways["unicast"]) / sum(ways.values())
    print(f"{name}: {len(live.rows)} messages, {verdict}; {by_plan:.1%} by the plan {dict(ways)}; ", end="")
    print(f"{received} received for {priced:.0f} priced ({received / priced - 1:+.1%}); {packets} multicast packets")
    assert verdict.sound, str(verdict)
    assert by_plan >= 0.95
    assert abs(received / priced - 1) <= 0.05
    assert kind.gateways or all(each > 100 for each in packets), "a host got nothing by multicast through its cable"


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
