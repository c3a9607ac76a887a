"""End to end: publish → log → match → carrier → exact filter → callback, against plain NATS subjects in the same run.

    python benchmarks/speed/delivery.py [--messages 40000]

Eight receivers, each wanting half of 16 symbols; messages of 200 bytes. Everything runs in a network namespace
of its own, so that the bytes counted on its loopback are those of the run alone: packets by multicast once, by
unicast once per receiver. CPU is that of all processes: server, source, coordinator, publisher and receivers,
from the first publish until the last receiver has everything. Needs Linux and root for the namespace.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

import psutil

PLAIN = "NATS subjects"

RECEIVERS, SYMBOLS = 8, 16
SETTLE_S = 3.0  # after the last receiver is ready: discovery and changes of plan are not what is measured


def row(n: int) -> dict[str, Any]:
    return {"symbol": f"S{n % SYMBOLS:02d}", "price": n % 100, "n": n, "text": "x" * 140}


def wanted(k: int) -> list[str]:
    """Receivers 0–3 want mostly the first half, the others the second."""
    half = SYMBOLS // 2
    base = 0 if k < RECEIVERS // 2 else half
    return [f"S{base + j:02d}" for j in range(half)]


def expected(k: int, messages: int) -> int:
    mine = set(wanted(k))
    return sum(row(n)["symbol"] in mine for n in range(messages))


def lo_bytes() -> int:
    line = next(line for line in Path("/proc/self/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[8])


class Cpu:
    """CPU seconds of processes by what they do, since this was made."""

    def __init__(self, pids: dict[str, list[int]]) -> None:
        self._pids = pids
        self._before = self._now()

    def _now(self) -> dict[str, float]:
        times = {role: [psutil.Process(pid).cpu_times() for pid in pids] for role, pids in self._pids.items()}
        return {role: sum(each.user + each.system for each in found) for role, found in times.items()}

    def spent(self) -> dict[str, float]:
        return {role: now - self._before[role] for role, now in self._now().items()}


async def receive_narrowcast(data: str, k: int, count: int) -> None:
    from narrowcast.deliver.client.connect import connect

    names = ", ".join(f"'{name}'" for name in wanted(k))
    async with connect(data) as connection:
        subscription = await connection.subscribe(f"symbol IN ({names})", credit=1_000_000).ready()
        edge = connection._edge
        assert edge is not None
        while not edge.part.epoch["current"] or subscription.name not in _planned(edge.part):
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        print("ready", flush=True)
        got = 0
        async for batch in subscription:
            got += sum(1 for message in batch if message["price"] >= 0)
            if got >= count:
                break
        counts = edge.part.counts
        print(json.dumps({"got": got, "repaired": counts["repaired"]}), flush=True)
        await asyncio.sleep(3600)


def _planned(part: Any) -> set[str]:
    newest = max(part.plans, default=None)
    return set(part.plans[newest].taken) if newest is not None else set()


async def receive_nats(url: str, k: int, count: int) -> None:
    import nats

    connection = await nats.connect(url)
    done, got = asyncio.Event(), 0

    async def heard(message: Any) -> None:
        nonlocal got
        found = json.loads(message.data)
        if found["price"] >= 0:
            got += 1
        if got >= count:
            done.set()

    for name in wanted(k):
        await connection.subscribe(f"plain.{name}", cb=heard, pending_msgs_limit=-1, pending_bytes_limit=-1)
    await connection.flush()
    print("ready", flush=True)
    await done.wait()
    print(json.dumps({"got": got, "repaired": 0}), flush=True)
    await asyncio.sleep(3600)


def start_receivers(kind: str, where: str, messages: int) -> list[subprocess.Popen[str]]:
    made = []
    for k in range(RECEIVERS):
        command = [sys.executable, __file__, "--receive", kind, where, str(k), str(expected(k, messages))]
        made.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    for process in made:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.strip() == "ready", line
    return made


async def finish(receivers: list[subprocess.Popen[str]]) -> list[dict[str, int]]:
    def last(process: subprocess.Popen[str]) -> dict[str, int]:
        assert process.stdout is not None
        found: dict[str, int] = json.loads(process.stdout.readline())
        return found

    return await asyncio.gather(*(asyncio.to_thread(last, process) for process in receivers))


async def narrowcast(folder: Path, h: int, messages: int, seal: bool = True) -> dict[str, Any]:
    """One run with aggregation h, and frames sealed or not."""
    from narrowcast.deliver.client.connect import connect
    from narrowcast.deliver.processes.supervise import Supervisor, local_system
    from narrowcast.model import Interest
    from narrowcast.model.folder import write_tables
    from narrowcast.plans.channels import api as channels

    pairs = [(int(name[1:]), k) for k in range(RECEIVERS) for name in wanted(k)]
    flow, user = zip(*pairs, strict=True)
    names = [f"S{j:02d}" for j in range(SYMBOLS)]
    interest = Interest.from_pairs(flow, user, [1.0] * SYMBOLS, flow_names=names)
    plan = write_tables(channels.plan(interest, groups=2, sessions=2, method="gf").to_tables(), folder / "plan")
    supervisor, stop = (
        Supervisor(local_system(folder / "data", plan, key=("symbol",), messages=h, seal=seal), sync="2m"),
        asyncio.Event(),
    )
    running = asyncio.ensure_future(supervisor.run(stop))
    while not supervisor._ready:
        await asyncio.sleep(0.1)
    receivers = await asyncio.to_thread(start_receivers, "narrowcast", str(folder / "data"), messages)
    assert supervisor.server.process is not None
    pids = {
        "server": [supervisor.server.process.pid],
        "publisher": [os.getpid()],
        "source": [p.pid for p in supervisor.processes.values()],
        "receivers": [p.pid for p in receivers],
    }
    try:
        async with connect(folder / "data") as connection:
            rows = [row(n) for n in range(messages)]
            await connection.publish(row(0) | {"symbol": "warm"})
            await asyncio.sleep(SETTLE_S)
            used, sent, begun = Cpu(pids), lo_bytes(), time.perf_counter()
            await connection.publish(rows)
            acked = time.perf_counter() - begun
            results = await finish(receivers)
            seconds = time.perf_counter() - begun
            return {
                "messages_s": messages / seconds,
                "acked_s": messages / acked,
                "cpu": used.spent(),
                "mbytes": (lo_bytes() - sent) / 1e6,
                "repaired": sum(result["repaired"] for result in results),
            }
    finally:
        for process in receivers:
            process.kill()
            process.communicate()
        stop.set()
        await running


async def plain(folder: Path, messages: int) -> dict[str, Any]:
    """The same fan-out through subjects: one per symbol, nothing durable, nothing repaired."""
    import nats

    from narrowcast.deliver.transport.nats.server import NatsServer

    server = NatsServer(folder / "nats")
    url = await server.start()
    receivers = await asyncio.to_thread(start_receivers, "nats", url, messages)
    assert server.process is not None
    pids = {
        "server": [server.process.pid],
        "publisher": [os.getpid()],
        "receivers": [p.pid for p in receivers],
    }
    connection = await nats.connect(url)
    try:
        rows = [row(n) for n in range(messages)]
        await asyncio.sleep(SETTLE_S)
        used, sent, begun = Cpu(pids), lo_bytes(), time.perf_counter()
        for each in rows:
            payload = json.dumps(each, separators=(",", ":")).encode()
            await connection.publish(f"plain.{each['symbol']}", payload)
        await connection.flush(timeout=60)
        acked = time.perf_counter() - begun
        await finish(receivers)
        seconds = time.perf_counter() - begun
        return {
            "messages_s": messages / seconds,
            "acked_s": messages / acked,
            "cpu": used.spent(),
            "mbytes": (lo_bytes() - sent) / 1e6,
            "repaired": 0,
        }
    finally:
        for process in receivers:
            process.kill()
            process.communicate()
        await connection.close()
        await server.stop()


async def everything(messages: int, sizes: list[int], rounds: int, compare: bool) -> None:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    size = len(json.dumps(row(100), separators=(",", ":")))
    print(f"{messages:,} messages of {size} bytes, {RECEIVERS} receivers, each of half the symbols")
    print(
        f"{'':>16} {'messages/s':>11} {'acked/s':>9} {'CPU s':>7} {'MB':>7} {'repaired':>9}   "
        f"{'server':>9} {'publisher':>9} {'source':>9} {'receivers':>9}"
    )
    with tempfile.TemporaryDirectory() as name:
        for turn in range(rounds):
            for h in sizes:
                for seal in (True, False) if compare else (True,):
                    folder = Path(name) / f"h{h}-{turn}-{seal}"
                    folder.mkdir()
                    title = f"narrowcast h={h}" if seal else f"no seal h={h}"
                    found[title].append(await narrowcast(folder, h, messages, seal))
                    _print(title, found[title][-1])
            folder = Path(name) / f"plain-{turn}"
            folder.mkdir()
            found[PLAIN].append(await plain(folder, messages))
            _print(PLAIN, found[PLAIN][-1])
    if rounds > 1:
        print("medians of CPU and bytes, and as shares of those of plain NATS")
        peer = _median(found[PLAIN])
        for title, runs in found.items():
            cpu, mbytes = _median(runs)
            print(f"{title:>16} {cpu:7.2f} s {mbytes:7.1f} MB   {cpu / peer[0]:6.2f} {mbytes / peer[1]:6.2f}")


def _median(runs: list[dict[str, Any]]) -> tuple[float, float]:
    return median(sum(r["cpu"].values()) for r in runs), median(r["mbytes"] for r in runs)


def _print(title: str, r: dict[str, Any]) -> None:
    each = " ".join(f"{r['cpu'].get(role, 0.0):>9.2f}" for role in ("server", "publisher", "source", "receivers"))
    print(
        f"{title:>16} {r['messages_s']:>11,.0f} {r['acked_s']:>9,.0f} {sum(r['cpu'].values()):>7.2f} "
        f"{r['mbytes']:>7.1f} {r['repaired']:>9,.0f}   {each}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=40_000)
    parser.add_argument("--sizes", default="1,8,64", help="aggregations h to try")
    parser.add_argument("--rounds", type=int, default=1, help="repeat all of it, and show medians")
    parser.add_argument("--seals", action="store_true", help="also without sealing frames, to see its price")
    parser.add_argument("--receive", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.receive:
        kind, where, k, count = given.receive
        run = receive_narrowcast if kind == "narrowcast" else receive_nats
        asyncio.run(run(where, int(k), int(count)))
    elif given.inside:
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        sizes = [int(h) for h in given.sizes.split(",")]
        asyncio.run(everything(given.messages, sizes, given.rounds, given.seals))
    else:
        sys.exit(subprocess.run(["unshare", "--net", sys.executable, *sys.argv, "--inside"], check=False).returncode)


if __name__ == "__main__":
    main()
