"""The driver on the memory transport: effects in order, malformed frames counted, a failed engine survived."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from itertools import pairwise
from typing import Any

import pytest

from memory import MemoryCarrier, MemoryLog, MemoryNetwork, MemoryRegistry
from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.coordinator import Coordinator, CoordinatorSettings
from narrowcast.deliver.parts.edge import Edge
from narrowcast.deliver.parts.effects import Deliver, Effect, PlanWanted, Subscribed, Write
from narrowcast.deliver.parts.events import Publish, Subscribe, Tick
from narrowcast.deliver.parts.publisher import Publisher
from narrowcast.deliver.parts.relay import Unopened, glance
from narrowcast.deliver.parts.source import Source
from narrowcast.deliver.processes.drive import MOST_BUSY_S, Driver, Engines
from narrowcast.deliver.processes.outlet import Outlet
from narrowcast.deliver.processes.overview import LATENCY, SAMPLES, Overview
from narrowcast.deliver.processes.planner import FolderPlanner, with_key
from narrowcast.deliver.processes.statistics import sample_latency, snapshot
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Address, Entry, Link, Multicast, Overlay, Unicast
from narrowcast.deliver.transport.protocols import Stretch, TakeAtOnce
from narrowcast.deliver.wire import (
    END,
    Attach,
    Batch,
    Carried,
    Frame,
    Malformed,
    Marker,
    decode,
    encode,
    encode_entry,
    encode_payload,
    sequence_of,
)


def engines(log: MemoryLog, registry: MemoryRegistry, network: MemoryNetwork, node: str) -> Engines:
    carrier = MemoryCarrier(network, node)
    return Engines(log, registry, dict.fromkeys((Multicast, Unicast, Link, Overlay), carrier))


async def until(done: Any, seconds: float = 20.0) -> None:
    for _ in range(int(seconds / 0.01)):
        if done():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")


def test_a_message_goes_all_the_way_and_rubbish_is_counted() -> None:
    async def run() -> None:
        log, registry, network = MemoryLog(), MemoryRegistry(), MemoryNetwork()
        told: list[Effect] = []
        settings = CoordinatorSettings(ttl=1.0, renew=0.2, pause=0.1)
        drivers = [
            Driver(Publisher("publisher"), Engines(log, registry)),
            Driver(Source("source-0", 0), engines(log, registry, network, "source-0"), tail=0),
            Driver(Edge("desk", (0,)), engines(log, registry, network, "desk"), application=told.append),
            Driver(Coordinator("boss", (0,), settings), Engines(log, registry), planner=FolderPlanner(None)),
        ]
        for driver in drivers:
            await driver.start()
        client, source, edge, _boss = drivers
        edge.tell(Subscribe("ann", "price > 10"))
        await until(lambda: any(isinstance(effect, Subscribed) for effect in told))
        await until(lambda: source.part.in_force > 0 and edge.part.plans)
        client.tell(Publish(1, 0, tuple(encode_payload({"price": price}) for price in range(20))))
        await until(lambda: edge.part.counts["delivered"] == 9)
        payloads = [p for effect in told if isinstance(effect, Deliver) for _, p in effect.messages]
        assert payloads == [encode_payload({"price": price}) for price in range(11, 20)]
        assert edge.counts["messages arrived"] == 9, "the source sent what nobody wants, or nothing"
        edge._receive(b"rubbish, whatever it is")
        edge._receive(b"")
        assert (edge.counts["malformed magic"], edge.counts["malformed short"]) == (1, 1)
        overview = Overview()
        for now in (0.0, 2.0):
            for driver in drivers:
                overview.take(snapshot(driver), now)
        seen = overview.measured(2.0)
        assert {node["role"] for node in seen["nodes"]} == {"publisher", "source", "edge", "coordinator"}
        assert [each["subscriptions"] for each in seen["edges"]] == [1]
        for driver in drivers:
            await driver.stop()

    asyncio.run(run())


def test_heartbeats_that_stand_ready_are_heard_before_a_busy_loop_finds_silence() -> None:
    plan = Routing({1: Unicast("x")}, {"ann": (1,)}, profiles={"ann": "p > 1"}, edges={"ann": "desk"}, content={1: ""})
    ours, theirs = socket.socketpair()
    over = threading.Event()

    def beat(heartbeat: bytes) -> None:
        while not over.wait(0.1):
            theirs.sendall(heartbeat)

    async def hear(edge: Driver, size: int) -> None:
        """As from NATS: what a socket has takes a few turns of the loop."""
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            while True:
                edge._receive(await reader.readexactly(size))
        finally:
            writer.close()

    async def run() -> None:
        registry = MemoryRegistry()
        await registry.put(records.numbered(records.PLAN, 1), plan.to_bytes())
        epoch = {"term": 1, "current": 1, "next": None, "phase": "steady", "cutover": {}}
        await registry.put(records.EPOCH, records.pack(epoch))
        edge = Driver(Edge("desk", (0,)), engines(MemoryLog(), registry, MemoryNetwork(), "desk"))
        await edge.start()
        edge.tell(Subscribe("ann", "p > 1"))
        await until(lambda: edge.part.plans)
        heartbeat = edge.part.seal.pack(Frame(0, 1, 1, END, END))
        thread = threading.Thread(target=beat, args=(heartbeat,))
        thread.start()
        edge.spawn(hear(edge, len(heartbeat)))
        await asyncio.sleep(0.5)
        before = edge.part.counts["reads"]
        for _ in range(3):
            time.sleep(0.9)
            await asyncio.sleep(0.3)
        after = edge.part.counts["reads"]
        over.set()
        await asyncio.to_thread(thread.join)
        await until(lambda: edge.part.counts["reads"] > after, 2.0)  # real silence is not believed for long
        await edge.stop()
        theirs.close()
        assert after == before

    asyncio.run(run())


def test_a_part_is_told_that_a_carrier_has_more_but_not_for_ever() -> None:
    class Noting(Edge):
        def _on_tick(self, event: Tick, now: float) -> None:
            told.append((now, event.busy))
            super()._on_tick(event, now)

    told: list[tuple[float, bool]] = []

    async def run() -> None:
        edge = Driver(Noting("desk", (0,)), engines(MemoryLog(), MemoryRegistry(), MemoryNetwork(), "desk"))
        await edge.start()
        edge.tell(Subscribe("ann", "p > 1"))
        edge.engines.distinct[0].behind = True  # type: ignore[attr-defined]
        await asyncio.sleep(MOST_BUSY_S + 0.5)
        await edge.stop()

    asyncio.run(run())
    begun = next(at for at, busy in told if busy)
    assert all(busy for at, busy in told if begun < at < begun + MOST_BUSY_S - 0.1)
    assert any(not busy for at, busy in told if at > begun)


class SlowRegistry(MemoryRegistry):
    """One that takes its time with every second value; `written` says in what order and when."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds, self.asked, self.written = seconds, 0, list[tuple[float, str, bytes]]()

    async def put(self, key: str, data: bytes, *, revision: int | None = None) -> int:
        self.asked += 1
        await asyncio.sleep(self.seconds * (self.asked % 2))
        self.written.append((time.monotonic(), key, data))
        return await super().put(key, data, revision=revision)


