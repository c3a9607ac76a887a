"""Adapting for real: half of the subscribers change their minds while a thousand messages a second flow."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adapt.plain_statistics import PlainStatistics
from history import History, check
from narrowcast.adapt import timeline
from narrowcast.deliver.client.connect import Connection, Subscription, connect
from narrowcast.deliver.parts import records
from narrowcast.deliver.processes.backbone import Backbone, backbone
from narrowcast.deliver.processes.supervise import local_system
from narrowcast.deliver.processes.system import AdaptSection, System
from narrowcast.deliver.transport.dds.config import DdsSettings
from narrowcast.model import Demand, Interest
from narrowcast.model import snapshot as snapshots
from narrowcast.model.folder import write_tables
from narrowcast.plans.channels import api as channels
from narrowcast.plans.channels.aggregation import PRICES, RunningPrices, write_prices
from narrowcast.plans.verbs import certify, load
from system.test_runtime import in_log, point, running

SYMBOLS = [f"S{k:02d}" for k in range(24)]
PEOPLE, EDGES = 12, 3
LIMIT_S = 60.0
PRICED = RunningPrices(3e-7, 1e-7, h=1.0, unexplained=0.1, errors=(1e-8, 1e-8), n_samples=60)


def wish(person: int, later: bool) -> tuple[str, ...]:
    """Six symbols; at first neighbours share them, later the second half of the people wants others."""
    first = 6 * (person % 4) if not later or person < PEOPLE // 2 else 6 * (person % 4) + 3
    return tuple(SYMBOLS[(first + (4 if later and person >= PEOPLE // 2 else 1) * k) % 24] for k in range(6))


def profile_of(symbols: tuple[str, ...]) -> str:
    return f"symbol IN ({', '.join(repr(s) for s in sorted(symbols))})"


def wants(profile: str, row: Mapping[str, Any]) -> bool:
    return f"'{row['symbol']}'" in profile


def make_plan(folder: Path) -> Path:
    pairs = [(SYMBOLS.index(s), person) for person in range(PEOPLE) for s in wish(person, later=False)]
    flows, users = zip(*pairs, strict=True)
    names = [f"p{person}" for person in range(PEOPLE)]
    interest = Interest.from_pairs(flows, users, [40.0] * 24, flow_names=SYMBOLS, user_names=names)
    demand = Demand(interest, key=("symbol",))
    return write_tables(certify(channels.plan(demand, groups=4, sessions=8, method="gf").to_tables()), folder)


class People:
    """Subscribers of the test's own process, each noting down what it gets."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.now: dict[int, Subscription] = {}
        self.tasks: list[asyncio.Task[None]] = []

    async def subscribe(self, connection: Connection, person: int, *, later: bool) -> None:
        name = f"p{person}{'b' if later else ''}"
        found = await connection.subscribe(profile_of(wish(person, later)), name=name).ready(30)
        self.history.subscribed(name, found.profile, {shard: point(at) for shard, at in found.start.items()})
        self.now[person] = found
        self.tasks.append(asyncio.ensure_future(self._collect(found)))

    async def _collect(self, subscription: Subscription) -> None:
        async for batch in subscription:
            assert batch.gap is None
            for at, row in zip(batch.places, batch, strict=True):
                self.history.delivered(subscription.name, batch.shard, *point(at), row)

    async def leave(self, person: int) -> None:
        left = self.now.pop(person)
        self.history.ended(left.name)
        await left.close()

    def profiles(self) -> dict[str, str]:
        return {each.name: each.profile for each in self.now.values()}

    async def caught_up(self, last: tuple[int, int]) -> None:
        while not all(point(each.position.get(0, 0)) >= last for each in self.now.values()):
            await asyncio.sleep(0.1)


async def publish(connection: Connection, acked: list[int], stop: asyncio.Event) -> None:
    """A thousand a second, as far as the machine goes along."""
    begin = time.monotonic()
    while not stop.is_set():
        behind = int((time.monotonic() - begin) * 1000) - len(acked)
        if behind < 50:
            await asyncio.sleep(0.02)
            continue
        n = len(acked)
        rows = [{"symbol": SYMBOLS[k % 24], "n": k} for k in range(n, n + min(behind, 200))]
        await connection.publish(rows)
        acked.extend(row["n"] for row in rows)


async def keep_statistics(base: Backbone, kept: PlainStatistics, people: People) -> None:
    """A snapshot a second."""
    while True:
        while entries := (await base.log.read(0, kept.at, most=512)).entries:
            kept.take(entries, time.time())
        kept.write(people.profiles(), time.time())
        await asyncio.sleep(1.0)


async def watch_statistics(out: Path, shown: list[float]) -> None:
    """`shown` gets the times of the snapshots that show a changed wish."""
    number = -1
    while True:
        found = await asyncio.to_thread(snapshots.latest, out, after=number)
        if found is not None:
            number = found.number
            if any(name.endswith("b") for name in found.interest["subscriber"].to_pylist()):
                shown.append(found.written_at)
        await asyncio.sleep(0.2)


