"""Whole systems for the console's tests: a plan of each kind, subscribers, traffic, and a console beside them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import narrowcast as nc
from narrowcast.deliver.client.connect import connect
from narrowcast.deliver.processes.backbone import backbone, url_of
from narrowcast.model import Demand, Interest, Topology, Tree
from narrowcast.model.network_demand import NetworkDemand
from narrowcast.plans.filters.result import TreeDemand, placed
from narrowcast.plans.network.route import profiles
from narrowcast.plans.queries.constants import KM
from narrowcast.plans.queries.result import QueryDemand

SYMBOLS = ["IBM", "MSFT", "GE", "HP", "SAP", "ORCL", "INTC", "CSCO"]
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


@dataclass(frozen=True)
class Given:
    """A plan, and its subscribers: name, profile and gateway of each."""

    plan: nc.Plan
    wishes: tuple[tuple[str, str, str | None], ...]


def message(n: int) -> dict[str, Any]:
    return {"symbol": SYMBOLS[(n * n + n // 3) % 8], "price": n * 7 % 100, "n": n}


def channels(groups: int = 2) -> Given:
    wants = {"desk-1": ["IBM", "MSFT"], "desk-2": ["GE"], "desk-3": ["IBM", "HP", "SAP"], "desk-4": ["ORCL", "GE"],
             HOSTILE: ["INTC", "CSCO", "MSFT"]}  # fmt: skip
    pairs = [(SYMBOLS.index(symbol), u) for u, flows in enumerate(wants.values()) for symbol in flows]
    flow, user = zip(*pairs, strict=True)
    rates = [40.0, 25.0, 20.0, 10.0, 8.0, 6.0, 5.0, 4.0]
    interest = Interest.from_pairs(flow, user, rates, flow_names=SYMBOLS, user_names=[*wants])
    plan = nc.channels.plan(Demand(interest, key=("symbol",)), groups=groups, sessions=4, method="gf")
    profiles = {who: f"symbol IN ({', '.join(map(repr, flows))})" for who, flows in wants.items()}
    profiles["desk-3"] += " AND price > 20"
    return Given(plan, tuple((who, text, None) for who, text in profiles.items()))


def hybrid(groups: int = 2) -> Given:
    given = channels()
    return Given(nc.plan(given.plan.demand, "hybrid", groups=groups), given.wishes)


def filters(at: tuple[int, int] = (0, 1)) -> Given:
    tree = Tree([-1, 0, 0, 1, 1, 2], names=["hub", "west", "east", "w-1", "w-2", "e-1"])
    plan = placed(TreeDemand(tree, np.array([3.0, 2.0, 1.0, 1.0, 1.0, 1.0])), [*at], {"objective": "traffic", "k": 2})
    wishes = (("ibm", "symbol = 'IBM'", "w-1"), ("cheap", "price < 20", "w-2"), ("dear", "price > 80", "e-1"))
    return Given(plan, wishes)


def semantic(method: str = "search") -> Given:
    topology = Topology([(0, 1), (1, 2), (1, 3)], names=["hub", "mid", "left", "right"])
    wishes = (("ibm", "symbol = 'IBM'", "left"), ("cheap", "price < 20", "right"))
    window = pa.Table.from_pylist([message(n) for n in range(100)])
    texts = [text for _, text, _ in wishes]
    plan = nc.semantic.plan(topology, texts, [(0, 2), (1, 3)], window, sources=0, method=method)
    return Given(plan, wishes)


def queries(km: float = KM) -> Given:
    boxes = np.array([[[0.0, 20.0], [0.0, 900.0]], [[10.0, 30.0], [0.0, 900.0]], [[70.0, 90.0], [0.0, 900.0]]])
    plan = nc.plan(QueryDemand(boxes, ("price", "n"), ["low", "lower", "high"]), "queries", km=km)
    wishes = (("low", "price BETWEEN 0 AND 20 AND n BETWEEN 0 AND 900", None),
              ("high", "price BETWEEN 70 AND 90 AND n BETWEEN 0 AND 900", None))  # fmt: skip
    return Given(plan, wishes)


def network(price_send: float = 5.0) -> Given:
    """Two sites and the link between them; two desks in each, and flows that enter at either."""
    topology = Topology([(0, 1)], names=["London", "Paris"])
    wants = [[0, 1, 2], [1, 2, 3], [0, 4, 5], [4, 5, 6, 7]]
    flow, user = zip(*((k, u) for u, flows in enumerate(wants) for k in flows), strict=True)
    desks = ["London-0", "London-1", "Paris-0", "Paris-1"]
    interest = Interest.from_pairs(flow, user, [20.0] * 8, flow_names=SYMBOLS, user_names=desks)
    demand = NetworkDemand(
        topology, interest, sites=("London", "Paris"), gateway=[0, 1], groups=[3, 3], sessions=[4, 4],
        hosts=tuple(desks), host_site=[0, 0, 1, 1], host=[0, 1, 2, 3], source=[k % 2 for k in range(8)],
        key=("symbol",),
    )  # fmt: skip
    plan = nc.plan(demand, "network", channels=3, price_group=0.0, price_send=price_send)
    return Given(plan, tuple((who, text, None) for who, text in profiles(plan).items()))


KINDS: dict[str, Callable[[], Given]] = {
    "channels": channels,
    "hybrid": hybrid,
    "filters": filters,
    "semantic": semantic,
    "queries": queries,
    "network": network,
}
OTHERS: dict[str, Callable[[], Given]] = {  # another plan for the same subscribers
    "channels": lambda: channels(4),
    "hybrid": lambda: hybrid(1),
    "filters": lambda: filters((0, 2)),
    "semantic": lambda: semantic("merge"),
    "queries": lambda: queries(1e6),
    "network": lambda: network(0.0),
}


@dataclass
class Running:
    """A system with its subscribers and its console."""

    folder: Path
    url: str
    console: subprocess.Popen[str]
    loop: asyncio.AbstractEventLoop
    unsubscribe: Callable[[str], None]

    def registry(self) -> tuple[dict[str, Any], list[str]]:
        """The epoch and the names of subscriptions, read from the registry itself, not through the console."""
        from narrowcast.deliver.parts import records

        async def read() -> tuple[dict[str, Any], list[str]]:
            base = await backbone(url_of(self.folder), name="test")
            try:
                epoch = await base.registry.get(records.EPOCH)
                keys = await base.registry._kv.keys()
                names = [records.name_of(key) for key in keys if key.startswith(records.SUBSCRIPTION)]
                return records.unpack(epoch.data or b"{}"), sorted(names)
            finally:
                await base.close()

        return asyncio.run_coroutine_threadsafe(read(), self.loop).result(30)


@contextmanager
def running_console(folder: Path, given: Given, domain: int, *options: str, rate: int = 200) -> Iterator[Running]:
    """A system in `folder` with traffic of `rate` messages a second, and a console on a free port."""
    with nc.up(
        given.plan, folder, domain=domain, multicast=given.plan.kind in ("channels", "queries", "network")
    ) as system:
        loop = asyncio.new_event_loop()
        ready, ended = threading.Event(), asyncio.Event()
        closing: dict[str, asyncio.Event] = {who: asyncio.Event() for who, _, _ in given.wishes}
        thread = threading.Thread(
            target=loop.run_until_complete, args=(_clients(system.folder, given, ready, ended, closing, rate),)
        )
        thread.start()
        try:
            assert ready.wait(60), "no subscriber got ready"
            command = [
                sys.executable,
                "-m",
                "narrowcast.cli",
                "console",
                "--system",
                str(system.folder),
                "--port",
                "0",
                *options,
            ]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            try:
                url = process.stdout.readline().strip()
                assert url.startswith("http://127.0.0.1:"), url
                yield Running(
                    system.folder, url, process, loop, lambda who: loop.call_soon_threadsafe(closing[who].set)
                )
            finally:
                process.terminate()
                assert process.wait(15) == 0, "the console did not end well"
                process.stdout.close()
        finally:
            loop.call_soon_threadsafe(ended.set)
            thread.join(30)
            loop.close()


async def _clients(
    folder: Path,
    given: Given,
    ready: threading.Event,
    ended: asyncio.Event,
    closing: dict[str, asyncio.Event],
    rate: int,
) -> None:
    async with AsyncExitStack() as stack:
        publisher = await stack.enter_async_context(connect(folder))
        tasks = []
        for who, profile, gateway in given.wishes:
            connection = await stack.enter_async_context(connect(folder, gateway=gateway))
            subscription = await connection.subscribe(profile, name=who).ready(60)
            tasks.append(asyncio.ensure_future(_drain(subscription)))
            tasks.append(asyncio.ensure_future(_close(subscription, closing[who])))
        tasks.append(asyncio.ensure_future(_publish(publisher, rate)))
        ready.set()
        await ended.wait()
        for task in tasks:
            task.cancel()


async def _close(subscription: Any, when: asyncio.Event) -> None:
    await when.wait()
    await subscription.close()


async def _drain(subscription: Any) -> None:
    async for _ in subscription:
        pass


async def _publish(publisher: Any, rate: int) -> None:
    n = 0
    while True:
        with suppress(nc.errors.TransportError):
            await publisher.publish([message(n + k) for k in range(rate // 10)])
        n = (n + rate // 10) % 900
        await asyncio.sleep(0.1)