def test_an_edge_with_many_subscriptions_shows_that_it_is_alive_while_it_registers_them() -> None:
    registry = SlowRegistry(0.1)

    async def run() -> None:
        edge = Driver(Edge("desk", (0,)), engines(MemoryLog(), registry, MemoryNetwork(), "desk"))
        await edge.start()
        for n in range(200):  # one by one they would take 10 s
            edge.tell(Subscribe(f"s{n}", f"p > {n}"))
        await until(lambda: len({key for _, key, _ in registry.written}) == 201, 3.0)
        await asyncio.sleep(2.2)
        await edge.stop()

    asyncio.run(run())
    beats = [at for at, key, _ in registry.written if key.startswith(records.NODE)]
    assert len(beats) >= 3
    assert max(after - before for before, after in pairwise(beats)) < 1.5


def test_values_of_one_key_are_written_in_the_order_asked_for() -> None:
    registry = SlowRegistry(0.01)

    async def run() -> None:
        driver = Driver(Edge("desk", (0,)), engines(MemoryLog(), registry, MemoryNetwork(), "desk"))
        await driver.start()
        for n in range(100):
            driver._carry_out(Write(n, f"sub.{n % 3}", b"%d" % n))
        await until(lambda: len([key for _, key, _ in registry.written if key.startswith("sub.")]) == 100)
        await driver.stop()

    asyncio.run(run())
    for k in range(3):
        assert [int(data) for _, key, data in registry.written if key == f"sub.{k}"] == list(range(k, 100, 3))


class StampedLog(MemoryLog):
    """One that says when it took an entry: at the beginning of time."""

    async def read(self, shard: int, after: int, *, most: int, upto: int | None = None) -> Stretch:
        found = await super().read(shard, after, most=most, upto=upto)
        entries = tuple(entry._replace(stamp="1970-01-01T00:01:00.5Z") for entry in found.entries)
        return Stretch(found.after, found.upto, entries)