async def moved(base: Backbone) -> float:
    """When another plan has come into force."""
    while True:
        data = (await base.registry.get(records.EPOCH)).data
        if data is not None and records.unpack(data).get("offer"):
            return time.time()
        await asyncio.sleep(0.1)


def adapting(local: System, plain: Path | None) -> subprocess.Popen[bytes]:
    """The command itself, on statistics of this test or with Spark."""
    system = replace(local, adapt=AdaptSection(horizon=120, every=2, half_life=5))
    (local.folder / "adapt.toml").write_text(system.to_toml())
    command = [sys.executable, "-m", "narrowcast.cli", "adapt", "--config", str(local.folder / "adapt.toml")]
    with (local.folder / "adapt.log").open("ab") as out:
        given = [] if plain is None else ["--snapshots", str(plain)]
        return subprocess.Popen([*command, *given], stdout=out, stderr=out)


async def begun(process: subprocess.Popen[bytes], folder: Path, seconds: float) -> None:
    """Until the first look is in the timeline."""
    async with asyncio.timeout(seconds):
        while not timeline.read(folder):
            assert process.poll() is None, (folder.parent / "adapt.log").read_text()
            await asyncio.sleep(0.2)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_half_of_the_subscribers_change_and_the_plan_follows_without_a_message_missed_or_repeated(
    tmp_path: Path,
) -> None:
    trial(tmp_path, tmp_path / "snapshots", domain=66)


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.timeout(900)
def test_the_same_with_the_statistics_that_spark_keeps(tmp_path: Path) -> None:
    trial(tmp_path, None, domain=67)


def trial(tmp_path: Path, plain: Path | None, domain: int) -> None:
    """The whole story; `plain` is where this test writes statistics itself."""
    local = local_system(
        tmp_path / "data", make_plan(tmp_path / "plan"), key=("symbol",), multicast=DdsSettings(domain=domain)
    )
    history, acked, shown = History(), [], []
    people = People(history)
    process: list[subprocess.Popen[bytes]] = []

    async def run() -> float:
        async with running(local, sync="2m") as supervisor, connect(local.folder) as publisher:
            edges = [connect(local.folder) for _ in range(EDGES)]
            base = await backbone(supervisor.server.url, name="test")
            background: list[asyncio.Task[Any]] = []
            stop = asyncio.Event()
            try:
                for edge in edges:
                    await edge.__aenter__()
                for person in range(PEOPLE):
                    await people.subscribe(edges[person % EDGES], person, later=False)
                background.append(asyncio.ensure_future(publish(publisher, acked, stop)))
                if plain is not None:
                    kept = PlainStatistics(plain, "symbol", 5.0, wants)
                    background.append(asyncio.ensure_future(keep_statistics(base, kept, people)))
                process.append(adapting(local, plain))
                await begun(process[0], local.folder / "adapt", 60 if plain else 300)
                out = plain or local.folder / "adapt" / "statistics" / "snapshots"
                background.append(asyncio.ensure_future(watch_statistics(out, shown)))
                write_prices(PRICED, local.folder / PRICES)  # as `calibrate --system` does, while it runs
                await asyncio.sleep(4)
                assert not any(row["replanned"] for row in timeline.read(local.folder / "adapt"))
                for person in range(PEOPLE // 2, PEOPLE):
                    await people.leave(person)
                    await people.subscribe(edges[person % EDGES], person, later=True)
                at = await asyncio.wait_for(moved(base), LIMIT_S + 30)
                await asyncio.sleep(3)  # under the new plan
                stop.set()
                await asyncio.wait_for(background[0], 30)
                where = await asyncio.wait_for(in_log(supervisor.server.url, history), 60)
                for n in acked:
                    history.acked(0, *where.get(n, (0, n)), {"symbol": SYMBOLS[n % 24], "n": n})
                await asyncio.wait_for(people.caught_up(max(where.values())), 60)
                return at
            finally:
                stop.set()
                for task in (*background, *people.tasks):
                    task.cancel()
                for edge in edges:
                    await edge.__aexit__(None, None, None)
                await base.close()

    try:
        at = asyncio.run(run())
    finally:
        for each in process:
            each.terminate()
            try:
                each.wait(15)
            except subprocess.TimeoutExpired:
                each.kill()
    verdict = check(history, wants=wants)
    assert verdict.sound, str(verdict)
    rows = timeline.read(local.folder / "adapt")
    (replanned, *_) = [row for row in rows if row["replanned"]]
    print(f"{len(acked)} messages; {verdict}; {json.dumps(replanned)}")
    print(f"moved {at - shown[0]:.1f} s after the statistics showed it")
    assert at - shown[0] < LIMIT_S
    assert replanned["now"] < replanned["kept"]
    (installed, *_) = sorted((local.folder / "adapt" / "plans").iterdir())
    made = load(installed).parameters
    assert (made["alpha"], made["beta"]) == pytest.approx((1.5, 0.5)), "the plan was made with other prices"
    assert len(acked) > 5000
