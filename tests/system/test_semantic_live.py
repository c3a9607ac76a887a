"""Semantic channels, live: newcomers at gateways that the plan does not know have a channel within seconds."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import narrowcast as nc
from history import History, check
from narrowcast.deliver.client.connect import Connection, Subscription, connect
from narrowcast.deliver.parts import records
from narrowcast.deliver.processes.backbone import Backbone, backbone, url_of
from narrowcast.deliver.processes.overview import Overview
from narrowcast.deliver.processes.supervise import brokers_of, local_system
from narrowcast.deliver.routing.routing import Routing
from narrowcast.workloads.overlay import overlay
from narrowcast.workloads.overlay_clients import overlay_clients
from system.test_runtime import in_log, point, running

BROKERS, KNOWN, PEOPLE, BATCH = 8, 6, 24, 240


def wish(person: int, later: bool) -> str:
    low = (person * 5 + (37 if later else 0)) % 80
    return f"x BETWEEN {low} AND {low + 19}"


def wants(profile: str, row: Mapping[str, Any]) -> bool:
    _, _, low, _, high = profile.split()
    return int(low) <= row["x"] <= int(high)


class Story:
    """Who wants what, what they got, and what the links between brokers carried."""

    def __init__(self) -> None:
        self.history, self.sent, self.carried = History(), 0, Counter[str]()
        self.people: dict[int, Subscription] = {}
        self.tasks: list[asyncio.Task[None]] = []

    async def subscribe(self, edge: Connection, person: int, *, later: bool) -> Subscription:
        name = f"p{person}{'b' if later else ''}"
        found = await edge.subscribe(wish(person, later), name=name).ready(30)
        self.history.subscribed(name, found.profile, {shard: point(at) for shard, at in found.start.items()})
        self.people[person] = found
        self.tasks.append(asyncio.ensure_future(self._collect(found)))
        return found

    async def _collect(self, subscription: Subscription) -> None:
        async for batch in subscription:
            assert batch.gap is None
            for at, row in zip(batch.places, batch, strict=True):
                self.history.delivered(subscription.name, batch.shard, *point(at), row)

    def heard(self, data: bytes) -> None:
        told = json.loads(data)
        if told["role"] == "broker":
            self.carried[told["name"]] = told["counts"].get("messages to brokers", 0)

    async def links(self) -> int:
        """What the links have carried, once every broker has told and nothing changes any more."""
        last = -1
        while (now := sum(self.carried.values())) != last or len(self.carried) < BROKERS:
            last = now
            await asyncio.sleep(1.1)
        return now

    async def publish(self, publisher: Connection) -> list[dict[str, int]]:
        rows = [{"x": n * 37 % 100, "n": n} for n in range(self.sent, self.sent + BATCH)]
        for at in range(0, BATCH, 20):
            await publisher.publish(rows[at : at + 20])
            await asyncio.sleep(0.05)
        self.sent += BATCH
        return rows


async def in_force(edges: list[Connection]) -> None:
    """Until the plan in force has channels for every subscription."""
    for edge in edges:
        part: Any = edge._edge.part if edge._edge else None
        while part is not None and not all(
            part.epoch["current"] in reader.taken
            for own in part.subscriptions.values()
            for reader in own.readers.values()
        ):
            await asyncio.sleep(0.02)


async def priced(base: Backbone, rows: list[dict[str, int]]) -> int:
    """Links that these messages travel by the plan in force."""
    epoch = records.unpack((await base.registry.get(records.EPOCH)).data or b"{}")["current"]
    routing = Routing.from_bytes((await base.registry.get(records.numbered(records.PLAN, epoch))).data or b"")
    return sum(len(routing.addresses[c].links) for row in rows for c in routing.route(row)[1])


@pytest.mark.long
@pytest.mark.timeout(180)
@pytest.mark.parametrize("method", ["search", "semcast"])
def test_newcomers_have_channels_within_five_seconds_and_all_of_it_travels_as_priced(
    tmp_path: Path, method: str
) -> None:
    ring = nc.Topology(
        [(i, (i + 1) % BROKERS) for i in range(BROKERS)] + [(0, 4)], names=[f"b{i}" for i in range(BROKERS)]
    )
    texts = [wish(person, later=False) for person in range(PEOPLE)]
    clients = [(person, person % KNOWN) for person in range(PEOPLE)]
    plan = nc.semantic.plan(ring, texts, clients, pa.table({"x": list(range(100))}), 0, method)
    plan.save(tmp_path / "plan")
    brokers = brokers_of(nc.load(tmp_path / "plan"))
    local = local_system(tmp_path / "data", tmp_path / "plan", multicast=None, brokers=brokers)
    story, ways, waited = Story(), Counter[str](), []
    measured: list[tuple[int, int]] = []

    async def run() -> None:
        async with AsyncExitStack() as stack:
            supervisor = await stack.enter_async_context(running(local, sync="2m"))
            publisher = await stack.enter_async_context(connect(local.folder))
            base = await backbone(supervisor.server.url, name="test")
            stack.push_async_callback(base.close)
            await base.listen_statistics(story.heard)
            edges = [await stack.enter_async_context(connect(local.folder, gateway=f"b{i}")) for i in range(BROKERS)]
            try:
                await asyncio.gather(
                    *(story.subscribe(edges[person % KNOWN], person, later=False) for person in range(PEOPLE))
                )
                await asyncio.wait_for(in_force(edges), 30)
                await story.publish(publisher)
                for person in range(0, PEOPLE, 4):  # some change their minds and go where the plan knows nobody
                    left = story.people.pop(person)
                    story.history.ended(left.name)
                    await left.close()
                begun = time.monotonic()
                moved = [
                    story.subscribe(edges[KNOWN + person % 2], person, later=True) for person in range(0, PEOPLE, 4)
                ]
                await asyncio.gather(*moved)
                await asyncio.wait_for(in_force(edges), 30)
                waited.append(time.monotonic() - begun)
                before = await story.links()
                rows = await story.publish(publisher)
                measured.append((await story.links() - before, await priced(base, rows)))
                where = await asyncio.wait_for(in_log(supervisor.server.url, story.history), 60)
                for n in range(story.sent):
                    story.history.acked(0, *where[n], {"x": n * 37 % 100, "n": n})
                async with asyncio.timeout(30):
                    while not all(point(s.position.get(0, 0)) >= max(where.values()) for s in story.people.values()):
                        await asyncio.sleep(0.05)
                for edge in edges:
                    ways.update(edge.ways)
            finally:
                for task in story.tasks:
                    task.cancel()

    asyncio.run(run())
    verdict = check(story.history, wants=wants)
    (carried, price), share = measured[0], ways["channel"] / sum(ways.values())
    print(f"{verdict}; {share:.1%} by channels; {carried} links for {price} priced; channels after {waited[0]:.1f} s")
    assert verdict.sound, str(verdict)
    assert waited[0] <= 5.0
    assert share >= 0.95
    assert abs(carried / price - 1) <= 0.05


CLIENTS, SENT = 400, 300


@pytest.mark.nightly
@pytest.mark.timeout(400)
@pytest.mark.parametrize("method", ["search", "semcast", "semcast-broker", "merge", "noise-merge", "central"])
def test_four_hundred_clients_with_overlapping_profiles_get_everything_by_channels(tmp_path: Path, method: str) -> None:
    """SemCast at overlap .3: planned, checked, up and delivered."""
    net = overlay(30, seed=1)
    made = overlay_clients(net, CLIENTS, overlap=0.3, messages=1500, seed=1)
    plan = nc.semantic.plan(net, made.profiles, made.clients, made.messages, made.sources, method).save(tmp_path / "p")
    assert nc.check(tmp_path / "p").sound
    rows = [{"reading": n * 617_033 % 1_000_000, "n": n} for n in range(SENT)]
    matched = nc.Matcher(made.profiles).match(pa.Table.from_pylist(rows))
    wanted: dict[int, list[int]] = {}
    for row, profile in zip(*(each.tolist() for each in matched), strict=True):
        wanted.setdefault(profile, []).append(row)
    names, newcomer = plan.broker_names, list[float]()

    got: dict[str, list[int]] = {}

    async def collect(subscription: Subscription, expected: list[int]) -> None:
        found = got[subscription.name] = []
        async for batch in subscription:
            assert batch.gap is None
            found += [row["n"] for row in batch]
            if len(found) >= len(expected):
                break

    def wrong(asked: list[tuple[Subscription, list[int]]]) -> str:
        """Whose messages are not those expected, and the first few of them."""
        found = [(each.name, got.get(each.name, []), due) for each, due in asked if got.get(each.name, []) != due]
        shown = [
            f"{name} has {len(have)} of {len(due)}, lacks {sorted({*due} - {*have})[:5]}" for name, have, due in found
        ]
        return f"{len(found)} of {len(asked)} are wrong: {'; '.join(shown[:5])}" if found else ""

    async def run(folder: Path) -> tuple[str, Counter[str], float]:
        async with AsyncExitStack() as stack:
            publisher = await stack.enter_async_context(nc.connect(folder))
            at = sorted({names[g] for _, g in made.clients.tolist()})
            edges = {g: await stack.enter_async_context(nc.connect(folder, gateway=g)) for g in at}
            begun = time.monotonic()
            asked = [
                (edges[names[g]].subscribe(made.profiles[p], name=f"c{k}"), wanted.get(p, []))
                for k, (p, g) in enumerate(made.clients.tolist())
            ]
            await asyncio.gather(*(subscription.ready(60) for subscription, _ in asked))
            await asyncio.wait_for(in_force([*edges.values()]), 120)
            waited = time.monotonic() - begun
            waiting = [asyncio.ensure_future(collect(each, expected)) for each, expected in asked if expected]
            for low in range(0, SENT, 20):
                await publisher.publish(rows[low : low + 20])
                await asyncio.sleep(0.1)
            done, late = await asyncio.wait(waiting, timeout=120)
            assert not late, wrong(asked)
            for each in done:
                each.result()
            stranger = next(name for name in names if name not in edges)  # a broker that the plan knows no client at
            edges[stranger] = await stack.enter_async_context(nc.connect(folder, gateway=stranger))
            begun = time.monotonic()
            await edges[stranger].subscribe("reading BETWEEN 100 AND 90000", name="newcomer").ready(30)
            await asyncio.wait_for(in_force([*edges.values()]), 60)
            newcomer.append(time.monotonic() - begun)
            return wrong(asked), sum((Counter(edge.ways) for edge in edges.values()), Counter()), waited

    with nc.up(tmp_path / "p", multicast=False, sync="2m") as system:
        faults, ways, waited = asyncio.run(run(system.folder))
    share = ways["channel"] / ways.total()
    print(
        f"{method}: {plan.n_channels} channels, {share:.1%} of {ways.total()} by channels, there after {waited:.1f} s"
    )
    print(f"a newcomer at a broker without clients has its channel after {newcomer[0]:.1f} s")
    assert not faults, faults
    assert newcomer[0] <= 5.0
    assert share >= 0.95


@pytest.mark.long
@pytest.mark.timeout(120)
def test_the_latency_at_an_edge_is_measured_and_stands_beside_the_bound_of_its_gateway() -> None:
    line = nc.Topology([(0, 1), (1, 2)], names=["b0", "b1", "b2"])
    clients, bounds = [(0, 1), (0, 2), (1, 2)], [7.0, 9.0, 5.0]
    plan = nc.semantic.plan(
        line, ["x > 10", "x < 50"], clients, pa.table({"x": list(range(100))}), 0, "search", latency_bound=bounds
    )
    overview, own = Overview(), list[float]()

    async def publish(publisher: Connection, seconds: float) -> None:
        for _ in range(int(seconds / 0.05)):
            await publisher.publish({"x": 60, "sent": time.time()})
            await asyncio.sleep(0.05)

    async def listen(subscription: Subscription) -> None:
        async for batch in subscription:
            own.extend(1000 * (time.time() - row["sent"]) for row in batch)

    async def run(folder: Path) -> dict[str, Any]:
        async with AsyncExitStack() as stack:
            publisher = await stack.enter_async_context(nc.connect(folder))
            edge = await stack.enter_async_context(nc.connect(folder, gateway="b2", name="desk"))
            base = await backbone(url_of(folder), name="test")
            stack.push_async_callback(base.close)
            subscription = await edge.subscribe("x > 10", name="c1").ready(30)
            await asyncio.wait_for(in_force([edge]), 30)
            listening = asyncio.ensure_future(listen(subscription))
            await base.listen_statistics(lambda data: overview.take(json.loads(data), time.monotonic()))
            await publish(publisher, 8)
            listening.cancel()
            return next(each for each in overview.measured(5)["edges"] if each["name"] == "desk")

    with nc.up(plan, multicast=False, sync="2m") as system:
        found = asyncio.run(run(system.folder))
    print(f"{found['latency_ms']:.2f} ms measured, {sum(own) / len(own):.2f} ms seen, bound {found['bound_ms']}")
    assert found["bound_ms"] == 5.0, "the strictest at its gateway"
    assert 0 < found["latency_ms"] <= max(own)
    assert found["latency_ms"] > 0.2 * sorted(own)[len(own) // 2]
