"""End to end: publish → log → match → carrier → exact filter → subscriber, and what one would use instead, in one run.

    python benchmarks/speed/delivery.py --quick                     # some minutes
    python benchmarks/speed/delivery.py --rounds 5 --json found.json
    python benchmarks/speed/delivery.py --table found.json          # the same as Markdown
    python benchmarks/speed/delivery.py --table docs/results/delivery.json --into docs/speed.md

Each subscriber wants half of 16 symbols, messages are of 200 bytes. Up to 8 processes hold the subscribers, each with a
connection per subscriber for the peers; subscriptions of one process share narrowcast's edge, and `shared edge` is one
`narrowcast edge` for all of those processes. The peers keep nothing but JetStream, whose log goes to disk as ours does.

*Latency* is from before the publish to the subscriber's loop, on one clock, at fixed rates. *Sustained* publishes as
fast as it goes, until the last subscriber has everything; rows, or the table of `columns`, are made before. A list of
dicts goes as columns, too; with `few together` and `h=1` so few are published at once that they go as messages. What
publisher and subscribers have loaded is kept from Python's garbage collector, theirs and ours alike. CPU is
that of all processes, bytes are those on the loopback of a network namespace of its own: packets by multicast count
once, by unicast once per receiver. What an fsync takes here is printed by itself. Medians over the rounds. Needs Linux
and root for the namespace. On a busy machine figures mean little.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil

SYMBOLS, PROCESSES = 16, 8
WARM = 32 * SYMBOLS
TABLE = 32_000  # rows of a table that is published
FEW = 128  # dicts published together that do not go as columns, so that h says how many share a frame
SETTLE_S = 2.0  # after the last subscriber is ready: discovery and changes of plan are not what is measured
IDLE_S = 15.0  # without a message for so long, whatever is missing is lost
BEGIN, END = "<!-- figures of delivery.py -->", "<!-- end of figures -->"
Send = Callable[[dict[str, Any]], Awaitable[Any]]
Parts = dict[str, list[int]]  # processes by what they do


def half_of(symbol: str) -> str:
    return "ab"[int(symbol[1:]) >= SYMBOLS // 2]


def wanted_by(k: int) -> str:
    """Every other subscriber wants the first half."""
    return "ab"[k % 2]


def row(n: int) -> dict[str, Any]:
    return {"symbol": f"S{n % SYMBOLS:02d}", "price": n % 100, "t": time.monotonic_ns(), "text": "x" * 130}


def rows_of(n: int, columns: bool, t: int) -> Any:
    """So many messages, as dicts or as a table."""
    if not columns:
        return [row(k) | {"t": t} for k in range(n)]
    import pyarrow as pa

    numbers = np.arange(n)
    names = pa.array([f"S{k:02d}" for k in range(SYMBOLS)])
    symbol = names.take(pa.array(numbers % SYMBOLS))
    return pa.table({"symbol": symbol, "price": numbers % 100, "t": np.full(n, t), "text": pa.repeat("x" * 130, n)})


try:  # the library that narrowcast reads and writes JSON with, for the peers too
    packed, unpacked = import_module("msgspec.json").encode, import_module("msgspec.json").decode
except ImportError:

    def packed(message: dict[str, Any]) -> bytes:
        return json.dumps(message, separators=(",", ":")).encode()

    unpacked = json.loads


def lo_bytes() -> int:
    line = next(line for line in Path("/proc/self/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[8])


def fsync_ms(folder: Path, n: int = 100) -> float:
    """The median of what it takes to have 400 bytes more on disk."""
    taken = []
    with (folder / "fsync").open("wb", buffering=0) as stream:
        for _ in range(n):
            begun = time.perf_counter()
            stream.write(b"x" * 400)
            os.fsync(stream.fileno())
            taken.append(time.perf_counter() - begun)
    return 1000 * median(taken)


def settle_memory() -> None:
    """What a process has loaded is not looked through again while it is measured, whichever system it runs.

    Else Python does that once in some thousand messages, which takes it 50 to 100 ms.
    """
    gc.collect()
    gc.freeze()


class Spent:
    """CPU seconds, bytes on the loopback and memory of some processes, since this was made."""

    def __init__(self, parts: dict[str, list[int]]) -> None:
        self._parts = {part: [psutil.Process(pid) for pid in pids] for part, pids in parts.items() if pids}
        self._cpu, self._bytes, self._memory = self._now(), lo_bytes(), self.rss()

    def _now(self) -> dict[str, float]:
        times = {part: [process.cpu_times() for process in found] for part, found in self._parts.items()}
        return {part: float(sum(t.user + t.system for t in some)) for part, some in times.items()}

    def rss(self) -> float:
        """Megabytes of memory, now."""
        return float(sum(each.memory_info().rss for found in self._parts.values() for each in found) / 1e6)

    def rss_apart(self) -> dict[str, float]:
        """The same of each part."""
        return {part: sum(each.memory_info().rss for each in found) / 1e6 for part, found in self._parts.items()}

    def found(self) -> dict[str, float]:
        apart = {f"cpu_s {part}": cpu - self._cpu[part] for part, cpu in self._now().items()}
        return apart | {
            "cpu_s": sum(apart.values()),
            "mbytes": (lo_bytes() - self._bytes) / 1e6,
            "memory_before_mb": self._memory,
            "memory_mb": self.rss(),
        }


# Receiving: each process has some subscribers, and says when it is ready, and what it got.


class Heard:
    """Latencies of what came to all subscribers of a process, and an end when there is all or nothing more."""

    def __init__(self, first: int) -> None:
        self.expected, self.first, self.got = math.inf, first, 0
        self.latencies: list[int] = []
        self.last = time.monotonic()
        self.done, self.warm = asyncio.Event(), asyncio.Event()

    def expect(self, messages: int) -> None:
        """So many there will be in all."""
        self.expected = messages
        if self.got >= messages:
            self.done.set()

    def one(self, message: dict[str, Any]) -> None:
        self.many(1, [message["t"]])

    def many(self, n: int, times: Any) -> None:
        """Messages that came together: latencies are of those that say when they were sent."""
        now = time.monotonic_ns()
        self.latencies += [now - t for t in times if t]
        self.got += n
        self.last = time.monotonic()
        if self.got >= self.first:
            self.warm.set()
        if self.got >= self.expected:
            self.done.set()


async def receive_nats(where: str, mine: list[int], heard: Heard, stack: AsyncExitStack) -> None:
    import nats

    async def on_message(message: Any) -> None:
        heard.one(unpacked(message.data))

    for k in mine:
        connection = await nats.connect(where)
        stack.push_async_callback(connection.close)
        subject = f"plain.{wanted_by(k)}.*"
        await connection.subscribe(subject, cb=on_message, pending_msgs_limit=-1, pending_bytes_limit=-1)
        await connection.flush()


async def receive_jetstream(where: str, mine: list[int], heard: Heard, stack: AsyncExitStack) -> None:
    import nats
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

    async def on_message(message: Any) -> None:
        heard.one(unpacked(message.data))

    config = ConsumerConfig(deliver_policy=DeliverPolicy.NEW, ack_policy=AckPolicy.NONE)
    for k in mine:
        connection = await nats.connect(where)
        stack.push_async_callback(connection.close)
        await connection.jetstream().subscribe(
            f"js.{wanted_by(k)}.*", cb=on_message, config=config, manual_ack=True,
            pending_msgs_limit=-1, pending_bytes_limit=-1,
        )  # fmt: skip


async def receive_zmq(where: str, mine: list[int], heard: Heard, stack: AsyncExitStack) -> None:
    import zmq
    import zmq.asyncio

    context = zmq.asyncio.Context()

    async def listen(socket: Any) -> None:
        while True:
            heard.one(unpacked((await socket.recv())[1:]))

    for k in mine:
        socket = context.socket(zmq.SUB)
        socket.setsockopt(zmq.RCVHWM, 0)
        socket.setsockopt(zmq.SUBSCRIBE, wanted_by(k).encode())
        socket.connect(where)
        task = asyncio.ensure_future(listen(socket))
        stack.callback(socket.close, 0)
        stack.callback(task.cancel)


async def receive_dds(where: str, mine: list[int], heard: Heard, stack: AsyncExitStack) -> None:
    from narrowcast.deliver.routing.address import Multicast
    from narrowcast.deliver.transport.dds.config import DdsSettings
    from narrowcast.deliver.transport.dds.multicast import DdsMulticast

    for k in mine:
        carrier = DdsMulticast(DdsSettings(domain=int(where)))
        await carrier.start(lambda data: heard.one(unpacked(data)))
        await carrier.join(Multicast(0, ord(wanted_by(k))))
        stack.push_async_callback(carrier.close)


async def receive_narrowcast(where: str, mine: list[int], heard: Heard, stack: AsyncExitStack) -> None:
    from narrowcast.deliver.client.connect import connect

    where, socket, as_table = where.split("|")
    connection = await stack.enter_async_context(connect(where, edge=socket or None))
    symbols = [f"S{j:02d}" for j in range(SYMBOLS)]
    subscriptions = []
    for k in mine:
        names = ", ".join(f"'{name}'" for name in symbols if half_of(name) == wanted_by(k))
        subscriptions.append(connection.subscribe(f"symbol IN ({names})", credit=250_000 if as_table else 2_000_000))

    async def listen(subscription: Any) -> None:
        async for batch in subscription:
            if as_table:
                heard.many(len(batch), [batch.arrow()["t"][0].as_py()])
            else:
                heard.many(len(batch), [message["t"] for message in batch])

    for subscription in subscriptions:
        await subscription.ready(60)
        task = asyncio.ensure_future(listen(subscription))
        stack.callback(task.cancel)
    while not {each.name for each in subscriptions} <= await planned(connection):
        await asyncio.sleep(0.1)


async def planned(connection: Any) -> set[str]:
    """The subscriptions that the plan in force has channels for: others are served from the log until there is one."""
    from narrowcast.deliver.parts import records
    from narrowcast.deliver.routing.routing import Routing

    registry = connection._backbone.registry
    epoch = (await registry.get(records.EPOCH)).data
    current = records.read(records.EPOCH, epoch)["current"] if epoch else 0
    plan = (await registry.get(records.numbered(records.PLAN, current))).data
    return set(Routing.from_bytes(plan).taken) if plan else set()


RECEIVE = {
    "NATS core": receive_nats,
    "JetStream": receive_jetstream,
    "ZeroMQ": receive_zmq,
    "Cyclone DDS": receive_dds,
    "narrowcast": receive_narrowcast,
}


async def receiving(kind: str, where: str, mine: list[int], out: str) -> None:
    heard = Heard(len(mine) * WARM // 2)
    async with AsyncExitStack() as stack:
        await RECEIVE[kind](where, mine, heard, stack)
        print("ready", flush=True)
        with suppress(TimeoutError):
            await asyncio.wait_for(heard.warm.wait(), 20)
        settle_memory()
        print("warm", flush=True)
        line = await asyncio.to_thread(sys.stdin.readline)  # everything is published: so much is for us
        heard.expect(int(line))
        told = time.monotonic()
        while not heard.done.is_set() and time.monotonic() < max(heard.last, told) + IDLE_S:
            with suppress(TimeoutError):
                await asyncio.wait_for(heard.done.wait(), 0.1)
        np.save(out, np.array(heard.latencies, np.int64))
        print(json.dumps({"got": heard.got, "ended": heard.last}), flush=True)
        await asyncio.to_thread(sys.stdin.readline)  # CPU has been read


class Receivers:
    """The processes that subscribers are in."""

    def __init__(self, kind: str, where: str, subscribers: int, folder: Path) -> None:
        self.processes: list[subprocess.Popen[str]] = []
        n = min(subscribers, PROCESSES)
        self._files = [folder / f"latencies-{p}.npy" for p in range(n)]
        self._subscribers = [len(range(p, subscribers, n)) for p in range(n)]
        for p in range(n):
            mine = list(range(p, subscribers, n))
            arguments = [kind, where, ",".join(map(str, mine)), str(self._files[p])]
            command = [sys.executable, __file__, "--receive", *arguments]
            self.processes.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        self.say("ready")

    def say(self, what: str) -> None:
        """Wait until all of them have said so."""
        for process in self.processes:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.strip() == what, line

    @property
    def pids(self) -> list[int]:
        return [process.pid for process in self.processes]

    async def finished(self, messages: int) -> tuple[int, int, float]:
        """How many came in all after so many were published, how many did not, and when the last came.

        Every subscriber wants one half of the symbols, and so of the messages, which come in whole rounds of them.
        """

        def last(process: subprocess.Popen[str], expected: int) -> dict[str, float]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{expected}\n")
            process.stdin.flush()
            found: dict[str, float] = json.loads(process.stdout.readline())
            return found

        due = [n * messages // 2 for n in self._subscribers]
        found = await asyncio.gather(
            *(asyncio.to_thread(last, *each) for each in zip(self.processes, due, strict=True))
        )
        got = int(sum(each["got"] for each in found))
        return got, sum(due) - got, max(each["ended"] for each in found)

    def latencies_ms(self) -> dict[str, float]:
        found = np.concatenate([np.load(path) for path in self._files]) / 1e6
        if not found.size:
            return {}
        p50, p99, p999 = np.percentile(found, (50, 99, 99.9)).tolist()
        return {"p50_ms": p50, "p99_ms": p99, "p999_ms": p999}

    def end(self) -> None:
        for process in self.processes:
            process.kill()
            process.communicate()


# Systems: each gives where receivers find it, its processes, a way to publish one, and one to publish everything.


@asynccontextmanager
async def nats_server(folder: Path) -> AsyncIterator[tuple[str, int]]:
    from narrowcast.deliver.transport.nats.server import NatsServer

    server = NatsServer(folder / "nats")
    url = await server.start()
    assert server.process is not None
    try:
        yield url, server.process.pid
    finally:
        await server.stop()


@asynccontextmanager
async def nats_core(folder: Path, **_: Any) -> AsyncIterator[tuple[str, Parts, Send, Send]]:
    import nats

    async with nats_server(folder) as (url, pid):
        connection = await nats.connect(url)

        async def send(message: dict[str, Any]) -> None:
            await connection.publish(f"plain.{half_of(message['symbol'])}.{message['symbol']}", packed(message))

        async def send_all(rows: Any) -> None:
            for message in rows:
                await send(message)
            await connection.flush(timeout=60)

        yield url, {"server": [pid]}, send, send_all
        await connection.close()


@asynccontextmanager
async def jetstream(folder: Path, **_: Any) -> AsyncIterator[tuple[str, Parts, Send, Send]]:
    import nats

    async with nats_server(folder) as (url, pid):
        connection = await nats.connect(url)
        stream = connection.jetstream(publish_async_max_pending=4000)
        await stream.add_stream(name="js", subjects=["js.>"])

        async def send(message: dict[str, Any]) -> Any:
            subject = f"js.{half_of(message['symbol'])}.{message['symbol']}"
            return await stream.publish_async(subject, packed(message), wait_stall=60)

        async def send_all(rows: Any) -> None:
            for future in [await send(message) for message in rows]:
                await future

        yield url, {"server": [pid]}, send, send_all
        await connection.close()


@asynccontextmanager
async def zeromq(folder: Path, **_: Any) -> AsyncIterator[tuple[str, Parts, Send, Send]]:
    import zmq
    import zmq.asyncio

    socket = zmq.asyncio.Context().socket(zmq.PUB)
    socket.setsockopt(zmq.SNDHWM, 0)
    port = socket.bind_to_random_port("tcp://127.0.0.1")

    async def send(message: dict[str, Any]) -> None:
        await socket.send(half_of(message["symbol"]).encode() + packed(message))

    async def send_all(rows: Any) -> None:
        for message in rows:
            await send(message)

    yield f"tcp://127.0.0.1:{port}", {}, send, send_all
    socket.close(0)


@asynccontextmanager
async def dds(folder: Path, **_: Any) -> AsyncIterator[tuple[str, Parts, Send, Send]]:
    from narrowcast.deliver.routing.address import Multicast
    from narrowcast.deliver.transport.dds.config import DdsSettings
    from narrowcast.deliver.transport.dds.multicast import DdsMulticast

    carrier = DdsMulticast(DdsSettings(domain=91))
    await carrier.start(lambda data: None)
    for half in "ab":
        await carrier.prepare(Multicast(0, ord(half)))

    async def send(message: dict[str, Any]) -> None:
        await carrier.send(Multicast(0, ord(half_of(message["symbol"]))), packed(message))

    async def send_all(rows: Any) -> None:
        for message in rows:
            await send(message)

    yield "91", {}, send, send_all
    await carrier.close()


@asynccontextmanager
async def narrowcast(
    folder: Path,
    h: int = 64,
    seal: bool = True,
    together: int | None = None,
    columns: bool = False,
    shared: bool = False,
    subscribers: int = 8,
    retention: str = "20GB",
    **_: Any,
) -> AsyncIterator[tuple[str, Parts, Send, Send]]:
    from narrowcast.deliver.client.connect import connect
    from narrowcast.deliver.processes.supervise import Supervisor, local_system
    from narrowcast.model import Interest
    from narrowcast.model.folder import write_tables
    from narrowcast.plans.channels import api as channels

    names = [f"S{j:02d}" for j in range(SYMBOLS)]
    pairs = [
        (j, k) for k in range(max(subscribers, 2)) for j, name in enumerate(names) if half_of(name) == wanted_by(k)
    ]
    flow, user = zip(*pairs, strict=True)
    interest = Interest.from_pairs(flow, user, [1.0] * SYMBOLS, flow_names=names)
    plan = write_tables(channels.plan(interest, groups=2, sessions=2, method="gf").to_tables(), folder / "plan")
    data = folder / "data"
    system = local_system(data, plan, key=("symbol",), messages=h, seal=seal, retention=retention)
    supervisor, stop = Supervisor(system, sync="always"), asyncio.Event()
    running = asyncio.ensure_future(supervisor.run(stop))
    edge: subprocess.Popen[bytes] | None = None
    try:
        while not supervisor._ready:
            await asyncio.sleep(0.1)
        assert supervisor.server.process is not None
        pids = {role: [process.pid] for role, process in supervisor.processes.items()}
        pids["server"] = [supervisor.server.process.pid]
        socket = ""
        if shared:
            edge = _start_edge(data, system)
            pids["edge"] = [edge.pid]
            while not (data / "edge.sock").exists():
                await asyncio.sleep(0.05)
            socket = str(data / "edge.sock")
        async with connect(data) as connection:
            await connection.publish(row(0) | {"symbol": "warm"})

            async def send_all(rows: Any) -> None:
                """All dicts, or so many together; tables as a pipeline makes them. The next while one is under way."""
                under_way: list[asyncio.Future[int]] = []
                n = together or max(len(rows), 1)
                some = [rows[k : k + n] for k in range(0, len(rows), n)] if not columns else rows.to_batches(TABLE)
                for batch in some:
                    under_way.append(asyncio.ensure_future(connection.publish(batch)))
                    if len(under_way) > (2 if columns else 64):
                        await under_way.pop(0)
                await asyncio.gather(*under_way)

            yield f"{data}|{socket}|{'table' if columns else ''}", pids, connection.publish, send_all
    finally:
        if edge is not None:
            edge.terminate()
            edge.wait()
        stop.set()
        await running


def _start_edge(data: Path, system: Any) -> subprocess.Popen[bytes]:
    from narrowcast.deliver.processes.system import EdgeSection

    file = data / "shared.toml"
    file.write_text(replace(system, edge=EdgeSection("shared", socket="edge.sock")).to_toml())
    return subprocess.Popen([sys.executable, "-m", "narrowcast.deliver.processes.roles", "edge", str(file)])


SYSTEMS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "NATS core": ("NATS core", nats_core, {}),
    "JetStream": ("JetStream", jetstream, {}),
    "Cyclone DDS": ("Cyclone DDS", dds, {}),
    "ZeroMQ": ("ZeroMQ", zeromq, {}),
    "narrowcast": ("narrowcast", narrowcast, {}),
    "narrowcast, few together": ("narrowcast", narrowcast, {"together": FEW}),
    "narrowcast, h=1": ("narrowcast", narrowcast, {"h": 1, "together": FEW}),
    "narrowcast, h=1, long lists": ("narrowcast", narrowcast, {"h": 1}),
    "narrowcast, no seal": ("narrowcast", narrowcast, {"seal": False}),
    "narrowcast, shared edge": ("narrowcast", narrowcast, {"shared": True}),
    "narrowcast, columns": ("narrowcast", narrowcast, {"columns": True}),
    "narrowcast, columns, shared edge": ("narrowcast", narrowcast, {"columns": True, "shared": True}),
}


async def measured(title: str, subscribers: int, messages: int, rate: int | None) -> dict[str, float]:
    """One run: at a rate for latency, without one for what is sustained."""
    kind, system, options = SYSTEMS[title]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with system(folder, subscribers=subscribers, **options) as (where, pids, send, send_all):
            receivers = await asyncio.to_thread(Receivers, kind, where, subscribers, folder)
            try:
                columns = options.get("columns", False)
                await asyncio.sleep(SETTLE_S)
                await send_all(rows_of(WARM, columns, 0))  # what is loaded and compiled at first is not measured
                rows = rows_of(messages if rate is None else 0, columns, time.monotonic_ns())
                await asyncio.to_thread(receivers.say, "warm")
                settle_memory()
                await asyncio.sleep(SETTLE_S / 2)
                spent = Spent({"publisher": [os.getpid()], **pids, "subscribers": receivers.pids})
                begun = time.monotonic()
                if rate is None:
                    await send_all(rows)
                else:
                    await paced(send, messages, rate)
                published = time.monotonic() - begun
                got, missing, ended = await receivers.finished(messages + WARM)
                found = spent.found() | {"published_s": published}
            finally:
                latencies = receivers.latencies_ms() if all(path.exists() for path in receivers._files) else {}
                receivers.end()
            found |= {"delivered": got, "missing": missing, "messages_s": messages / max(ended - begun, 1e-9)}
            found |= {"cpu_us": 1e6 * found["cpu_s"] / max(got, 1), "bytes": 1e6 * found["mbytes"] / max(got, 1)}
            return found | (latencies if rate is not None else {})


async def soak(seconds: int, rate: int | None = None, title: str = "narrowcast, columns", subscribers: int = 8) -> None:
    """Publish tables at a rate, or as fast as the log takes them, for so long; every ten seconds tell what was sent

    and what memory is used. As fast as the log takes them is more than subscribers take who share its processors.
    """
    kind, system, options = SYSTEMS[title]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with system(folder, subscribers=subscribers, retention="2GB", **options) as (where, pids, _, send_all):
            receivers = await asyncio.to_thread(Receivers, kind, where, subscribers, folder)
            try:
                await asyncio.sleep(SETTLE_S)
                await send_all(rows_of(WARM, True, 0))
                await asyncio.to_thread(receivers.say, "warm")
                spent = Spent({"publisher": [os.getpid()], **pids, "subscribers": receivers.pids})
                rows = rows_of(TABLE, True, 0)
                begun, sent, told = time.monotonic(), 0, 10
                while (passed := time.monotonic() - begun) < seconds:
                    await send_all(pa_repeated(rows, 8))
                    sent += 8 * TABLE
                    await asyncio.sleep(max(0.0, begun + sent / rate - time.monotonic()) if rate else 0)
                    if passed > told:
                        told += 10
                        apart = ", ".join(f"{part} {mb:,.0f}" for part, mb in spent.rss_apart().items())
                        print(
                            f"{passed:6.0f} s  {sent / passed:>9,.0f} messages/s  {spent.rss():,.0f} MB: {apart}",
                            flush=True,
                        )
                got, missing, ended = await receivers.finished(sent + WARM)
                print(
                    f"{sent:,} published, {got:,} delivered, {missing:,} missing, "
                    f"{sent / (ended - begun):,.0f} messages/s"
                )
            finally:
                receivers.end()


def pa_repeated(table: Any, n: int) -> Any:
    """A table n times after itself, without a copy."""
    import pyarrow as pa

    return pa.concat_tables([table] * n)


async def paced(send: Send, messages: int, rate: int) -> None:
    """Publish at a rate, however long each takes to be acknowledged; above 1,000/s a few at a time."""
    at_once = max(1, rate // 1000)
    begun, waiting = time.monotonic(), []
    for first in range(0, messages, at_once):
        await asyncio.sleep(max(0.0, begun + first / rate - time.monotonic()))
        waiting += [asyncio.ensure_future(send(row(n))) for n in range(first, min(first + at_once, messages))]
    for each in await asyncio.gather(*waiting):
        if isinstance(each, asyncio.Future):
            await each


# What is run, printed and kept.

OURS = ("narrowcast", "narrowcast, no seal", "narrowcast, shared edge")
LATENCY = ("NATS core", "JetStream", "Cyclone DDS", "ZeroMQ", *OURS)
SUSTAINED = tuple(SYSTEMS)
# What the scoreboard is about: system, subscribers, rate.
ASKED = {
    *((title, n, rate) for title in ("NATS core", "narrowcast") for n in (1, 8) for rate in (100, 1000)),
    *((title, 64, 100) for title in ("NATS core", "narrowcast", "narrowcast, shared edge")),
    *((title, 8, None) for title in ("NATS core", "narrowcast", "narrowcast, few together")),
    *((title, 8, None) for title in ("narrowcast, h=1", "narrowcast, h=1, long lists")),
    *((title, 8, None) for title in ("narrowcast, columns", "narrowcast, columns, shared edge")),
    *(("narrowcast, no seal", 8, rate) for rate in (100, 1000, None)),
}


def runs(given: argparse.Namespace) -> list[tuple[str, int, int, int | None]]:
    """Title, subscribers, messages and rate of every measurement."""
    seconds = 2 if given.quick else 3 if given.asked else 10
    sizes = (1, 8) if given.quick else (1, 8, 64)
    rates = (100, 1000) if given.quick else (100, 1000, 10_000)
    latency = [(title, n, max(seconds * rate, 160), rate) for n in sizes for rate in rates for title in LATENCY]
    burst, table = (8_000, 256_000) if given.quick else (160_000, 2_000_000)
    sustained = [
        (t, n, table if "columns" in t else burst, None) for n in ((8,) if given.quick else (1, 8)) for t in SUSTAINED
    ]
    found = [run for run in sustained + latency if _asked(run, given)]
    return [(title, n, (given.messages or m) // SYMBOLS * SYMBOLS, rate) for title, n, m, rate in found]


def _asked(run: tuple[str, int, int, int | None], given: argparse.Namespace) -> bool:
    """Whether a measurement is among those that the command line names."""
    title, n, _, rate = run
    return (
        (not given.asked or (title, n, rate) in ASKED)
        and (not given.only or title in given.only)
        and (not given.subscribers or n in given.subscribers)
        and (not given.rates or (rate or 0) in given.rates)
    )


def show(title: str, n: int, rate: int | None, found: dict[str, float], peer: dict[str, float] | None) -> None:
    share = f"{found['cpu_us'] / peer['cpu_us']:6.2f} of NATS" if peer and peer["cpu_us"] else ""
    if rate is None:
        what = f"{found['messages_s']:>11,.0f} messages/s"
    else:
        what = "p50 {p50_ms:8.2f}  p99 {p99_ms:8.2f}  p99.9 {p999_ms:8.2f} ms".format(
            **({"p50_ms": 0.0, "p99_ms": 0.0, "p999_ms": 0.0} | found)
        )
    at = "as fast as it goes" if rate is None else f"{rate:,}/s"
    lost = f"  MISSING {found['missing']:,.0f}" if found["missing"] else ""
    used = f"CPU {found['cpu_us']:7.2f} µs  {found['bytes']:7.0f} B"
    print(f"{title:>32}  {n:>3} subscribers, {at:<18} {what}  {used}  {share}{lost}", flush=True)
    apart = {name.removeprefix("cpu_s "): cpu for name, cpu in found.items() if name.startswith("cpu_s ")}
    print(" " * 34 + "CPU of " + ", ".join(f"{part} {cpu:.2f}" for part, cpu in apart.items()) + " s", flush=True)


async def everything(given: argparse.Namespace) -> dict[str, Any]:
    kept: dict[tuple[str, int, int | None], list[dict[str, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        fsync = fsync_ms(Path(name))
    print(f"an fsync takes {fsync:.2f} ms here; CPU and bytes are per delivered message", flush=True)
    for _ in range(given.rounds):
        for title, n, messages, rate in runs(given):
            found = await measured(title, n, messages, rate)
            kept[title, n, rate].append(found)
            peers = kept.get(("NATS core", n, rate))
            show(title, n, rate, found, peers[-1] if peers else None)
    rows = []
    for (title, n, rate), all_found in kept.items():
        medians = {name: median(f[name] for f in all_found if name in f) for name in all_found[0]}
        rows.append({"system": title, "subscribers": n, "rate": rate, "rounds": len(all_found)} | medians)
    return {"fsync_ms": fsync, "rounds": given.rounds, "rows": rows}


def is_same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two rows are of the same measurement."""
    return all(one[name] == other[name] for name in ("system", "subscribers", "rate"))


