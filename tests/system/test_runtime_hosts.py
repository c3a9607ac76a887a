"""One source and eight receivers, each a host of its own on a bridge with IGMP snooping."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from narrowcast import channels
from narrowcast.channels.folder import as_plan
from narrowcast.model import Interest
from narrowcast.model.plan import Plan, save
from narrowcast.runtime.deploy import profiles_of
from narrowcast.transport.dds_config import DdsSettings
from narrowcast.transport.nats_server import server_binary
from system.hosts import Hosts

RECEIVERS, FLOWS, GROUPS, MESSAGES = 8, 16, 4, 16_000
SETTINGS = DdsSettings(interface="eth0", domain=70, groups=8)


def make_plan(folder: Path) -> Plan:
    """Two kinds of receivers, so that groups differ, and one that wants almost nothing."""
    rng = np.random.default_rng(3)
    wanted = rng.random((FLOWS, RECEIVERS)) < 0.2
    wanted[: FLOWS // 2, : RECEIVERS // 2] |= rng.random((FLOWS // 2, RECEIVERS // 2)) < 0.6
    wanted[:, RECEIVERS - 1] = np.arange(FLOWS) == FLOWS - 1  # one that wants almost nothing
    wanted[np.arange(RECEIVERS - 1), np.arange(RECEIVERS - 1)] = True  # and none that wants nothing
    flow, user = np.nonzero(wanted)
    names = [f"F{k:02d}" for k in range(FLOWS)]
    users = [f"desk-{k}" for k in range(RECEIVERS)]
    interest = Interest.from_pairs(flow, user, np.ones(FLOWS), flow_names=names, user_names=users)
    plan = as_plan(channels.plan(interest, groups=GROUPS, sessions=5, method="gf"))
    save(plan, folder)
    return plan


def configuration(folder: Path, hosts: Hosts, rest: str) -> str:
    return (
        f'nats = "nats://narrowcast:secret@{hosts.address(0)}:4222"\n'
        f'[multicast]\ninterface = "eth0"\ndomain = {SETTINGS.domain}\ngroups = {SETTINGS.groups}\n{rest}'
    )


def received(folder: Path, name: str) -> list[dict[str, object]]:
    path = folder / f"out-{name}" / f"{name}.jsonl"
    data = path.read_bytes() if path.exists() else b""
    return [json.loads(line) for line in data[: data.rfind(b"\n") + 1].splitlines()]


def until(done: object, seconds: float = 60.0) -> None:
    assert callable(done)
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)


def test_each_interface_gets_the_packets_the_plan_predicts_and_none_of_other_groups(tmp_path: Path) -> None:
    plan = make_plan(tmp_path / "plan")
    profiles = profiles_of(plan, key=["flow"])
    session = dict(zip(*(plan.tables["flow_session"][c].to_pylist() for c in ("flow", "session")), strict=True))
    group = dict(zip(*(plan.tables["session_group"][c].to_pylist() for c in ("session", "group")), strict=True))
    in_group = {g: [f for f in session if group[session[f]] == g] for g in range(GROUPS)}
    members: dict[str, set[int]] = {name: set() for name in profiles}
    for name, g in zip(*(plan.tables["subscriber_group"][c].to_pylist() for c in ("subscriber", "group")), strict=True):
        members[name].add(g)
    assert any(len(joined) < GROUPS for joined in members.values()), "nothing to keep away from anybody"

    with Hosts(RECEIVERS + 1) as hosts:
        python = [sys.executable, "-m", "narrowcast.runtime.roles"]
        (tmp_path / "nats.conf").write_text(
            f'listen: "{hosts.address(0)}:4222"\nauthorization {{ user: narrowcast, password: secret }}\n'
            f'jetstream {{ store_dir: "{tmp_path}/js" }}\n'
        )
        hosts.start([server_binary(), "-c", str(tmp_path / "nats.conf")], 0)
        parts = {
            "coordinator": f'[coordinator]\nplan = "{tmp_path}/plan"\nkey = ["flow"]\n',
            "source": '[source]\nname = "source-0"\nmessages = 1\nsettle_ms = 50\nheartbeat_ms = 1000\n',
        }
        for role, rest in parts.items():
            (tmp_path / f"{role}.toml").write_text(configuration(tmp_path, hosts, rest))
            hosts.start([*python, role, str(tmp_path / f"{role}.toml")], 0)
        for k, (name, profile) in enumerate(sorted(profiles.items())):
            rest = (
                f'[edge]\nname = "{name}"\nout = "out-{name}"\n[edge.subscriptions]\n{name} = {json.dumps(profile)}\n'
            )
            (tmp_path / f"{name}.toml").write_text(configuration(tmp_path, hosts, rest))
            hosts.start([*python, "edge", str(tmp_path / f"{name}.toml")], k + 1)
        addresses = {g: SETTINGS.address(g) for g in range(GROUPS)}
        hosts.count(addresses.values())
        hosts.wait_for_snooping()
        wanted = {name: {SETTINGS.address(g) for g in joined} for name, joined in members.items()}
        known = set(addresses.values())
        for k, name in enumerate(sorted(profiles)):
            until(lambda k=k, name=name: hosts.memberships_of(k + 1) & known == wanted[name])
        time.sleep(3)  # the epoch is cut over, old channels are left

        before = [hosts.counters(k + 1) for k in range(RECEIVERS)]
        rows = [{"flow": f"F{n % FLOWS:02d}", "n": n, "text": "x" * 150} for n in range(MESSAGES)]
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        url = f"nats://narrowcast:secret@{hosts.address(0)}:4222"
        publish = [sys.executable, "-m", "narrowcast.cli", "publish", str(tmp_path / "rows.jsonl")]
        hosts.run([*publish, "--url", url, "--rate", "20000"], 0)
        for name in profiles:
            due = [row for row in rows if row["flow"] in profiles[name]]
            until(lambda name=name, due=due: _count(tmp_path, name) >= len(due))
            got = [json.loads(p) for line in received(tmp_path, name) for _, p in line.get("messages", ())]  # type: ignore[misc, attr-defined]
            assert got == due, name
        for k, name in enumerate(sorted(profiles)):
            after = hosts.counters(k + 1)
            for g, address in addresses.items():
                packets = after[address] - before[k][address]
                predicted = MESSAGES // FLOWS * len(in_group[g]) if g in members[name] else 0
                print(f"{name} group {g}: {packets} packets, {predicted} predicted")
                assert abs(packets - predicted) <= 0.05 * predicted, (
                    f"{name} got {packets} packets of group {g}, not {predicted}"
                )


def _count(folder: Path, name: str) -> int:
    return sum(len(line.get("messages", ())) for line in received(folder, name))  # type: ignore[arg-type]
