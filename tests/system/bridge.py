"""One source and several receivers, each a host of its own on a bridge: run a plan there and read the meters."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from narrowcast.deliver.transport.dds.config import DdsSettings
from narrowcast.deliver.transport.nats.server import server_binary
from narrowcast.model import Demand, Interest
from narrowcast.model.folder import write_tables
from narrowcast.plans.channels import api as channels
from narrowcast.plans.channels.result import ChannelsPlan
from narrowcast.plans.channels.route import profiles
from system.hosts import Hosts

RECEIVERS, FLOWS = 8, 16
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def interest() -> Interest:
    """Two kinds of receivers, so that groups differ, and one that wants almost nothing."""
    rng = np.random.default_rng(3)
    wanted = rng.random((FLOWS, RECEIVERS)) < 0.2
    wanted[: FLOWS // 2, : RECEIVERS // 2] |= rng.random((FLOWS // 2, RECEIVERS // 2)) < 0.6
    wanted[:, RECEIVERS - 1] = np.arange(FLOWS) == FLOWS - 1  # one that wants almost nothing
    wanted[np.arange(RECEIVERS - 1), np.arange(RECEIVERS - 1)] = True  # and none that wants nothing
    flow, user = np.nonzero(wanted)
    names = [f"F{k:02d}" for k in range(FLOWS)]
    users = [f"host{k}" for k in range(RECEIVERS)]
    return Interest.from_pairs(flow, user, [1.0] * FLOWS, flow_names=names, user_names=users)


def make_plan(groups: int, sessions: int) -> ChannelsPlan:
    demand = Demand(interest(), key=("flow",))
    return channels.plan(demand, groups=groups, sessions=sessions, method="search", seed=0)


def make_rows(count: int) -> list[dict[str, Any]]:
    """Not all alike, so that they do not go as columns: a packet has one message."""
    rows = [{"flow": f"F{n % FLOWS:02d}", "n": n, "text": "x" * 150} for n in range(count)]
    return [row | {"odd": True} if n % 2 else row for n, row in enumerate(rows)]


@dataclass(frozen=True)
class Reading:
    """What one receiver got: messages it wanted, packets of each group, bytes at its interface, CPU seconds."""

    useful: int
    packets: Mapping[int, int]
    bytes: int
    cpu_s: float

    @property
    def filtered(self) -> int:
        """Packets that arrived and held nothing wanted; each holds one message."""
        return sum(self.packets.values()) - self.useful


def members_of(plan: ChannelsPlan) -> dict[str, set[int]]:
    """The groups of each receiver, as the plan has them."""
    found: dict[str, set[int]] = {}
    for user, group in zip(*(each.tolist() for each in plan.joins), strict=True):
        found.setdefault(plan.interest.user_names[user], set()).add(group)
    return found


def until(done: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)


def received(folder: Path, name: str) -> list[dict[str, Any]]:
    """The messages that a receiver has written down."""
    path = folder / f"out-{name}" / f"{name}.jsonl"
    data = path.read_bytes() if path.exists() else b""
    lines = [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]
    return [json.loads(payload) for line in lines for _, payload in line.get("messages", ())]


class Bridge:
    """Runs plans one after the other on the same hosts: a packet per message, nothing packed together."""

    def __init__(self, hosts: Hosts, folder: Path) -> None:
        self.hosts, self.folder, self._runs = hosts, folder, 0

    def run(self, plan: ChannelsPlan, rows: Sequence[Mapping[str, Any]], *, rate: int = 20_000) -> dict[str, Reading]:
        """Deliver the rows by the plan; every receiver must get exactly what it wants, in order."""
        self._runs += 1
        folder = self.folder / f"run-{self._runs}"
        write_tables(plan.to_tables(), folder / "plan")
        settings = DdsSettings(interface="eth0", domain=70 + self._runs, groups=8, network=f"239.77.{self._runs}.0/24")
        wishes = profiles(plan)
        edges = self._start(folder, settings, wishes)
        try:
            return self._measure(folder, settings, plan, wishes, edges, rows, rate)
        finally:
            self.hosts.end_all()

    def _start(self, folder: Path, settings: DdsSettings, profiles: Mapping[str, str]) -> dict[str, int]:
        """The processes; the ids of the receivers'."""
        at = self.hosts.address(0)
        (folder / "nats.conf").write_text(
            f'listen: "{at}:4222"\nauthorization {{ user: narrowcast, password: secret }}\n'
            f'jetstream {{ store_dir: "{folder}/js" }}\n'
        )
        self.hosts.start([server_binary(), "-c", str(folder / "nats.conf")], 0)
        common = (
            f'nats = "{self.url}"\n[multicast]\ninterface = "eth0"\ndomain = {settings.domain}\n'
            f'groups = {settings.groups}\nnetwork = "{settings.network}"\npack = false\n'
        )
        parts = {
            "coordinator": f'[coordinator]\nplan = "{folder}/plan"\nkey = ["flow"]\n',
            "source": '[source]\nname = "source-0"\nmessages = 1\nsettle_ms = 50\nheartbeat_ms = 1000\n',
        }
        for role, rest in parts.items():
            self._role(folder, role, role, common + rest, 0)
        pids = {}
        for k, (name, profile) in enumerate(sorted(profiles.items())):
            wish = f"[edge.subscriptions]\n{name} = {json.dumps(profile)}\n"
            rest = f'[edge]\nname = "{name}"\nout = "out-{name}"\n{wish}'
            pids[name] = self._role(folder, "edge", name, common + rest, k + 1)
        return pids

    def _role(self, folder: Path, role: str, name: str, text: str, host: int) -> int:
        (folder / f"{name}.toml").write_text(text)
        command = [sys.executable, "-m", "narrowcast.deliver.processes.roles", role, str(folder / f"{name}.toml")]
        quiet = ["bash", "-c", f'exec "$@" >> {folder}/{name}.log 2>&1', "-", *command]
        return self.hosts.start(quiet, host).pid

    @property
    def url(self) -> str:
        return f"nats://narrowcast:secret@{self.hosts.address(0)}:4222"

    def _measure(
        self,
        folder: Path,
        settings: DdsSettings,
        plan: ChannelsPlan,
        profiles: Mapping[str, str],
        edges: Mapping[str, int],
        rows: Sequence[Mapping[str, Any]],
        rate: int,
    ) -> dict[str, Reading]:
        groups = sorted(set(plan.to_tables().tables["session_group"]["group"].to_pylist()))
        addresses = {g: settings.address(g) for g in groups}
        self.hosts.count(addresses.values())
        self.hosts.wait_for_snooping()
        joined = {name: {addresses[g] for g in found} for name, found in members_of(plan).items()}
        for k, name in enumerate(sorted(profiles)):
            until(lambda k=k, name=name: self._member(k) & set(addresses.values()) == joined[name])  # type: ignore[misc]
        time.sleep(3)  # the epoch is cut over, old channels are left
        before = {name: self._meters(k, edges[name], addresses) for k, name in enumerate(sorted(profiles))}
        self._publish(folder, rows, rate)
        due = {name: [row for row in rows if row["flow"] in profiles[name]] for name in profiles}
        for name in profiles:
            until(lambda name=name: len(received(folder, name)) >= len(due[name]))  # type: ignore[misc]
        found = {}
        for k, name in enumerate(sorted(profiles)):
            assert received(folder, name) == due[name], name
            packets, size, cpu = self._meters(k, edges[name], addresses)
            was = before[name]
            fresh = {g: packets[g] - was[0][g] for g in groups}
            found[name] = Reading(len(due[name]), fresh, size - was[1], cpu - was[2])
        return found

    def _publish(self, folder: Path, rows: Sequence[Mapping[str, Any]], rate: int) -> None:
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        publish = [sys.executable, "-m", "narrowcast.cli", "publish", str(folder / "rows.jsonl")]
        self.hosts.run([*publish, "--url", self.url, "--rate", str(rate)], 0)

    def _member(self, receiver: int) -> set[str]:
        return self.hosts.memberships_of(receiver + 1)

    def _meters(self, receiver: int, pid: int, addresses: Mapping[int, str]) -> tuple[dict[int, int], int, float]:
        counted = self.hosts.counters(receiver + 1)
        size = int(self.hosts.run(["cat", "/sys/class/net/eth0/statistics/rx_bytes"], receiver + 1))
        times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return {g: counted[at] for g, at in addresses.items()}, size, (int(times[11]) + int(times[12])) * TICK_S