def markdown(found: dict[str, Any]) -> str:
    """The medians as tables, with CPU and bytes as shares of those of NATS core in the same run."""
    peers = {(r["subscribers"], r["rate"]): r for r in found["rows"] if r["system"] == "NATS core"}
    fewer: dict[int, dict[str, None]] = defaultdict(dict)  # systems that were measured less often, by how often
    for row in found["rows"]:
        if row["rounds"] != found["rounds"]:
            fewer[row["rounds"]][row["system"]] = None
    but = "".join(f"; of {n} for {', '.join(names)}" for n, names in fewer.items())
    lines = [f"An fsync takes {found['fsync_ms']:.2f} ms. Medians of {found['rounds']} rounds{but}.", ""]
    for rated in (True, False):
        head = ("p50 ms", "p99 ms", "p99.9 ms") if rated else ("messages/s", "memory MB")
        names = (
            "subscribers",
            *(("rate",) if rated else ()),
            "",
            *head,
            "CPU µs",
            "of NATS",
            "bytes",
            "of NATS",
            "missing",
        )
        lines += [f"| {' | '.join(names)} |", "|" + "---|" * len(names)]
        rows = [r for r in found["rows"] if (r["rate"] is not None) == rated]
        for r in sorted(rows, key=lambda r: (r["subscribers"], r["rate"] or 0)):
            peer = peers.get((r["subscribers"], r["rate"]))
            shares = [f"{r[k] / peer[k]:.2f}" if peer and peer[k] else "" for k in ("cpu_us", "bytes")]
            times = [f"{r[k]:.2f}" if k in r else "" for k in ("p50_ms", "p99_ms", "p999_ms")]
            middle = times if rated else [f"{r['messages_s']:,.0f}", f"{r['memory_mb']:,.0f}"]
            cells = [f"{r['subscribers']}", *([f"{r['rate']:,}"] if rated else []), r["system"], *middle]
            cells += [f"{r['cpu_us']:.1f}", shares[0], f"{r['bytes']:.0f}", shares[1], f"{r['missing']:.0f}"]
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def scoreboard(found: dict[str, Any]) -> str:
    """What is asked of delivery, what was found, and whether it is met; what was not measured is not listed."""
    rows = {(r["system"], r["subscribers"], r["rate"]): r for r in found["rows"]}
    lines = ["| asked | found | |", "|---|---|---|"]

    def add(what: str, got: float, most: float, unit: str = "", least: bool = False) -> None:
        met = got >= most if least else got <= most
        sign = "≥" if least else "≤"
        lines.append(f"| {what} {sign} {most:,.2f}{unit} | {got:,.2f}{unit} | {'met' if met else 'missed'} |")

    fsync = found["fsync_ms"]
    for n in (1, 8):
        for rate in (100, 1000):
            peer, ours = rows.get(("NATS core", n, rate)), rows.get(("narrowcast", n, rate))
            if peer and ours and "p50_ms" in ours and "p50_ms" in peer:
                where = f"{n} subscriber{'s' if n > 1 else ''}, {rate:,}/s"
                add(f"p50, {where}: 3 × NATS core + fsync", ours["p50_ms"], 3 * peer["p50_ms"] + fsync, " ms")
                add(f"p99, {where}: 3 × NATS core", ours["p99_ms"], 3 * peer["p99_ms"], " ms")
    peer = rows.get(("NATS core", 64, 100))
    for title in ("narrowcast", "narrowcast, shared edge"):
        ours = rows.get((title, 64, 100))
        if peer and ours:
            add(f"p50, 64 subscribers, 100/s, {title}: NATS core", ours["p50_ms"], peer["p50_ms"], " ms")
    peer = rows.get(("NATS core", 8, None))
    for title in ("narrowcast, columns", "narrowcast, columns, shared edge"):
        ours = rows.get((title, 8, None))
        if ours:
            add(f"messages/s, 8 subscribers, {title}", ours["messages_s"], 500_000, least=True)
        if ours and peer:
            add(f"CPU per delivered message, {title}: of NATS core", ours["cpu_us"] / peer["cpu_us"], 0.2)
    h_one = ("narrowcast, h=1", "narrowcast, h=1, long lists")
    for title, most in (*((title, 1.0) for title in h_one), ("narrowcast, few together", 0.5), ("narrowcast", 0.5)):
        ours = rows.get((title, 8, None))
        if ours and peer:
            add(f"CPU per delivered message, dicts, {title}: of NATS core", ours["cpu_us"] / peer["cpu_us"], most)
    missing = sum(r["missing"] for r in found["rows"] if r["system"].startswith("narrowcast"))
    add("messages that did not come", missing, 0)
    return "\n".join(lines)


