"""Three sites as bridges with IGMP snooping and routed links between them: what the plan predicts is on the wires."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from history import check
from narrowcast.plans.network.result import NetworkPlan
from narrowcast.plans.network.wire import wire_loads
from system.sites import FLOWS, PACKING, SITES, RunningNetwork, Sites, make_network_plan, make_network_rows, until

SIZE, MESSAGES, RATE = 1150, 12_000, 800
NEAR = 0.05  # how near what is measured must be to what was predicted
HEAD = 190  # bytes of a packet in a site beside the message: IP, UDP, RTPS, the frame and its seal
SMALL = 600  # a packet of fewer bytes holds no message
SECONDS = MESSAGES / RATE


class Meters:
    """What comes to every receiver by each group: packets with messages, and all bytes.

    Packets without a message are smaller: DDS's own heartbeats, a few a second while a group is in use.
    """

    def __init__(self, network: RunningNetwork) -> None:
        self.network = network
        self.addresses = [network.settings.address(g) for g in range(network.settings.groups)]
        small = "".join(f"-A PREROUTING -i eth0 -d {at}/32 -m length --length 0:{SMALL}\n" for at in self.addresses)
        for site in network.sites.sites:
            site.count(self.addresses)
            for host in range(site.n):
                site.run(["iptables-restore", "--noflush"], host, input=f"*raw\n{small}COMMIT\n")

    def read(self) -> dict[tuple[str, str], tuple[int, int]]:
        found = {}
        for site in self.network.sites.sites:
            for k in range(self.network.sites.receivers):
                shown = site.run(["iptables", "-t", "raw", "-L", "PREROUTING", "-v", "-n", "-x"], k + 1)
                rows = [line.split() for line in shown.splitlines()[2:]]
                counted = [row for row in rows if row and "DROP" not in row]
                small = {row[-3]: int(row[0]) for row in counted if row[-2] == "length"}
                for row in counted:
                    if re.fullmatch(r"239[\d.]+", row[-1]) and row[-1] in small:
                        packets = int(row[0]) - small[row[-1]]
                        found[f"{SITES[site.number]}-{k}", row[-1]] = (packets, int(row[1]))
        return found


def predicted_packets(network: RunningNetwork, messages: int) -> dict[tuple[str, str], int]:
    """Messages in each group that a receiver joins, by the plan's tables: as if every flow had as many."""
    found: dict[tuple[str, str], int] = {}
    plan, first = network.plan, 0
    assert isinstance(plan, NetworkPlan)
    users = plan.demand.interest.user_names or ()
    for site, its in zip(plan.problem.sites, plan.decisions.sites, strict=True):
        in_group: dict[int, int] = {}
        for session in its.session_of.tolist():
            if session >= 0:
                group = int(its.group_of[session])
                in_group[group] = in_group.get(group, 0) + messages // FLOWS
        for at in range(site.flow.size):
            session = int(its.session_of[site.flow[at]])
            if not its.alone[at]:
                group = int(its.group_of[session])
                found[users[site.users[site.user[at]]], network.settings.address(first + group)] = in_group[group]
        first += int(its.group_of.max(initial=-1)) + 2
    return found


class Ledger:
    """What was published, and that everybody got exactly what they want of it, in order."""

    def __init__(self, network: RunningNetwork) -> None:
        self.network, self.rows = network, list[dict[str, Any]]()

    def publish(self, count: int, rate: int) -> None:
        some = make_network_rows(count, SIZE, len(self.rows))
        self.rows += some
        self.network.publish(some, rate)

    def check(self, seconds: float = 120.0) -> None:
        due = {n: [r["n"] for r in self.rows if r["flow"] in text] for n, text in self.network.wishes.items()}
        for name, wanted in due.items():
            until(lambda n=name, w=wanted: len(self.network.received(n)) >= len(w), f"{name} lacks some", seconds)  # type: ignore[misc]
            got = [row["n"] for row in self.network.received(name)]
            assert got == wanted, f"{name}: {len(got)} came, {len(wanted)} were due"

    def warm_up(self) -> None:
        """Until a round of messages comes without the log: all relays are in the plan, and all groups joined."""
        for _ in range(30):
            before = sum(ways["log"] for ways in self.network.ways().values())
            self.publish(10 * FLOWS, 1000)
            self.check()
            time.sleep(1.2)  # counts are told once a second
            ways = self.network.ways()
            if len(ways) == len(self.network.wishes) and sum(each["log"] for each in ways.values()) == before:
                return
        raise AssertionError("everything comes from the log")


def near(measured: float, predicted: float) -> bool:
    return abs(measured - predicted) <= NEAR * predicted


