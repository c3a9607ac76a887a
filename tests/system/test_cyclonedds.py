"""The Cyclone DDS export, run for real: participants in network namespaces that know only the exported files."""

from __future__ import annotations

import csv
import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import narrowcast as nc
from narrowcast.exports import Options, export
from system.hosts import PROBE, Hosts

pytest.importorskip("cyclonedds", reason="needs Cyclone DDS (pip install narrowcast[dds])")
if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("iptables") is None:
    pytest.skip("needs root, iproute2 and iptables for network namespaces", allow_module_level=True)

pytestmark = pytest.mark.xdist_group("namespaces")

DISCOVERY = "239.255.0.1"
COUNT = 200
# Four desks, none of which wants all: every group has somebody outside it.
WISHES = {
    "desk A": ["IBM", "MSFT", "<odd> & 'name'"],
    "desk B": ["IBM", "ORCL"],
    "desk C": ["SAP", "<odd> & 'name'"],
    "desk D": ["SAP", "ORCL", "BMW"],
}


def interest() -> nc.Interest:
    flows, desks = sorted({flow for wanted in WISHES.values() for flow in wanted}), list(WISHES)
    pairs = [(flows.index(flow), desks.index(desk)) for desk, wanted in WISHES.items() for flow in wanted]
    flow, user = zip(*pairs, strict=True)
    return nc.Interest.from_pairs(flow, user, [1.0] * len(flows), flow_names=flows, user_names=desks)


def channels() -> nc.Plan:
    return nc.channels.plan(interest(), groups=3, sessions=4, method="gf", seed=0)


def hybrid() -> nc.Plan:
    return nc.channels.hybrid(interest(), groups=2, unicast="greedy-pair", cap=0.3, seed=0)