def page(found: dict[str, Any]) -> str:
    """Everything there is to say about what was found, as Markdown."""
    return "\n\n".join(part.strip() for part in (scoreboard(found), markdown(found), price_of_seals(found)) if part)


def put_into(path: Path, text: str) -> None:
    """Between the two marks of a page, in place of what was there."""
    before, _, rest = path.read_text(encoding="utf-8").partition(BEGIN)
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def price_of_seals(found: dict[str, Any]) -> str:
    """CPU and latency with seals beside those without, wherever both were measured; nothing where they were not."""
    rows = {(r["system"], r["subscribers"], r["rate"]): r for r in found["rows"]}
    lines = ["| subscribers | rate | | sealed | not sealed |", "|---|---|---|---|---|"]
    for (title, n, rate), plain in rows.items():
        sealed = rows.get(("narrowcast", n, rate))
        if title != "narrowcast, no seal" or sealed is None:
            continue
        for name, what in {"cpu_us": "CPU µs", "p50_ms": "p50 ms", "p99_ms": "p99 ms"}.items():
            if name in sealed and name in plain:
                at = "as fast as it goes" if rate is None else f"{rate:,}/s"
                lines.append(f"| {n} | {at} | {what} | {sealed[name]:.2f} | {plain[name]:.2f} |")
    return "\n".join(lines) if len(lines) > 2 else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer rates, subscribers and messages")
    parser.add_argument("--asked", action="store_true", help="only what the scoreboard at the end is about, briefly")
    parser.add_argument("--rounds", type=int, default=1, help="repeat all of it, and keep medians")
    parser.add_argument("--only", action="append", metavar="SYSTEM", help=f"one of: {'; '.join(SYSTEMS)}; repeatable")
    parser.add_argument("--subscribers", type=int, action="append", metavar="N", help="so many only; repeatable")
    parser.add_argument(
        "--rates", type=int, action="append", metavar="N", help="messages/s; 0 is sustained; repeatable"
    )
    parser.add_argument("--messages", type=int, help="so many in each measurement")
    parser.add_argument("--json", type=Path, help="keep the medians in a file")
    parser.add_argument("--add", action="store_true", help="to what that file has, in place of the same measurements")
    parser.add_argument("--table", type=Path, help="print such a file as Markdown, and measure nothing")
    parser.add_argument("--into", type=Path, help="with --table: put it into a page, in place of what was there")
    parser.add_argument("--soak", type=int, metavar="SECONDS", help="columns at --rates, or as fast as they go: memory")
    parser.add_argument("--receive", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.receive:
        kind, where, mine, out = given.receive
        asyncio.run(receiving(kind, where, [int(k) for k in mine.split(",")], out))
    elif given.table:
        text = page(json.loads(given.table.read_text()))
        put_into(given.into, text) if given.into else print(text)
    elif given.inside:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        if given.soak:
            asyncio.run(soak(given.soak, max(given.rates or (0,)) or None))
            return
        found = asyncio.run(everything(given))
        print(f"{scoreboard(found)}\n\n{price_of_seals(found)}")
        if given.json:
            kept = json.loads(given.json.read_text()) if given.add else found | {"rows": []}
            others = [row for row in kept["rows"] if not any(is_same(row, new) for new in found["rows"])]
            given.json.write_text(json.dumps(kept | {"rows": others + found["rows"]}, indent=1) + "\n")
    else:
        sys.exit(subprocess.run(["unshare", "--net", sys.executable, *sys.argv, "--inside"], check=False).returncode)


if __name__ == "__main__":
    main()