@pytest.mark.nightly
@pytest.mark.engines
@pytest.mark.xdist_group("multicast")
@pytest.mark.parametrize("receivers", [2, 8])
def test_links_and_sites_carry_what_the_plan_predicts_and_losses_in_a_site_stay_there(
    receivers: int, tmp_path: Path
) -> None:
    plan = make_network_plan(receivers, size=SIZE, rate=RATE / FLOWS)
    predicted = wire_loads(plan, **PACKING._asdict()) * SECONDS
    with Sites(receivers) as sites:
        network = RunningNetwork(sites, tmp_path, plan)
        network.start()
        network.wait_until_joined()
        ledger, meters = Ledger(network), Meters(network)
        for site in sites.sites:
            site.wait_for_snooping()
        ledger.warm_up()
        whole, before, after = _measured(ledger, meters)
        for edge, due in zip(plan.demand.topology.edges.tolist(), predicted.tolist(), strict=True):
            link = tuple(sorted(edge))
            print(f"link {link}: {whole.links[link]} bytes, {due:.0f} predicted: {whole.links[link] / max(due, 1):.3f}")
            assert near(whole.links[link], due) if due else whole.links[link] < 100_000
        _check_groups(network, before, after)
        _lose(sites, network)
        lossy, _, _ = _measured(ledger, meters)
        print(f"without loss {whole}, with loss {lossy}")
        assert whole.from_log == lossy.from_log == 0, "the log repaired what a relay could"
        for link, size in lossy.links.items():
            assert size <= whole.links[link] * 1.01 + 10_000, f"repairs on link {link}"
        verdict = check(network.history(), wants=lambda text, row: row["flow"] in text)
        assert verdict.sound, verdict


class Measured(NamedTuple):
    """Bytes on each link, and messages that came from the log."""

    links: dict[Any, int]
    from_log: int


def _measured(ledger: Ledger, meters: Meters) -> tuple[Measured, Any, Any]:
    """Publish, until everybody has everything; with it the meters in the sites before and after."""
    network = ledger.network

    def from_log() -> int:
        return sum(ways["log"] for ways in network.ways().values())

    links, packets, read = network.sites.on_links(), meters.read(), from_log()
    ledger.publish(MESSAGES, RATE)
    ledger.check()
    time.sleep(1.2)  # counts are told once a second
    after = network.sites.on_links()
    found = Measured({link: after[link] - links[link] for link in after}, from_log() - read)
    return found, packets, meters.read()


def _check_groups(
    network: RunningNetwork, before: dict[Any, tuple[int, int]], after: dict[Any, tuple[int, int]]
) -> None:
    expected = predicted_packets(network, MESSAGES)
    assert expected, "the plan has no multicast"
    for (name, address), (packets, size) in after.items():
        fresh = packets - before[name, address][0]
        wide = size - before[name, address][1]
        due = expected.get((name, address), 0)
        if due or fresh > 50:
            print(
                f"{name} {address}: {fresh} packets, {due} predicted; {wide} bytes, {due * (SIZE + HEAD)} predicted: "
                f"{wide / max(due * (SIZE + HEAD), 1):.3f}"
            )
            assert near(fresh, due)
            assert near(wide, due * (SIZE + HEAD))


def _lose(sites: Sites, network: RunningNetwork) -> None:
    """From now on each receiver loses one packet of a group in twenty."""
    rule = "-t raw -A PREROUTING -i eth0 -d 239.60.0.0/16 -m statistic --mode random --probability 0.05 -j DROP"
    for site in sites.sites:
        for host in range(1, sites.receivers + 1):
            site.run(["iptables", *rule.split()], host)


@pytest.mark.soak
@pytest.mark.engines
@pytest.mark.xdist_group("multicast")
def test_relays_killed_packets_lost_and_plans_switched_for_two_minutes(tmp_path: Path) -> None:
    seconds = float(os.environ.get("NARROWCAST_SOAK_S", "120"))
    receivers = int(os.environ.get("NARROWCAST_SOAK_RECEIVERS", "8"))
    plan = make_network_plan(receivers, size=SIZE)
    with Sites(receivers) as sites:
        network = RunningNetwork(sites, tmp_path, plan, every=2.0)
        network.start()
        network.wait_until_joined()
        ledger = Ledger(network)
        ledger.publish(10 * FLOWS, 1000)
        ledger.check()
        _lose(sites, network)
        first, over, killed = network.top()["epoch"], threading.Event(), []

        def kill() -> None:
            s = 0
            while not over.wait(10.0):
                process = network.relays[s % 3]
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                network.relays[s % 3] = network.start_relay(s % 3)
                killed.append(s)
                s += 1

        killer = threading.Thread(target=kill)
        killer.start()
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                ledger.publish(100 * FLOWS, 400)
        finally:
            over.set()
            killer.join()
        ledger.check(180.0)
        verdict = check(network.history(), wants=lambda text, row: row["flow"] in text)
        switched = network.top()["epoch"] - first
        ways = network.ways()
        print(f"{len(ledger.rows)} messages, {len(killed)} kills, {switched} switches, {verdict}, {ways}")
        assert verdict.sound, verdict
        assert verdict.counts, verdict
        assert len(killed) >= seconds // 12
        assert switched >= seconds / 2 / 3
        assert sum(each["channel"] + each["unicast"] for each in ways.values()) > 0
