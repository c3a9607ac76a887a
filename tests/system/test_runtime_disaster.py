"""Loss at every host, each role killed in turn, a plan switch every second: nothing missed, nothing repeated.

DISASTER_SECONDS and DISASTER_SUBSCRIBERS make it shorter, longer, smaller or larger.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from history import History, check
from narrowcast.deliver.transport.nats.server import server_binary
from narrowcast.deliver.wire import bare_of, index_of, sequence_of
from narrowcast.model import Demand, Interest
from narrowcast.model.folder import write_tables
from narrowcast.plans.channels import api as channels
from system.hosts import Hosts

SECONDS = int(os.environ.get("DISASTER_SECONDS", "60"))
KILLED = ("source", "desk-0", "coordinator", "nats-server", "desk-1", "desk-2")  # in turn
CUT = ("cut coordinator-0", "stop desk-0", "cut coordinator-1", "cut desk-1", "stop coordinator-0", "desk-2")


@dataclass(frozen=True)
class Disaster:
    """Who wants which symbols, at which desk, and what befalls them. A desk is an edge, at a host of its own.

    `every`: seconds from plan to plan while somebody leads, which is nobody for some seconds after a coordinator died.
    """

    seconds: int
    rate: int
    loss: float
    symbols: list[str]
    wishes: dict[str, list[str]]  # by profile
    desks: dict[str, dict[str, str]]  # by desk, the profile of each subscriber
    every: float = 0.7
    faults: tuple[str, ...] = KILLED  # in turn: who is killed, or cut off or stopped until the next one's turn
    pause: float = 5.0  # seconds from fault to fault: twelve a minute
    coordinators: int = 0  # at hosts of their own, in place of the one beside the log

    @property
    def subscribers(self) -> dict[str, str]:
        return {name: profile for here in self.desks.values() for name, profile in here.items()}


def a_few() -> Disaster:
    wishes = {
        "symbol = 'IBM'": ["IBM"],
        "symbol IN ('GE', 'MSFT')": ["GE", "MSFT"],
        "symbol <> 'HP'": ["IBM", "MSFT", "GE"],
    }
    desks = {f"desk-{k}": {f"desk-{k}": profile} for k, profile in enumerate(wishes)}
    return Disaster(SECONDS, 300, 0.05, ["IBM", "MSFT", "GE", "HP"], wishes, desks)


def a_crowd(subscribers: int, seconds: int) -> Disaster:
    """Each wants one to three of forty symbols; a hundred or so at a desk."""
    rng, symbols = Random(21), [f"S{k:02}" for k in range(40)]
    wishes: dict[str, list[str]] = {}
    desks: dict[str, dict[str, str]] = {f"desk-{k}": {} for k in range(3)}
    for k in range(subscribers):
        wanted = sorted(rng.sample(symbols, rng.randint(1, 3)))
        profile = "symbol IN ({})".format(", ".join(f"'{symbol}'" for symbol in wanted))
        wishes[profile] = wanted
        desks[f"desk-{k % 3}"][f"s{k}"] = profile
    return Disaster(seconds, 50, 0.2, symbols, wishes, desks)


DUMP = """
import asyncio, json, sys
from narrowcast.deliver.processes.backbone import backbone
from narrowcast.deliver.wire import Batch, Marker, decode_entry
async def run():
    base = await backbone(sys.argv[1], name="checker")
    after = 0
    while found := (await base.log.read(0, after, most=256)).entries:
        for entry in found:
            batch = decode_entry(entry.data)
            for index, payload in enumerate(batch.payloads if isinstance(batch, Batch) else ()):
                print(json.dumps([entry.sequence, index, json.loads(payload)]))
            if isinstance(batch, Marker):
                print(json.dumps(["switch", batch.epoch, 0]))
        after = found[-1].sequence
    print(json.dumps(["term", json.loads((await base.registry.get("lease")).data)["term"], 0]))
    await base.close()