def test_the_latency_of_a_message_is_from_when_the_log_took_it_until_its_frame_came() -> None:
    async def run() -> None:
        log = StampedLog()
        await log.append(0, b"one", dedup="1")
        edge = Driver(Edge("desk", (0,)), engines(log, MemoryRegistry(), MemoryNetwork(), "desk"))
        edge.heard = (0, 1, 60.52)
        await sample_latency(edge)
        assert (edge.counts[LATENCY], edge.counts[SAMPLES], edge.heard) == (20_000, 1, None)
        edge.heard = (0, 2, 60.52)  # an entry that the log does not have
        await sample_latency(edge)
        assert edge.counts[SAMPLES] == 1

    asyncio.run(run())


class SlowSource(Source):
    """One that takes its time for every entry."""

    def _take(self, entry: Entry) -> bool:
        time.sleep(0.02)
        return super()._take(entry)


def test_a_source_that_is_behind_sends_what_it_has_before_it_goes_on() -> None:
    plan = Routing({1: Unicast("x")}, {"ann": (1,)}, profiles={"ann": "p > 1"}, edges={"ann": "desk"}, content={1: ""})

    async def run() -> None:
        log, registry, network = MemoryLog(), MemoryRegistry(), MemoryNetwork()
        entries = [encode_entry(Marker(1)), *(encode_entry(Batch("c", n, (b"{}",))) for n in range(50))]
        await registry.put(records.numbered(records.PLAN, 1), plan.to_bytes())
        source = Driver(SlowSource("source-0", 0), engines(log, registry, network, "source-0"), tail=0)
        heard: list[int] = []
        carrier = MemoryCarrier(network, "desk")
        await carrier.start(lambda data: heard.append(source.part.sequence))
        await carrier.join(Unicast("x"))
        await source.start()
        await until(lambda: source.part.sequence == 0 and source.part.plans)
        await asyncio.sleep(0.1)
        for n, data in enumerate(entries):
            await log.append(0, data, dedup=str(n))
        await until(lambda: source.part.sequence == len(entries) and heard)
        assert heard[0] < 10, "the first frame came when the source was at this entry"
        await source.stop()

    asyncio.run(run())


class ToldLog(MemoryLog):
    """Its tail says nothing but what the test tells it."""

    async def tail(self, shard: int, after: int, at_once: TakeAtOnce | None = None) -> AsyncGenerator[Entry, None]:
        self.tell = at_once
        self.rest: asyncio.Queue[Entry] = asyncio.Queue()
        while True:
            yield await self.rest.get()


class QuickCarrier(MemoryCarrier):
    """Takes so many frames at once, and the others when they are waited for."""

    def __init__(self, network: MemoryNetwork, room: int) -> None:
        super().__init__(network, "source-0")
        self.room, self.ways = room, Counter[str]()

    def send_now(self, address: Address, frames: Sequence[bytes]) -> int:
        taken = list(frames[: self.room])
        self.room -= len(taken)
        self.ways["at once"] += len(taken)
        for carrier in self._network.members.get(address, {}):
            for data in taken:
                carrier._take(data)
        return len(taken)

    async def send(self, address: Address, data: bytes) -> None:
        self.ways["later"] += 1
        await super().send(address, data)


def test_frames_of_an_entry_that_comes_alone_go_at_once_and_what_has_to_wait_keeps_its_order() -> None:
    plan = Routing({1: Unicast("x")}, {"ann": (1,)}, profiles={"ann": "p > 1"}, edges={"ann": "desk"}, content={1: ""})

    def entry(n: int) -> Entry:
        return Entry(n, encode_entry(Marker(1) if n == 1 else Batch("c", n, (b"{}",))))

    async def run() -> None:
        log, registry, network = ToldLog(), MemoryRegistry(), MemoryNetwork()
        await registry.put(records.numbered(records.PLAN, 1), plan.to_bytes())
        carrier, desk, heard = QuickCarrier(network, 2), MemoryCarrier(network, "desk"), list[tuple[int, int]]()
        source = Driver(Source("source-0", 0), Engines(log, registry, {Unicast: carrier, Link: carrier}), tail=0)

        def hear(data: bytes) -> None:
            frame = decode(data)
            if isinstance(frame, Frame) and frame.messages:
                heard.append((sequence_of(frame.messages[0][0]), len(frame.messages)))

        await desk.start(hear)
        await desk.join(Unicast("x"))
        await source.start()
        await until(lambda: source.part.sequence == 0 and source.part.plans and getattr(log, "tell", None))
        await asyncio.sleep(0.05)
        assert log.tell(entry(1), False)
        assert log.tell(entry(2), False)
        assert heard == [(2, 1)], "it goes before the loop gets its turn"
        assert log.tell(entry(3), True), "more has come with it: its frame waits for company"
        assert heard == [(2, 1)]
        assert not log.tell(entry(4), False), "something waits: what follows has to wait behind it"
        log.rest.put_nowait(entry(4))
        await until(lambda: len(heard) == 3)
        carrier.room = 0
        await until(lambda: not source._lane)
        assert log.tell(entry(5), False)
        assert not log.tell(entry(6), False)
        log.rest.put_nowait(entry(6))
        await until(lambda: len(heard) == 5)
        assert [at for at, _ in heard] == [2, 3, 4, 5, 6]
        assert carrier.ways == {"at once": 1, "later": carrier.ways["later"]}
        assert source.counts["messages sent"] == 5
        await source.stop()

    asyncio.run(run())


