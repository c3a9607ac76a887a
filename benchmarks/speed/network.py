"""A network plan against what one would do instead, on the same traffic: bytes between sites, and CPU of receivers.

    python benchmarks/speed/network.py [--receivers 4] [--messages 6000] [--rate 600]

Three sites as bridges with IGMP snooping, joined by routed links, all network namespaces of this machine; twelve flows,
four of which enter at each site. Each receiver gets exactly what it wants in every way:

- *network plan*: one plan for all of it, relays at the gateways
- *NATS*: a server per site with gateways between them, a subject per flow, nothing kept
- *semantic channels*: brokers at the gateways, which send to each receiver by itself
- *flooding*: one tree for everything, and one group in each site that everybody joins

Bytes are those of the links between gateways, both ways, in packets of 1500 bytes; their price is what the links cost
per GB, which is what a plan minimises. narrowcast's are encrypted, NATS's
are not. narrowcast's sources read the log by links of their own, which are not counted; so with semantic channels is
the way from where a message enters to the root of its tree. CPU is that of the receivers' processes per message that
they want, JSON read and a line written for each. On a busy machine CPU means little. Needs Linux and root.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import narrowcast as nc
from narrowcast.plans.network.decisions import Decisions, NetworkProblem, SitePlan
from narrowcast.plans.network.plan import packed
from narrowcast.plans.network.route import profiles
from narrowcast.plans.network.wire import wire_loads
from system.sites import (
    FLOWS,
    PACKING,
    SITES,
    RunningNetwork,
    Sites,
    make_network_plan,
    make_network_rows,
    three_sites,
    until,
)

SIZE, WARM = 400, 20


class Traffic(NamedTuple):
    receivers: int
    messages: int
    rate: int

    def rows(self, first: int, count: int) -> list[dict[str, Any]]:
        return make_network_rows(count, SIZE, first)


class Found(NamedTuple):
    links: dict[tuple[int, int], int]
    cpu_s: float
    useful: int


Received = Callable[[], Mapping[str, int]]  # messages that each receiver has got so far


def measured(
    sites: Sites, processes: Sequence[subprocess.Popen[str]], send: Callable[[Sequence[dict[str, Any]]], None],
    received: Received, wishes: Mapping[str, str], traffic: Traffic,
) -> Found:  # fmt: skip
    """What links and receivers had to do from the first message to the last that somebody wants."""

    def done(rows: Sequence[Mapping[str, Any]], before: Mapping[str, int]) -> None:
        due = {name: sum(row["flow"] in text for row in rows) for name, text in wishes.items()}
        until(lambda: all(received()[n] - before.get(n, 0) >= k for n, k in due.items()), "some is missing", 240)

    warm = traffic.rows(0, WARM * FLOWS)
    for _ in range(3):  # the last plan is in force, groups are joined, servers know who wants what
        before = received()
        send(warm)
        done(warm, before)
        time.sleep(2.0)
    cpu = sum(_cpu(process) for process in processes)
    links, before = sites.on_links(), received()
    rows = traffic.rows(0, traffic.messages)
    send(rows)
    done(rows, before)
    after = sites.on_links()
    useful = sum(received().values()) - sum(before.values())
    return Found(
        {link: after[link] - links[link] for link in links},
        sum(_cpu(process) for process in processes) - cpu,
        useful,
    )


def _cpu(process: subprocess.Popen[str]) -> float:
    times = psutil.Process(process.pid).cpu_times()
    return float(times.user + times.system)


def by_narrowcast(plan: nc.Plan, wishes: Mapping[str, str], traffic: Traffic) -> Found:
    with tempfile.TemporaryDirectory() as name, Sites(traffic.receivers) as sites:
        network = RunningNetwork(sites, Path(name), plan, wishes=wishes, packed=True)
        network.start()
        network.wait_until_joined()

        def received() -> dict[str, int]:
            return {name: len(network.received(name)) for name in wishes}

        def send(rows: Sequence[dict[str, Any]]) -> None:
            network.publish(rows, traffic.rate)

        return measured(sites, network.edges, send, received, wishes, traffic)


def semantic_plan(traffic: Traffic, wishes: Mapping[str, str]) -> nc.Plan:
    """Channels for the same profiles at the same gateways, planned on a sample of the messages."""
    import pyarrow as pa

    demand = three_sites(traffic.receivers, size=SIZE)
    texts = [wishes[name] for name in demand.interest.user_names or ()]
    clients = [(k, int(site)) for k, site in enumerate(demand.site_of)]
    sample = pa.Table.from_pylist(traffic.rows(0, 20 * FLOWS))
    plan: nc.Plan = nc.semantic.plan(demand.topology, texts, clients, sample, np.arange(20 * FLOWS) % FLOWS % 3)
    return plan


def flooding(traffic: Traffic) -> nc.Plan:
    """Everything on one tree to all sites, and there in one group: as if somebody in each of them wanted all of it."""
    d = three_sites(traffic.receivers, size=SIZE, rate=traffic.rate / FLOWS, groups=1, sessions=1)
    n, all_of = d.interest.n_users, np.repeat(np.arange(len(SITES)), FLOWS)
    more = tuple(f"everything-{name}" for name in SITES)
    interest = nc.Interest.from_pairs(
        np.concatenate((d.interest.flow_of_pair, np.tile(np.arange(FLOWS), len(SITES)))),
        np.concatenate((d.interest.users, n + all_of)), d.interest.rates, n_users=n + len(SITES),
        flow_names=d.interest.flow_names, user_names=(*(d.interest.user_names or ()), *more),
    )  # fmt: skip
    d = replace(
        d, interest=interest, hosts=(*d.hosts, *more), host=np.arange(n + len(SITES)), bound=np.inf, multicast=True,
        host_site=np.concatenate((d.host_site, np.arange(len(SITES)))),
    )  # fmt: skip
    problem = NetworkProblem(d, channels=1, filters=0)
    sites = tuple(
        SitePlan(np.zeros(site.flows.size, np.int64), np.zeros(1, np.int64), np.zeros(site.flow.size, np.bool_))
        for site in problem.sites
    )
    nothing = np.zeros(0, np.int64)
    made = Decisions(np.zeros(FLOWS, np.int64), (np.array([0, 1]),), nothing, nothing, sites)
    return packed(problem, made, made, "stitched", 0)


# NATS: a server per site.


@contextmanager
def servers(sites: Sites, folder: Path) -> Iterator[list[str]]:
    from narrowcast.deliver.transport.nats.server import server_binary

    urls = []
    for site, name in zip(sites.sites, SITES, strict=True):
        others = "".join(
            f'{{name: {other}, url: "nats://10.99.0.{k + 1}:7222"}}\n' for k, other in enumerate(SITES) if other != name
        )
        at = f"{site.address(0)}:4222"
        path = folder / f"{name}.conf"
        path.write_text(
            f'server_name: {name}\nlisten: "{at}"\n'
            f'gateway {{ name: {name}\nlisten: "10.99.0.{site.number + 1}:7222"\ngateways: [{others}] }}\n'
        )
        site.start(["bash", "-c", f"exec {server_binary()} -c {path} > {path}.log 2>&1"], 0)
        urls.append(f"nats://{at}")
    yield urls


def by_nats(wishes: Mapping[str, str], traffic: Traffic) -> Found:
    with tempfile.TemporaryDirectory() as name, Sites(traffic.receivers) as sites, servers(sites, Path(name)) as urls:
        time.sleep(3.0)
        folder, processes = Path(name), []
        for site, url in zip(sites.sites, urls, strict=True):
            for k in range(traffic.receivers):
                who = f"{SITES[site.number]}-{k}"
                flows = [f"F{n:02d}" for n in range(FLOWS) if f"F{n:02d}" in wishes[who]]
                command = [sys.executable, __file__, "--receive", url, str(folder / who), *flows]
                processes.append(site.start(command, k + 1))
        until(lambda: all((folder / who).exists() for who in wishes), "receivers do not start")

        def received() -> dict[str, int]:
            return {who: (folder / who).read_bytes().count(b"\n") for who in wishes}

        def send(rows: Sequence[dict[str, Any]]) -> None:
            publishing = []
            for site, url in zip(sites.sites, urls, strict=True):
                mine = [row for row in rows if int(row["flow"][1:]) % len(SITES) == site.number]
                path = folder / f"rows-{site.number}"
                path.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in mine))
                command = [sys.executable, __file__, "--send", url, str(path), str(traffic.rate / len(SITES))]
                publishing.append(site.start(command, 0))
            for process in publishing:
                told = process.communicate(timeout=240)[0]
                assert process.returncode == 0, told

        return measured(sites, processes, send, received, wishes, traffic)


async def receive(url: str, path: Path, flows: Sequence[str]) -> None:
    import nats

    client = await nats.connect(url, pending_size=1 << 26)
    with path.open("wb") as out:

        async def take(message: Any) -> None:
            json.loads(message.data)
            out.write(message.data + b"\n")
            out.flush()

        for flow in flows:
            await client.subscribe(flow, cb=take)
        await client.flush()
        await asyncio.Event().wait()


async def send(url: str, path: Path, rate: float) -> None:
    import nats

    client = await nats.connect(url)
    began = time.monotonic()
    for n, line in enumerate(path.read_bytes().splitlines()):
        await client.publish(json.loads(line)["flow"], line)
        if n % 20 == 19:
            await asyncio.sleep(max(0.0, began + n / rate - time.monotonic()))
    await client.flush()
    await client.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--receivers", type=int, default=4, help="in each site")
    parser.add_argument("--messages", type=int, default=6000)
    parser.add_argument("--rate", type=int, default=600, help="messages a second")
    parser.add_argument("--receive", nargs="+", help=argparse.SUPPRESS)
    parser.add_argument("--send", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.receive:
        asyncio.run(receive(given.receive[0], Path(given.receive[1]), given.receive[2:]))
    elif given.send:
        asyncio.run(send(given.send[0], Path(given.send[1]), float(given.send[2])))
    else:
        compare(Traffic(given.receivers, given.messages, given.rate))


def compare(traffic: Traffic) -> None:
    plan = make_network_plan(traffic.receivers, size=SIZE, rate=traffic.rate / FLOWS)
    wishes = profiles(plan)
    if plan.decisions.direct.size:
        sys.exit("flows go straight, by the log's server and not by the links: take other receivers or rates")
    on_wire = wire_loads(plan, **PACKING._asdict()).sum() * traffic.messages / traffic.rate
    print(
        f"{traffic.messages:,} messages of {SIZE} bytes, {traffic.rate} a second, {traffic.receivers} receivers a site"
    )
    print(f"the plan predicts {on_wire / 1e6:.2f} MB between sites")
    heads = ("MB between sites", "their price", "receiver µs")
    print(f"{'':>18} " + " ".join(f"{head:>18} {'of the plan’s':>13}" for head in heads))
    ways: dict[str, Callable[[], Found]] = {
        "network plan": lambda: by_narrowcast(plan, wishes, traffic),
        "NATS": lambda: by_nats(wishes, traffic),
        "semantic channels": lambda: by_narrowcast(semantic_plan(traffic, wishes), wishes, traffic),
        "flooding": lambda: by_narrowcast(flooding(traffic), wishes, traffic),
    }
    topology = plan.demand.topology
    price = dict(zip(map(tuple, topology.edges.tolist()), topology.cost.tolist(), strict=True))
    first: list[float] = []
    for name, way in ways.items():
        found = way()
        size = sum(found.links.values()) / 1e6
        dear = sum(price[link] * n for link, n in found.links.items()) / 1e9
        measures = [size, dear, 1e6 * found.cpu_s / found.useful]
        first = first or measures
        shown = zip(measures, first, strict=True)
        print(f"{name:>18} " + " ".join(f"{value:>18.3g} {value / own:>13.2f}" for value, own in shown), flush=True)


if __name__ == "__main__":
    main()
