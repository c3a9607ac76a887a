"""Three sites as bridges with IGMP snooping, routed links between their gateways, and a network of its own for the log.

Every site is a set of `Hosts`: host 0 is the gateway, the others are receivers. Gateways are linked in a triangle by
routed veth pairs, which carry nothing but what brokers send each other; their brokers' addresses are on loopback. The
log is on a host that only gateways reach, each by a link of its own; receivers reach it through their gateway.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from history import History
from narrowcast.deliver.transport.dds.config import DdsSettings
from narrowcast.deliver.transport.nats.server import server_binary
from narrowcast.deliver.wire.place import bare_of, index_of, sequence_of
from narrowcast.model import Interest, Topology
from narrowcast.model.network_demand import NetworkDemand
from narrowcast.model.plan import Plan
from narrowcast.plans.network.plan import make
from narrowcast.plans.network.result import NetworkPlan
from narrowcast.plans.network.route import profiles
from system.hosts import Hosts

SITES, LINKS = ("London", "Paris", "Zurich"), ((0, 1), (1, 2), (0, 2))
FLOWS = 12
LOG = 3  # the number of the log's host beside the sites
USER = "narrowcast:secret"
ROLES = "narrowcast.deliver.processes.roles"


class Packing(NamedTuple):
    """How sources pack messages for the backbone: what `wire_loads` must know."""

    linger_s: float = 0.05
    most_bytes: int = 60_000
    most_messages: int = 500

    def as_settings(self) -> str:
        linger = f"settle_ms = {1000 * self.linger_s:g}\nlinger_ms = {1000 * self.linger_s:g}\n"
        return f"messages = {self.most_messages}\nbytes = {self.most_bytes}\n{linger}"


PACKING = Packing()


def three_sites(
    receivers: int, *, size: float, rate: float = 50.0, groups: int = 3, sessions: int = 4
) -> NetworkDemand:
    """Flows that enter at each site in turn; receivers want most of what is near, and some of what is far."""
    rng = np.random.default_rng(5)
    n = len(SITES) * receivers
    home = np.repeat(np.arange(len(SITES)), receivers)
    source = np.arange(FLOWS) % len(SITES)
    wanted = rng.random((FLOWS, n)) < np.where(source[:, None] == home[None, :], 0.6, 0.25)
    wanted[np.arange(n) % FLOWS, np.arange(n)] = True
    flow, user = np.nonzero(wanted)
    users = [f"{SITES[home[u]]}-{u % receivers}" for u in range(n)]
    interest = Interest.from_pairs(
        flow, user, [rate] * FLOWS, n_users=n, flow_names=[f"F{k:02d}" for k in range(FLOWS)], user_names=users
    )
    topology = Topology(np.array(LINKS), [2.0, 2.0, 3.0], [1.0, 1.0, 1.0], n_brokers=3, names=SITES)
    return NetworkDemand(
        topology, interest, sites=SITES, gateway=np.arange(3), groups=np.full(3, groups),
        sessions=np.full(3, sessions),
        hosts=tuple(users), host_site=home, host=np.arange(n), source=source, size=np.full(FLOWS, size), key=("flow",),
    )  # fmt: skip


def make_network_plan(receivers: int, *, size: float, rate: float = 50.0, **options: Any) -> NetworkPlan:
    """Groups for nothing and copies dear, so that there is multicast in sites as small as these."""
    demand = three_sites(receivers, size=size, rate=rate)
    return make(demand, channels=4, filters=1, price_group=0.0, price_filter=0.0, price_send=5.0, **options)


class _Site(Hosts):
    """One bridge, with names and addresses of its own."""

    def __init__(self, number: int, n: int) -> None:
        super().__init__(n)
        self.number = number
        self.tag = f"nc{os.getpid()}s{number}"
        self.switch = f"{self.tag}-sw"

    def address(self, host: int) -> str:
        return f"10.{77 + self.number}.0.{host + 1}"


class Sites:
    """The sites, the links between them, and the log's host; use it as a context manager."""

    def __init__(self, receivers: int) -> None:
        self.receivers = receivers
        self.sites = [_Site(s, receivers + 1) for s in range(len(SITES))]
        self.log = _Site(LOG, 1)

    def __enter__(self) -> Sites:
        try:
            for each in (*self.sites, self.log):
                each._plug()
            self._link()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for each in (*self.sites, self.log):
            each.cleanup()

    def _ip(self, *lines: str) -> None:
        for line in lines:
            subprocess.run(["ip", *line.split()], check=True, capture_output=True, text=True, timeout=30)

    def _link(self) -> None:
        gates = [site.name(0) for site in self.sites]
        for gate in gates:
            subprocess.run(["ip", "netns", "exec", gate, "sysctl", "-qw", "net.ipv4.ip_forward=1"], check=True)
        for s, gate in enumerate(gates):
            self._ip(f"-n {gate} address add 10.99.0.{s + 1}/32 dev lo")
            self._ip(
                f"-n {gate} link add log0 type veth peer name gate{s} netns {self.log.name(0)}",
                f"-n {gate} address add 10.90.{s}.1/30 dev log0",
                f"-n {self.log.name(0)} address add 10.90.{s}.2/30 dev gate{s}",
                f"-n {gate} link set log0 up",
                f"-n {self.log.name(0)} link set gate{s} up",
                f"-n {gate} route add {self.log.address(0)}/32 via 10.90.{s}.2",
                f"-n {self.log.name(0)} route add 10.{77 + s}.0.0/24 via 10.90.{s}.1",
            )
            for host in range(1, self.receivers + 1):
                self._ip(f"-n {self.sites[s].name(host)} route add default via {self.sites[s].address(0)}")
        for u, v in LINKS:
            a, b = f"10.95.{u}{v}.1", f"10.95.{u}{v}.2"
            self._ip(
                f"-n {gates[u]} link add to{v} type veth peer name to{u} netns {gates[v]}",
                f"-n {gates[u]} address add {a}/30 dev to{v}",
                f"-n {gates[v]} address add {b}/30 dev to{u}",
                f"-n {gates[u]} link set to{v} up gso_max_segs 1",  # packets as a cable would have them
                f"-n {gates[v]} link set to{u} up gso_max_segs 1",
                f"-n {gates[u]} route add 10.99.0.{v + 1}/32 via {b} src 10.99.0.{u + 1}",
                f"-n {gates[v]} route add 10.99.0.{u + 1}/32 via {a} src 10.99.0.{v + 1}",
            )

    def sent(self, at: int, device: str, what: str = "bytes") -> int:
        """Bytes, or packets, that a gateway has sent out of a device."""
        return int(self.sites[at].run(["cat", f"/sys/class/net/{device}/statistics/tx_{what}"], 0))

    def on_links(self) -> dict[tuple[int, int], int]:
        """Bytes on each link of the backbone, both ways."""
        return {(u, v): self.sent(u, f"to{v}") + self.sent(v, f"to{u}") for u, v in LINKS}

    def from_log(self) -> int:
        """Bytes that the log's host has sent to the sites."""
        path = "/sys/class/net/gate{}/statistics/tx_bytes"
        return sum(int(self.log.run(["cat", path.format(s)], 0)) for s in range(len(SITES)))


