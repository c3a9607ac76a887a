"""Loss at every host, each role killed in turn, a plan switch every second: nothing missed, nothing repeated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from narrowcast.deliver.transport.nats.server import server_binary
from narrowcast.deliver.wire import bare_of, index_of, sequence_of
from narrowcast.model import Demand, Interest
from narrowcast.model.folder import write_tables
from narrowcast.plans.channels import api as channels
from narrowcast.testing.history import History, check
from system.hosts import Hosts

SECONDS = int(os.environ.get("DISASTER_SECONDS", "60"))
RATE, EVERY, LOSS = 300, 5.0, 0.05
SYMBOLS = ["IBM", "MSFT", "GE", "HP"]
WISHES = {
    "symbol = 'IBM'": ["IBM"],
    "symbol IN ('GE', 'MSFT')": ["GE", "MSFT"],
    "symbol <> 'HP'": ["IBM", "MSFT", "GE"],
}
EDGES = {f"desk-{k}": profile for k, profile in enumerate(WISHES)}
DUMP = """
import asyncio, json, sys
from narrowcast.deliver.processes.backbone import backbone
from narrowcast.deliver.wire import Batch, decode_entry
async def run():
    base = await backbone(sys.argv[1], name="checker")
    after = 0
    while found := (await base.log.read(0, after, most=256)).entries:
        for entry in found:
            batch = decode_entry(entry.data)
            for index, payload in enumerate(batch.payloads if isinstance(batch, Batch) else ()):
                print(json.dumps([entry.sequence, index, json.loads(payload)]))
        after = found[-1].sequence
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

    def kill(self, name: str) -> None:
        self.processes[name].kill()
        self.processes[name].wait(10)
        self.start(name)


def lines(folder: Path, name: str) -> list[dict[str, Any]]:
    path = folder / f"out-{name}" / f"{name}.jsonl"
    data = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]


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
    users = [*EDGES]
    pairs = [(SYMBOLS.index(s), k) for k, wanted in enumerate(WISHES.values()) for s in wanted]
    flow, user = zip(*pairs, strict=True)
    interest = Interest.from_pairs(flow, user, [4.0, 3.0, 2.0, 1.0], flow_names=SYMBOLS, user_names=users)
    demand = Demand(interest, key=("symbol",))
    write_tables(channels.plan(demand, groups=2, sessions=3, method="gf").to_tables(), tmp_path / "plan")
    rows = [{"symbol": SYMBOLS[n % 4], "n": n} for n in range(RATE * SECONDS)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    history = History()
    with Hosts(4) as hosts:
        url = f"nats://narrowcast:secret@{hosts.address(0)}:4222"
        common = f'nats = "{url}"\n[multicast]\ninterface = "eth0"\ndomain = 71\ngroups = 8\n'
        (tmp_path / "nats.conf").write_text(
            f'listen: "{hosts.address(0)}:4222"\nauthorization {{ user: narrowcast, password: secret }}\n'
            f'jetstream {{ store_dir: "{tmp_path}/js" }}\n'
        )
        roles = {
            "coordinator": f'[coordinator]\nplan = "{tmp_path}/plan"\nkey = ["symbol"]\nevery = 1\n',
            "source": '[source]\nname = "source-0"\n',
        }
        cast = Cast(hosts, tmp_path)
        cast.add("nats-server", [server_binary(), "-c", str(tmp_path / "nats.conf")], 0)
        python = [sys.executable, "-m", "narrowcast.deliver.processes.roles"]
        for role, rest in roles.items():
            (tmp_path / f"{role}.toml").write_text(common + rest)
            cast.add(role, [*python, role, str(tmp_path / f"{role}.toml")], 0)
        for k, (name, profile) in enumerate(EDGES.items()):
            rest = (
                f'[edge]\nname = "{name}"\nout = "out-{name}"\n[edge.subscriptions]\n{name} = {json.dumps(profile)}\n'
            )
            (tmp_path / f"{name}.toml").write_text(common + rest)
            cast.add(name, [*python, "edge", str(tmp_path / f"{name}.toml")], k + 1)
        until(lambda: all(any(x["position"] for x in lines(tmp_path, name)) for name in EDGES), "not subscribed")

        for host in range(4):
            drop = ["-m", "statistic", "--mode", "random", "--probability", str(LOSS), "-j", "DROP"]
            hosts.run(["iptables", "-A", "INPUT", "-i", "eth0", *drop], host)
        publish = [sys.executable, "-m", "narrowcast.cli", "publish", str(tmp_path / "rows.jsonl"), "--rate", str(RATE)]
        cast.add("publisher", [*publish, "--url", url], 0)
        victims = ["source", "desk-0", "coordinator", "nats-server", "desk-1", "desk-2"]
        history.asked = set(victims[: int(SECONDS / EVERY)])
        for turn in range(int(SECONDS / EVERY)):
            time.sleep(EVERY)
            victim = victims[turn % len(victims)]
            cast.kill(victim)
            history.fault(victim)
        until(lambda: cast.processes["publisher"].poll() is not None, "the publisher did not end", 120)
        published = (tmp_path / "publisher.log").read_text()
        assert cast.processes["publisher"].returncode == 0, published

        where: dict[int, tuple[int, int]] = {}
        for line in hosts.run([sys.executable, "-c", DUMP, url], 0).splitlines():
            sequence, index, row = json.loads(line)
            assert row["n"] not in where, f"message {row['n']} stands in the log twice"
            where[row["n"]] = (sequence, index)
            history.logged(0, sequence, index, row)
        last, begun = max(where.values()), time.monotonic()

        def drained() -> bool:
            places = [[point(at) for x in lines(tmp_path, name) for at in x["position"].values()] for name in EDGES]
            return all(max(each) >= last for each in places)

        until(drained, "not drained within 60 s")
        print(f"drained {time.monotonic() - begun:.1f} s after the end")
        epochs = hosts.run([sys.executable, "-m", "narrowcast.cli", "top", "--json", "--url", url], 0)
        shown = json.loads(epochs)
        print(
            f"epoch {shown['epoch']}, repaired {[edge['repaired'] for edge in shown['edges']]} since their last start"
        )
        assert shown["epoch"] > SECONDS / 6, "plans were hardly switched"
    for n, row in enumerate(rows):
        history.acked(0, *where.get(n, (0, n)), row)
    for name, profile in EDGES.items():
        found = lines(tmp_path, name)
        first = next(x["position"] for x in found if x["position"])
        history.subscribed(name, profile, {int(shard): point(at) for shard, at in first.items()})
        for x in found:
            assert "gap" not in x
            for at, payload in x.get("messages", ()):
                history.delivered(name, 0, *point(at), json.loads(payload))
    verdict = check(history, wants=lambda profile, row: row["symbol"] in WISHES[profile])
    print(verdict)
    assert verdict.sound, str(verdict)
    assert verdict.counts, str(verdict)
