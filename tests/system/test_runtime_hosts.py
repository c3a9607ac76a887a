"""One source and eight receivers, each a host of its own on a bridge with IGMP snooping."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from system.bridge import FLOWS, RECEIVERS, Bridge, make_plan, make_rows, members_of
from system.hosts import Hosts

GROUPS, SESSIONS, MESSAGES = 4, 8, 8_000


@pytest.mark.long
def test_the_plan_puts_on_each_interface_what_it_predicts_and_less_than_flooding_does(tmp_path: Path) -> None:
    plan, rows = make_plan(GROUPS, SESSIONS), make_rows(MESSAGES)
    group = dict(zip(plan.interest.flow_names, plan.group_of_flow.tolist(), strict=True))
    in_group = {g: [f for f in group if group[f] == g] for g in set(group.values())}
    members = members_of(plan)
    assert any(len(joined) < len(in_group) for joined in members.values()), "nothing to keep away from anybody"
    with Hosts(RECEIVERS + 1) as hosts:
        bridge = Bridge(hosts, tmp_path)
        planned, flooded = bridge.run(plan, rows), bridge.run(make_plan(1, 1), rows)
    for name, reading in planned.items():
        for g, packets in reading.packets.items():
            predicted = MESSAGES // FLOWS * len(in_group[g]) if g in members[name] else 0
            print(f"{name} group {g}: {packets} packets, {predicted} predicted")
            assert abs(packets - predicted) <= 0.05 * predicted, f"{name} got {packets} of group {g}, not {predicted}"
    for name, reading in flooded.items():
        assert abs(sum(reading.packets.values()) - MESSAGES) <= 0.05 * MESSAGES, f"{name} was not flooded"
        assert planned[name].filtered <= reading.filtered, name
    assert sum(r.bytes for r in planned.values()) < 0.9 * sum(r.bytes for r in flooded.values())


def test_processes_of_one_host_hear_their_own_groups_from_another() -> None:
    """Four groups, each joined by one process: Linux must not give its packets to the other three."""
    with Hosts(2) as hosts:
        hosts.wait_for_snooping()
        listening = [_node(hosts, 1, "listen", group) for group in range(4)]
        assert [_line(process) for process in listening] == ["ready"] * 4
        assert _line(_node(hosts, 0, "speak", 4)) == "heard by 4 of 4"
        assert [_line(process) for process in listening] == [f"heard group {group}" for group in range(4)]


_NODE = """
import sys, time
from narrowcast.deliver.routing.address import Multicast
from narrowcast.deliver.transport.dds.config import DdsSettings, partition
from narrowcast.deliver.transport.dds.node import DdsNode

node = DdsNode(DdsSettings("eth0", domain=64, groups=4))
role, number = sys.argv[1], int(sys.argv[2])
if role == "listen":
    reader, _ = node.reader(partition(Multicast(number, 0)))
    print("ready", flush=True)
    found = []
    while not found:
        node.wait()
        found = node.take(reader, 9)
    print("heard", found[0].decode(), flush=True)
    time.sleep(20)
else:
    mouths = [node.writer(partition(Multicast(group, 0))) for group in range(number)]
    while not all(mouth.get_matched_subscriptions() for mouth in mouths):
        time.sleep(0.02)
    for group, mouth in enumerate(mouths):
        node.write(mouth, f"group {group}".encode())
    end, acks = time.monotonic() + 10, 0
    while acks < number and time.monotonic() < end:
        acks = sum(mouth._wait_for_acks(mouth._ref, 10_000_000) == 0 for mouth in mouths)
    print(f"heard by {acks} of {number}", flush=True)
"""


def _node(hosts: Hosts, host: int, role: str, number: int) -> subprocess.Popen[str]:
    return hosts.start([sys.executable, "-c", _NODE, role, str(number)], host)


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()
