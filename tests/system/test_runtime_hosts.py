"""One source and eight receivers, each a host of its own on a bridge with IGMP snooping."""

from __future__ import annotations

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