def until(done: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, what
        time.sleep(0.2)


#: Prints what a log holds: a line for each message with its entry, its number there, and its text.
LOGGED = """
import asyncio, json, sys
from narrowcast.deliver.processes.backbone import backbone
from narrowcast.deliver.wire import Batch, decode_entry

async def main():
    base, after = await backbone(sys.argv[1], name="checker"), 0
    while found := (await base.log.read(0, after, most=256)).entries:
        after = found[-1].sequence
        for entry in found:
            batch = decode_entry(entry.data)
            for index, payload in enumerate(batch.payloads if isinstance(batch, Batch) else ()):
                print(json.dumps([entry.sequence, index, payload.decode()]))
    await base.close()

asyncio.run(main())
"""


def _point(place: int) -> tuple[int, int]:
    return bare_of(sequence_of(place)), index_of(place)


class RunningNetwork:
    """A plan on the sites: the log, a coordinator, and in each site a source, a broker, a relay and receivers.

    Other plans than those of networks have no relays; receivers are at the brokers. `packed`: messages share packets
    in the sites, as they do by default; without it a packet is one message, which can be counted.
    """

    def __init__(
        self, sites: Sites, folder: Path, plan: Plan, *, wishes: Mapping[str, str] | None = None,
        every: float | None = None, packed: bool = False,
    ) -> None:  # fmt: skip
        self.sites, self.folder, self.plan = sites, folder, plan
        plan.save(folder / "plan")
        self.relayed = isinstance(plan, NetworkPlan)
        groups = plan.machine_groups + 2 if isinstance(plan, NetworkPlan) else 2
        self.settings = DdsSettings(interface="eth0", domain=60, groups=groups, network="239.60.0.0/16")
        self.wishes = wishes or (profiles(plan) if isinstance(plan, NetworkPlan) else {})
        self.every, self.packed = every, packed
        self.log_url = f"nats://{USER}@{sites.log.address(0)}:4222"
        self.relays: list[subprocess.Popen[str]] = []
        self.edges: list[subprocess.Popen[str]] = []

    def start(self) -> None:
        log, user = self.sites.log, "authorization { user: narrowcast, password: secret }"
        self._nats(
            "hub", log, f'listen: "{log.address(0)}:4222"\n{user}\njetstream {{ store_dir: "{self.folder}/js" }}\n'
        )  # fmt: skip
        every = "" if self.every is None else f"every = {self.every}\n"
        self._role("coordinator", "coordinator", log, 0, f'[coordinator]\nplan = "{self.folder}/plan"\n{every}')
        for site in self.sites.sites:
            name = SITES[site.number]
            source = f'[source]\nname = "source-{name}"\ngateway = "{name}"\n{PACKING.as_settings()}'
            self._role("source", f"source-{name}", site, 0, source)
            self._role("broker", f"broker-{name}", site, 0, f'[broker]\nname = "{name}"\n')
            if self.relayed:
                self.relays.append(self.start_relay(site.number))
        for site in self.sites.sites:
            at = "" if self.relayed else f'gateway = "{SITES[site.number]}"\n'
            for k in range(self.sites.receivers):
                name = f"{SITES[site.number]}-{k}"
                wish = f"[edge.subscriptions]\n{name} = {json.dumps(self.wishes[name])}\n"
                text = f'[edge]\nname = "{name}"\nout = "out-{name}"\n{at}{wish}'
                self.edges.append(self._role("edge", name, site, k + 1, text))

    def start_relay(self, s: int) -> subprocess.Popen[str]:
        name = SITES[s]
        packing = "linger_ms = 5" if self.packed else "messages = 1"
        text = f'[relay]\ngateways = ["{name}"]\n[source]\n{packing}\nsettle_ms = 20\n'
        return self._role("relay", f"relay-{name}", self.sites.sites[s], 0, text)

    def _nats(self, name: str, hosts: Hosts, text: str) -> None:
        (self.folder / f"{name}.conf").write_text(text)
        quiet = f"exec {server_binary()} -c {self.folder}/{name}.conf >> {self.folder}/{name}.log 2>&1"
        hosts.start(["bash", "-c", quiet], 0)

    def _role(self, role: str, name: str, site: _Site, host: int, text: str) -> subprocess.Popen[str]:
        multicast = (
            f'[multicast]\ninterface = "eth0"\ndomain = {self.settings.domain}\ngroups = {self.settings.groups}\n'
            f'network = "{self.settings.network}"\npack = {str(self.packed).lower()}\n'
        )
        brokers = "".join(f'{name} = "tcp://10.99.0.{s + 1}:5600"\n' for s, name in enumerate(SITES))
        overlay = f'[overlay]\nkeys = "{self.folder}/keys"\n[overlay.brokers]\n{brokers}'
        path = self.folder / f"{name}.toml"
        path.write_text(f'nats = "{self.log_url}"\n{multicast}{overlay}{text}')
        quiet = f'exec "$@" >> {self.folder}/{name}.log 2>&1'
        return site.start(["bash", "-c", quiet, "-", sys.executable, "-m", ROLES, role, str(path)], host)

    # What there is to see.

    def received(self, name: str) -> list[dict[str, Any]]:
        path = self.folder / f"out-{name}" / f"{name}.jsonl"
        data = path.read_bytes() if path.exists() else b""
        lines = [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]
        return [json.loads(payload) for line in lines for _, payload in line.get("messages", ())]

    def history(self) -> History:
        """What the log holds, which is all that was acknowledged, and what every receiver was told and got."""
        history = History()
        shown = self.sites.log.run([sys.executable, "-c", LOGGED, self.log_url], 0)
        for sequence, index, payload in map(json.loads, shown.splitlines()):
            history.logged(0, sequence, index, json.loads(payload))
            history.acked(0, sequence, index, json.loads(payload))
        for name, text in self.wishes.items():
            data = (self.folder / f"out-{name}" / f"{name}.jsonl").read_bytes()
            lines = [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]
            first = next(line["position"] for line in lines if line["position"])
            history.subscribed(name, text, {int(shard): _point(at) for shard, at in first.items()})
            for line in lines:
                assert "gap" not in line
                for at, payload in line.get("messages", ()):
                    history.delivered(name, 0, *_point(at), json.loads(payload))
        return history

    def wait_until_joined(self) -> None:
        """Until every receiver has joined the groups of the plan in its site, by multicast or not at all."""
        until(lambda: all((self.folder / f"out-{n}" / f"{n}.jsonl").exists() for n in self.wishes), "no subscriptions")
        until(lambda: self.counts_of("epoch") > 0 and all(self._settled().values()), "some have not joined")

    def _settled(self) -> dict[str, bool]:
        shown = self.top()
        edges = {edge["name"] for edge in shown["edges"]}
        return {name: name in edges for name in self.wishes}

    def top(self) -> dict[str, Any]:
        done = self.sites.log.run(
            [sys.executable, "-m", "narrowcast.cli", "top", "--json", "--system", self.log_url], 0, check=False
        )
        found: dict[str, Any] = json.loads(done) if done.strip() else {"edges": [], "nodes": [], "epoch": 0}
        return found

    def counts_of(self, name: str) -> Any:
        return self.top()[name]

    def publish(self, rows: Sequence[Mapping[str, Any]], rate: int) -> None:
        (self.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        command = [sys.executable, "-m", "narrowcast.cli", "publish", str(self.folder / "rows.jsonl")]
        publishing = self.sites.log.start([*command, "--system", self.log_url, "--rate", str(rate)], 0)
        told = publishing.communicate(timeout=240)[0]
        assert publishing.returncode == 0, told

    def ways(self) -> dict[str, dict[str, int]]:
        return {edge["name"]: edge["ways"] for edge in self.top()["edges"]}


def make_network_rows(count: int, size: int, first: int = 0) -> list[dict[str, Any]]:
    """Rows whose payloads have about so many bytes."""
    blank = len(json.dumps({"flow": "F00", "n": 100_000, "text": ""}, separators=(",", ":")))
    return [
        {"flow": f"F{n % FLOWS:02d}", "n": 100_000 + n, "text": "x" * (size - blank)}
        for n in range(first, first + count)
    ]