asyncio.run(run())
"""


class Cast:
    """The processes, by name; killed and started again at the same host."""

    def __init__(self, hosts: Hosts, folder: Path) -> None:
        self.hosts, self.folder = hosts, folder
        self.commands: dict[str, tuple[list[str], int]] = {}
        self.processes: dict[str, subprocess.Popen[str]] = {}

    def add(self, name: str, command: list[str], host: int) -> None:
        self.commands[name] = (["bash", "-c", f'exec "$@" >> {self.folder}/{name}.log 2>&1', "-", *command], host)
        self.start(name)

    def start(self, name: str) -> None:
        self.processes[name] = self.hosts.start(*self.commands[name])

    def strike(self, fault: str) -> Callable[[], None]:
        """Let one thing happen to one process; what is returned ends it."""
        verb, _, name = fault.rpartition(" ")
        if verb == "cut":
            self.cut(name, "-I")
            return lambda: self.cut(name, "-D")
        if verb == "stop":
            self.processes[name].send_signal(signal.SIGSTOP)
            return lambda: self.processes[name].send_signal(signal.SIGCONT)
        self.kill(name)
        return lambda: None

    def cut(self, name: str, how: str) -> None:
        """Its host hears nobody, and nobody hears it; or again."""
        for chain, way in (("INPUT", "-i"), ("OUTPUT", "-o")):
            self.hosts.run(["iptables", how, chain, way, "eth0", "-j", "DROP"], self.commands[name][1])

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.processes[name].wait(10)
        self.start(name)


def written(folder: Path, desk: str, name: str) -> list[bytes]:
    path = folder / f"out-{desk}" / f"{name}.jsonl"
    data = path.read_bytes() if path.exists() else b""
    return data[: data.rfind(b"\n") + 1].splitlines()


def lines(folder: Path, desk: str, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written(folder, desk, name)]


def until(done: object, what: str, seconds: float = 60.0) -> None:
    assert callable(done)
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def point(place: int) -> tuple[int, int]:
    return bare_of(sequence_of(place)), index_of(place)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_loss_kills_and_switches_for_a_minute_cost_no_message(tmp_path: Path) -> None:
    endured(a_few(), tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_three_hundred_subscribers_miss_nothing_in_five_minutes_of_kills_switches_and_a_fifth_lost(
    tmp_path: Path,
) -> None:
    seconds = int(os.environ.get("DISASTER_SECONDS", "300"))
    endured(a_crowd(int(os.environ.get("DISASTER_SUBSCRIBERS", "300")), seconds), tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_two_coordinators_cut_off_in_turn_and_desks_that_stand_still_cost_no_message(tmp_path: Path) -> None:
    """Whoever leads is cut off from the log, believes that it leads, and finds another one when it is back."""
    endured(replace(a_few(), faults=CUT, pause=8.0, coordinators=2), tmp_path)


def endured(what: Disaster, tmp_path: Path) -> None:
    """Plan, publish, kill; then everything must be there within a minute, once, and nothing else."""
    users, at = [*what.subscribers], {symbol: k for k, symbol in enumerate(what.symbols)}
    pairs = [(at[s], k) for k, profile in enumerate(what.subscribers.values()) for s in what.wishes[profile]]
    flow, user = zip(*pairs, strict=True)
    rates = [float(len(what.symbols) - k) for k in range(len(what.symbols))]
    interest = Interest.from_pairs(flow, user, rates, flow_names=what.symbols, user_names=users)
    demand = Demand(interest, key=("symbol",))
    sessions = 3 if len(what.symbols) < 10 else 12
    write_tables(channels.plan(demand, groups=2, sessions=sessions, method="gf").to_tables(), tmp_path / "plan")
    rows = [{"symbol": what.symbols[n % len(what.symbols)], "n": n} for n in range(what.rate * what.seconds)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    history = History()
    with Hosts(1 + len(what.desks) + what.coordinators) as hosts:
        url = f"nats://narrowcast:secret@{hosts.address(0)}:4222"
        cast = Cast(hosts, tmp_path)
        started(what, cast, url)
        everybody = [(desk, name) for desk, here in what.desks.items() for name in here]
        until(
            lambda: all(any(b'"position":{"' in x for x in written(tmp_path, *who)) for who in everybody),
            "not subscribed",
        )
        for host in range(hosts.n):
            drop = ["-m", "statistic", "--mode", "random", "--probability", str(what.loss), "-j", "DROP"]
            hosts.run(["iptables", "-A", "INPUT", "-i", "eth0", *drop], host)
        publish = [sys.executable, "-m", "narrowcast.cli", "publish", str(tmp_path / "rows.jsonl")]
        cast.add("publisher", [*publish, "--rate", str(what.rate), "--url", url], 0)
        turns = [what.faults[turn % len(what.faults)] for turn in range(int(what.seconds / what.pause))]
        history.asked = set(turns)
        end: Callable[[], None] = lambda: None  # noqa: E731
        for fault in turns:
            time.sleep(what.pause)
            end()
            end = cast.strike(fault)
            history.fault(fault)
        time.sleep(what.pause)
        end()
        until(lambda: cast.processes["publisher"].poll() is not None, "the publisher did not end", 120)
        published = (tmp_path / "publisher.log").read_text()
        assert cast.processes["publisher"].returncode == 0, published

        begun = time.monotonic()
        where: dict[int, tuple[int, int]] = {}
        switches, term = set(), 0
        for line in hosts.run([sys.executable, "-c", DUMP, url], 0).splitlines():
            sequence, index, row = json.loads(line)
            if sequence == "switch":
                switches.add(index)
                continue
            if sequence == "term":
                term = index
                continue
            assert row["n"] not in where, f"message {row['n']} stands in the log twice"
            where[row["n"]] = (sequence, index)
            history.logged(0, sequence, index, row)
        last = max(where.values())

        def reached(desk: str, name: str) -> tuple[int, int]:
            return max(point(at) for at in json.loads(written(tmp_path, desk, name)[-1])["position"].values())

        until(lambda: all(reached(*who) >= last for who in everybody), "not drained within 60 s")
        print(f"drained {time.monotonic() - begun:.1f} s after the end; {len(switches)} plan switches, term {term}")
        assert len(switches) >= what.seconds * (0.5 if what.coordinators else 1), "plans were hardly switched"
        assert term > sum("coordinator" in fault for fault in turns) / 2, "nobody took over"
    for n, row in enumerate(rows):
        history.acked(0, *where.get(n, (0, n)), row)
    for desk, name in everybody:
        found = lines(tmp_path, desk, name)
        first = next(x["position"] for x in found if x["position"])
        history.subscribed(name, what.subscribers[name], {int(shard): point(at) for shard, at in first.items()})
        for x in found:
            assert "gap" not in x
            for at_, payload in x.get("messages", ()):
                history.delivered(name, 0, *point(at_), json.loads(payload))
    verdict = check(history, wants=lambda profile, row: row["symbol"] in what.wishes[profile])
    print(verdict)
    assert verdict.sound, str(verdict)
    assert verdict.counts, str(verdict)


def started(what: Disaster, cast: Cast, url: str) -> None:
    """NATS, source and a coordinator at the first host, a desk at each of the others; or coordinators behind those."""
    folder, hosts = cast.folder, cast.hosts
    common = f'nats = "{url}"\n[multicast]\ninterface = "eth0"\ndomain = 71\ngroups = 8\n'
    (folder / "nats.conf").write_text(
        f'listen: "{hosts.address(0)}:4222"\nauthorization {{ user: narrowcast, password: secret }}\n'
        f'jetstream {{ store_dir: "{folder}/js" }}\n'
    )
    cast.add("nats-server", [server_binary(), "-c", str(folder / "nats.conf")], 0)
    python = [sys.executable, "-m", "narrowcast.deliver.processes.roles"]
    (folder / "source.toml").write_text(common + '[source]\nname = "source-0"\n')
    leads = f'[coordinator]\nplan = "{folder}/plan"\nkey = ["symbol"]\nevery = {what.every}\n'
    (folder / "coordinator.toml").write_text(common + leads)
    places = {f"coordinator-{k}": 1 + len(what.desks) + k for k in range(what.coordinators)} or {"coordinator": 0}
    for name, host in places.items():
        cast.add(name, [*python, "coordinator", str(folder / "coordinator.toml")], host)
    cast.add("source", [*python, "source", str(folder / "source.toml")], 0)
    for k, (desk, here) in enumerate(what.desks.items()):
        wanted = "".join(f"{name} = {json.dumps(profile)}\n" for name, profile in here.items())
        rest = f'[edge]\nname = "{desk}"\nout = "out-{desk}"\n[edge.subscriptions]\n{wanted}'
        (folder / f"{desk}.toml").write_text(common + rest)
        cast.add(desk, [*python, "edge", str(folder / f"{desk}.toml")], k + 1)
