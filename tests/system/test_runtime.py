"""The whole thing for real: processes, sockets, disk; each role killed in turn; judged by the history checker."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

from history import History, check
from narrowcast import Topology
from narrowcast.deliver.client.connect import Connection, Subscription, connect
from narrowcast.deliver.parts.edge import Edge
from narrowcast.deliver.processes.backbone import backbone
from narrowcast.deliver.processes.supervise import Supervisor, brokers_of, local_system
from narrowcast.deliver.processes.system import System
from narrowcast.deliver.transport.dds.config import DdsSettings
from narrowcast.deliver.wire import Batch, bare_of, decode_entry, index_of, sequence_of
from narrowcast.model import Demand, Interest, Tree
from narrowcast.model.folder import write_tables
from narrowcast.plans.channels import api as channels
from narrowcast.plans.filters.result import TreeDemand, placed
from narrowcast.plans.semantic import api as semantic
from narrowcast.plans.verbs import load

T = TypeVar("T")
SYMBOLS = ["IBM", "MSFT", "GE", "HP"]
WISHES: dict[str, Callable[[dict[str, Any]], bool]] = {
    "symbol = 'IBM'": lambda m: m["symbol"] == "IBM",
    "symbol IN ('GE', 'MSFT') AND price > 50": lambda m: m["symbol"] in ("GE", "MSFT") and m["price"] > 50,
    "price < 20": lambda m: m["price"] < 20,
}
EDGES = {f"desk-{k}": profile for k, profile in enumerate(WISHES)}


def message(n: int) -> dict[str, Any]:
    return {"symbol": SYMBOLS[n % 4], "price": n * 7 % 100, "n": n}


def within(work: Coroutine[Any, Any, T], seconds: float = 200.0) -> T:
    """Run to the end, or fail: a time-out by signal may be swallowed by a loop."""
    return asyncio.run(asyncio.wait_for(work, seconds))


def make_plan(folder: Path) -> Path:
    interest = Interest.from_pairs(
        [0, 1, 2, 0, 1, 2, 3], [0, 1, 1, 2, 2, 2, 2], [4.0, 3.0, 2.0, 1.0], flow_names=SYMBOLS, user_names=[*EDGES]
    )
    demand = Demand(interest, key=("symbol",))
    return write_tables(channels.plan(demand, groups=2, sessions=3, method="gf").to_tables(), folder)


class Edges:
    """Standing edges as processes of their own, each with one subscription, started again when killed."""

    def __init__(self, folder: Path, data: Path, multicast: DdsSettings) -> None:
        self.folder = folder
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        for name, profile in EDGES.items():
            (folder / f"{name}.toml").write_text(
                f'nats = "{data.resolve()}/nats.url"\n'
                f'[multicast]\ninterface = "lo"\ndomain = {multicast.domain}\n'
                f'[edge]\nname = "{name}"\nout = "out"\n[edge.subscriptions]\n{name} = "{profile}"\n'
            )

    def start(self, name: str) -> None:
        command = [
            sys.executable,
            "-m",
            "narrowcast.deliver.processes.roles",
            "edge",
            str(self.folder / f"{name}.toml"),
        ]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.processes[name].wait(10)
        self.start(name)

    def stop(self) -> None:
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()

    def lines(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / "out" / f"{name}.jsonl"
        data = path.read_bytes() if path.exists() else b""
        return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]

    async def subscribed(self) -> None:
        while not all(any(line["position"] for line in self.lines(name)) for name in EDGES):
            await asyncio.sleep(0.05)


@asynccontextmanager
async def running(local: System, sync: str = "always", listen: str = "127.0.0.1") -> AsyncIterator[Supervisor]:
    stop, supervisor = asyncio.Event(), Supervisor(local, sync=sync, listen=listen)
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


def point(place: int) -> tuple[int, int]:
    return bare_of(sequence_of(place)), index_of(place)


async def in_log(url: str, history: History) -> dict[int, tuple[int, int]]:
    """Write down what the log holds; where each message stands."""
    where: dict[int, tuple[int, int]] = {}
    base = await backbone(url, name="checker")
    try:
        entries = []
        while found := (await base.log.read(0, len(entries), most=256)).entries:
            entries += found
        for entry in entries:
            batch = decode_entry(entry.data)
            for index, payload in enumerate(batch.payloads if isinstance(batch, Batch) else ()):
                row = json.loads(payload)
                assert row["n"] not in where, f"message {row['n']} stands in the log twice"
                where[row["n"]] = (entry.sequence, index)
                history.logged(0, entry.sequence, index, row)
    finally:
        await base.close()
    return where


def judged(history: History, edges: Edges, acked: list[int], where: dict[int, tuple[int, int]]) -> None:
    for n in acked:
        history.acked(0, *where.get(n, (0, n)), message(n))
    for name, profile in EDGES.items():
        lines = edges.lines(name)
        first = next(line["position"] for line in lines if line["position"])
        history.subscribed(name, profile, {int(shard): point(at) for shard, at in first.items()})
        for line in lines:
            assert "gap" not in line
            for at, payload in line.get("messages", ()):
                history.delivered(name, 0, *point(at), json.loads(payload))


@pytest.mark.long
def test_every_role_is_killed_in_turn_and_nothing_is_missed_or_repeated(tmp_path: Path) -> None:
    multicast = DdsSettings(domain=63)
    local = local_system(tmp_path / "data", make_plan(tmp_path / "plan"), key=("symbol",), multicast=multicast)
    edges = Edges(tmp_path, local.folder, multicast)
    history = History()
    acked: list[int] = []

    async def publish(stop: asyncio.Event) -> None:
        async with connect(local.folder) as connection:
            while not stop.is_set():
                rows = [message(n) for n in range(len(acked), len(acked) + 20)]
                await connection.publish(rows)
                acked.extend(row["n"] for row in rows)
                await asyncio.sleep(0.03)

    def kill(supervisor: Supervisor, victim: str) -> None:
        history.asked.add(victim)
        if victim in EDGES:
            edges.kill(victim)
        elif victim == "nats-server":
            assert supervisor.server.process is not None
            os.kill(supervisor.server.process.pid, signal.SIGKILL)
        else:
            os.kill(supervisor.processes[victim].pid, signal.SIGKILL)
        history.fault(victim)

    async def run() -> None:
        async with running(local) as supervisor:
            for name in EDGES:
                edges.start(name)
            await asyncio.wait_for(edges.subscribed(), 30)
            stop = asyncio.Event()
            publishing = asyncio.ensure_future(publish(stop))
            await asyncio.sleep(2)
            for victim in ("source-0", "desk-0", "nats-server", "coordinator", "desk-1", "source-0"):
                kill(supervisor, victim)
                await asyncio.sleep(1.5)
            stop.set()
            await asyncio.wait_for(publishing, 30)
            where = await in_log(supervisor.server.url, history)
            last = max(where.values())
            for _ in range(600):
                if all(_position(edges, name) >= last for name in EDGES):
                    break
                await asyncio.sleep(0.1)

        judged(history, edges, acked, where)

    try:
        within(run())
    finally:
        edges.stop()
    verdict = check(history, wants=lambda profile, row: WISHES[profile](dict(row)))
    assert verdict.sound, str(verdict)
    assert verdict.counts, str(verdict)
    assert len(acked) > 300


def _position(edges: Edges, name: str) -> tuple[int, int]:
    return max((point(at) for line in edges.lines(name) for at in line["position"].values()), default=(0, 0))


@pytest.mark.long
def test_the_commands_take_a_message_from_publish_to_subscribe(tmp_path: Path) -> None:
    def narrowcast(*arguments: str, **options: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "narrowcast.cli", *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=tmp_path, **options)

    def done(process: subprocess.Popen[str], given: str | None = None) -> str:
        try:
            out, err = process.communicate(given, timeout=60)
        finally:
            process.kill()  # of no consequence to one that has ended
        assert process.returncode == 0, err
        return out

    plan = make_plan(tmp_path / "plan")
    done(narrowcast("up", str(plan), "--detach", "--domain", "64"))
    try:
        second = narrowcast("up", str(plan), "--domain", "64")
        assert second.communicate(timeout=60)[1].startswith("narrowcast: .narrowcast is in use")
        listening = narrowcast("subscribe", "symbol = 'IBM' AND price > 50", "--limit", "3")
        assert listening.stderr is not None
        assert select.select([listening.stderr], [], [], 60)[0], "it does not subscribe"
        assert listening.stderr.readline().startswith("subscribed")
        rows = [message(n) for n in range(60)]
        done(narrowcast("publish"), "".join(json.dumps(row) + "\n" for row in rows))
        got = [json.loads(line) for line in done(listening).splitlines()]
        assert got == [row for row in rows if row["symbol"] == "IBM" and row["price"] > 50][:3]
        seen = json.loads(done(narrowcast("top", "--json", "--seconds", "1")))
        assert {node["role"] for node in seen["nodes"]} >= {"source", "coordinator"}
    finally:
        done(narrowcast("down"))
    again = narrowcast("down")
    assert "nothing runs" in again.communicate(timeout=60)[1]
    assert again.returncode == 2


def test_plain_code_and_arrow_tables_do_as_well(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    local = local_system(
        tmp_path / "data", make_plan(tmp_path / "plan"), key=("symbol",), multicast=DdsSettings(domain=65)
    )

    def use() -> list[Any]:
        with connect(local.folder) as c:
            wanted = c.subscribe("price >= 3", timeout=20)
            assert c.publish(pa.table({"symbol": ["IBM"] * 5, "price": list(range(5))})) == 5
            batch = next(wanted)
            position = wanted.position
            wanted.close()
            c.publish({"symbol": "new", "price": 9})
            later = next(c.subscribe("price >= 3", position=position, timeout=20))
            return [batch.arrow().to_pylist(), list(later)]

    async def run() -> list[Any]:
        async with running(local):
            return await asyncio.to_thread(use)

    first, later = within(run())
    assert first == [{"symbol": "IBM", "price": 3}, {"symbol": "IBM", "price": 4}]
    assert later == [{"symbol": "new", "price": 9}]


@pytest.mark.long
def test_an_overlay_of_brokers_carries_frames_and_its_death_costs_nothing(tmp_path: Path) -> None:
    """A filtered tree: the root thins out what goes to each side; then all brokers are killed under traffic."""
    tree = Tree([-1, 0, 0], names=["hub", "left", "right"])
    placed(TreeDemand(tree, np.array([2.0, 1.0, 1.0])), [0], {"objective": "traffic", "k": 1}).save(tmp_path / "plan")
    local = local_system(
        tmp_path / "data", tmp_path / "plan", multicast=None, brokers=brokers_of(load(tmp_path / "plan"))
    )
    assert set(local.overlay.brokers) == {"hub", "left", "right"}

    async def take(subscription: Subscription, upto: int) -> list[int]:
        got: list[int] = []
        async for batch in subscription:
            got += [row["n"] for row in batch]
            if got and got[-1] >= upto:
                return got
        raise AssertionError

    async def run() -> None:
        async with running(local) as supervisor, connect(local.folder) as publisher:
            left, right = (connect(local.folder, gateway=name) for name in ("left", "right"))
            async with left, right:
                ibm = await left.subscribe("symbol = 'IBM'").ready()
                cheap = await right.subscribe("price < 20").ready()
                for connection in (left, right):
                    part = connection._edge.part if connection._edge else None
                    assert isinstance(part, Edge)
                    readers = [each for own in part.subscriptions.values() for each in own.readers.values()]
                    while not all(each.taken for each in readers):
                        await asyncio.sleep(0.05)
                await asyncio.sleep(3)  # attached, and the plan is in force
                begun = [
                    connection._edge.counts["messages arrived"] for connection in (left, right) if connection._edge
                ]
                n = 0
                while n < 3000:
                    await publisher.publish([message(n + k) for k in range(20)])
                    n += 20
                    await asyncio.sleep(0.02)
                    if n == 1500:
                        os.kill(supervisor.processes["brokers"].pid, signal.SIGKILL)
                wanted = [
                    [k for k in range(n) if message(k)["symbol"] == "IBM"],
                    [k for k in range(n) if k * 7 % 100 < 20],
                ]
                got = [await take(ibm, wanted[0][-1]), await take(cheap, wanted[1][-1])]
                assert got == wanted
                ends = [connection._edge.counts["messages arrived"] for connection in (left, right) if connection._edge]
                arrived = [end - begin for begin, end in zip(begun, ends, strict=True)]
                assert all(count > 0 for count in arrived), "nothing came through the brokers"
                assert arrived[0] <= len(wanted[0]), "the hub did not filter"

    within(run())


def test_a_plan_of_search_reaches_every_gateway_by_real_brokers(tmp_path: Path) -> None:
    """Channels by audience: some messages are wanted at one gateway, some at both, some nowhere."""
    pa = pytest.importorskip("pyarrow")
    topology = Topology([(0, 1), (1, 2), (1, 3)], names=["hub", "mid", "left", "right"])
    wishes = ["symbol = 'IBM'", "price < 20"]
    window = pa.Table.from_pylist([message(n) for n in range(100)])
    semantic.plan(topology, wishes, [(0, 2), (1, 3)], window, sources=0).save(tmp_path / "plan")
    local = local_system(
        tmp_path / "data", tmp_path / "plan", multicast=None, brokers=brokers_of(load(tmp_path / "plan"))
    )

    async def covered(connection: Connection, name: str) -> None:
        assert connection._edge is not None
        part = connection._edge.part
        assert isinstance(part, Edge)
        while not any(name in plan.taken for plan in part.plans.values()):
            await asyncio.sleep(0.05)

    async def run() -> None:
        async with running(local), connect(local.folder) as publisher:
            ends = [connect(local.folder, gateway=name) for name in ("left", "right")]
            async with ends[0], ends[1]:
                subscriptions = [await end.subscribe(wish).ready(30) for end, wish in zip(ends, wishes, strict=True)]
                for end, subscription in zip(ends, subscriptions, strict=True):
                    await asyncio.wait_for(covered(end, subscription.name), 30)
                await asyncio.sleep(3)  # attached, and the plan is in force
                for n in range(0, 1000, 20):
                    await publisher.publish([message(n + k) for k in range(20)])
                    await asyncio.sleep(0.01)
                for end, subscription, wish in zip(ends, subscriptions, wishes, strict=True):
                    due = [message(n) for n in range(1000) if WISHES[wish](message(n))]
                    got: list[dict[str, Any]] = []
                    async for batch in subscription:
                        got += batch
                        if len(got) >= len(due):
                            break
                    assert got == due
                    assert end._edge is not None
                    assert end._edge.counts["messages arrived"] > len(due) / 4, "it did not come by the brokers"
                    assert end._edge.counts["messages arrived"] <= len(due), "it got what is wanted elsewhere only"

    within(run(), 120)