def test_a_part_that_fails_at_an_entry_taken_at_once_fails_its_driver() -> None:
    class Failing(Source):
        def _take(self, entry: Entry) -> bool:
            raise RuntimeError("no")

    async def run() -> None:
        log, registry = ToldLog(), MemoryRegistry()
        await registry.put(records.numbered(records.PLAN, 1), Routing({}).to_bytes())
        source = Driver(Failing("source-0", 0), engines(log, registry, MemoryNetwork(), "source-0"), tail=0)
        await source.start()
        await until(lambda: source.part.sequence == 0 and getattr(log, "tell", None))
        log.tell(Entry(1, encode_entry(Marker(1))), False)
        with pytest.raises(RuntimeError, match="no"):
            await source.failed
        await source.stop()

    asyncio.run(run())


def test_a_relay_reads_the_header_only_and_passes_on_the_same_bytes() -> None:
    data = encode(Frame(1, 7, 3, 10, 99, (Carried(20, 0, b"{}"), Carried(30, 1, b'{"a":1}'))))
    frame = glance(data)
    assert isinstance(frame, Frame)
    assert isinstance(frame.messages, Unopened)
    assert (frame.channel, len(frame.messages), frame.messages.data) == (7, 2, data)
    assert tuple(frame.messages) == decode(data).messages  # type: ignore[union-attr]
    attach = Attach("desk", 3, 7)
    assert glance(encode(attach)) == attach
    assert glance(b"nonsense of some length, long enough to be one") == decode(
        b"nonsense of some length, long enough to be one"
    )
    assert glance(data[:-1] + b"?") == Malformed("checksum"), "damage is passed on"


def test_a_subscription_too_wide_for_its_hosts_memberships_goes_by_unicast() -> None:
    from narrowcast.model import Interest
    from narrowcast.plans.channels import api as channels

    names = [f"F{k}" for k in range(6)]
    interest = Interest.from_pairs(list(range(6)), list(range(6)), [1.0] * 6, flow_names=names)
    plan = channels.plan(interest, groups=6, sessions=6, method="gf")
    wanted = PlanWanted(1, 1, {"all": "price > 0", "one": "symbol = 'F0'"}, {"all": "a", "one": "b"}, {}, ("a", "b"))
    routing = FolderPlanner(with_key(plan, ["symbol"]), memberships=4)(wanted)
    assert [type(routing.addresses[c]) for c in routing.taken["all"]] == [Unicast]
    assert {type(routing.addresses[c]) for c in routing.taken["one"]} == {Multicast}
    _, ways = routing.route({"symbol": "F0", "price": 1})
    assert set(routing.taken["all"]) <= set(ways)
    planner = FolderPlanner(with_key(plan, ["symbol"]), memberships=40)
    planner(wanted)
    shares = planner.prediction["edges"]["b"]
    assert abs(sum(shares.values()) - 1) < 1e-9
    assert shares["useful"] > 0


def test_an_outlet_goes_on_where_it_was_and_drops_a_line_that_was_cut_off(tmp_path: Any) -> None:
    outlet = Outlet(tmp_path)
    assert outlet.position("ann", "price > 1") is None
    outlet(Subscribed("ann", {0: 5}))
    outlet(Deliver("ann", 0, ((7, b"{}"),), 9))
    outlet.close()
    with (tmp_path / "ann.jsonl").open("ab") as stream:
        stream.write(b'{"position":{"0":99')
    again = Outlet(tmp_path)
    assert again.position("ann", "price > 1") == {0: 9}
    assert (tmp_path / "ann.jsonl").read_bytes().endswith(b"}\n")
    assert again.position("ann", "price > 2") is None, "another wish begins anew"
    again.close()