class Floor:
    """A publisher at host 0, and a desk at each other host, in the order of WISHES."""

    def __init__(self, hosts: Hosts, folder: Path) -> None:
        self.hosts = hosts
        env = {"CYCLONEDDS_URI": f"file://{folder / 'cyclonedds.xml'}"}
        command = [sys.executable, str(Path(__file__).with_name("participant.py"))]
        self.desks = {
            desk: hosts.start([*command, "take", str(folder), desk, str(COUNT)], host, env=env)
            for host, desk in enumerate(WISHES, start=1)
        }
        self.publisher = hosts.start([*command, "publish", str(folder), "-", str(COUNT)], 0, env=env)

    @staticmethod
    def hear(process: subprocess.Popen[str]) -> Any:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], 60)
        assert ready, "a participant says nothing"
        line = process.stdout.readline()
        try:
            return json.loads(line)
        except ValueError:
            process.kill()
            raise AssertionError(line + process.stdout.read()) from None

    @staticmethod
    def tell(process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()


@pytest.mark.parametrize("planned", [channels, hybrid])
def test_exactly_the_planned_groups_are_joined_and_nobody_else_hears_them(
    planned: Callable[[], nc.Plan], tmp_path: Path
) -> None:
    plan = planned()
    folder = tmp_path / "dds"
    options = Options(interface="eth0", base_address="239.77.3.0/24")
    export(plan, "cyclonedds", folder, options)
    groups = sorted(set(plan.to_tables().tables["session_group"]["group"].to_pylist()))
    addresses = {group: options.address(group) for group in groups}
    joins: dict[str, set[str]] = {desk: set() for desk in WISHES}
    for row in plan.to_tables().tables["subscriber_group"].to_pylist():
        joins[row["subscriber"]].add(addresses[row["group"]])
    taken = {desk: _flows_taken(folder, desk) for desk in WISHES}
    assert any(len(joins[desk]) < len(addresses) for desk in WISHES), "somebody must be outside some group"
    with Hosts(1 + len(WISHES)) as hosts:
        floor = Floor(hosts, folder)
        for process in (*floor.desks.values(), floor.publisher):
            assert floor.hear(process) == "ready"
        # The kernel's own table: the planned groups, discovery, and nothing else.
        for host, desk in enumerate(WISHES, start=1):
            assert hosts.memberships_of(host) == joins[desk] | {DISCOVERY}, desk
        assert hosts.memberships_of(0) == {DISCOVERY}
        hosts.wait_for_snooping()
        hosts.count([*addresses.values(), *(hosts.address(host) for host in range(hosts.n))])
        for process in (floor.publisher, *floor.desks.values()):
            floor.tell(process)
        assert floor.hear(floor.publisher)["sent"] > 0
        for desk, process in floor.desks.items():
            got = floor.hear(process)["flows"]
            for flow in WISHES[desk]:
                assert got.get(flow) == list(range(COUNT)), f"{desk} wants all of {flow}"
            # Other sessions of its groups reach its host and go no further.
            assert set(got) <= taken[desk], desk
        arrived = {desk: hosts.counters(host) for host, desk in enumerate(WISHES, start=1)}
    carried = set()
    for desk, counted in arrived.items():
        for address in addresses.values():
            if address in joins[desk]:
                assert counted[address] > 0
                carried.add(address)
            else:
                assert counted[address] == 0, f"{desk} is not in {address} and got {counted[address]} packets of it"
    assert carried == set(addresses.values()), "every group must have carried something"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def _flows_taken(folder: Path, desk: str) -> set[str]:
    """The flows of the partitions that a desk reads, by the exported tables."""
    mine = {row["partition"] for row in rows(folder / "subscribers.csv") if row["subscriber"] == desk}
    alone = rows(folder / "unicast.csv") if (folder / "unicast.csv").exists() else []
    apart = {row["flow"] for row in alone if row["subscriber"] == desk}
    return apart | {row["flow"] for row in rows(folder / "flows.csv") if row["partition"] in mine}


def test_the_counters_see_packets_that_nobody_joined_for() -> None:
    """Without snooping everything reaches every host, and is counted there: none counted means none came."""
    with Hosts(3, snooping=False) as hosts:
        hosts.count([PROBE])
        assert hosts.floods()
        assert hosts.memberships_of(1) == set()


def test_a_unicast_pair_reaches_its_desk_alone(tmp_path: Path) -> None:
    """By its own host's address; the discovery group, which everybody hears, carries none of it."""
    made = nc.channels.hybrid(interest(), groups=1, unicast="reverse", seed=0)
    plan = made
    assert plan.to_tables().tables["unicast"].num_rows, "this plan must send something by unicast"
    folder = tmp_path / "dds"
    export(plan, "cyclonedds", folder, Options(interface="eth0"))
    with Hosts(1 + len(WISHES)) as hosts:
        floor = Floor(hosts, folder)
        for process in (*floor.desks.values(), floor.publisher):
            assert floor.hear(process) == "ready"
        hosts.count([DISCOVERY, *(hosts.address(host) for host in range(hosts.n))])
        for process in (floor.publisher, *floor.desks.values()):
            floor.tell(process)
        for desk, process in floor.desks.items():
            got = floor.hear(process)["flows"]
            assert all(got.get(flow) == list(range(COUNT)) for flow in WISHES[desk])
        served = set(plan.to_tables().tables["unicast"]["subscriber"].to_pylist())
        for host, desk in enumerate(WISHES, start=1):
            counted = hosts.counters(host)
            # COUNT messages of one flow fill at least a few packets; discovery in these seconds is a handful.
            if desk in served:
                assert counted[hosts.address(host)] > 5
            assert counted[DISCOVERY] < COUNT / 4


def test_hosts_are_gone_after_a_failure() -> None:
    hosts, started = Hosts(2), []

    def fail() -> None:
        with hosts:
            started.append(hosts.start(["sleep", "60"], 0))
            raise RuntimeError("on purpose")

    with pytest.raises(RuntimeError, match="on purpose"):
        fail()
    assert started[0].poll() is not None
    assert not list(Path("/run/netns").glob(f"{hosts.tag}-*"))
