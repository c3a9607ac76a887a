"""What a process tells about itself, once or twice a second, for people to look at. Nothing depends on it."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from narrowcast.deliver.parts.edge import Edge
from narrowcast.deliver.processes.backbone import Backbone
from narrowcast.deliver.processes.drive import Driver
from narrowcast.deliver.processes.logs import EventLog
from narrowcast.deliver.processes.overview import LATENCY, SAMPLES
from narrowcast.deliver.transport import Multicast
from narrowcast.deliver.wire import sequence_of
from narrowcast.errors import TransportError

STARTED = time.time()
SAMPLED_S = 2.0  # after a frame before its latency is looked up


def snapshot(driver: Driver) -> dict[str, Any]:
    """The counts of a part, its driver and its carriers, and how far behind each subscription is."""
    part = driver.part
    counts = {name: count for name, count in (part.counts | driver.counts).items() if count}
    carried: dict[str, int] = {}
    for carrier in driver.engines.distinct:
        for name, count in getattr(carrier, "counts", {}).items():
            carried[name] = carried.get(name, 0) + count
    found: dict[str, Any] = {
        "name": part.name,
        "role": getattr(part, "role", type(part).__name__.lower()),
        "counts": counts,
        "carried": carried,
        "started": STARTED,
        "at": time.monotonic(),
        "process": f"{socket.gethostname()}-{os.getpid()}",
        "cpu": time.process_time(),  # of all its parts
        "epoch": getattr(part, "epoch", {}).get("current", 0),
    }
    if isinstance(part, Edge):
        joined = {a.group for a in part._joined if isinstance(a, Multicast)}
        found["groups"] = sorted(joined)
        found["subscriptions"] = {
            name: {
                "profile": each.profile.text,
                "lag": sum(max(0, sequence_of(r.head) - sequence_of(r.mark)) for r in each.readers.values()),
            }
            for name, each in part.subscriptions.items()
        }
    return found


def snapshots_of(drivers: Sequence[Driver]) -> list[dict[str, Any]]:
    """The snapshots of all parts of a process."""
    return [snapshot(driver) | dict(driver.extra()) for driver in drivers]


async def sample_latency(driver: Driver) -> None:
    """Count how long one message took from the log to here. Frames carry no time: the log knows when it took the entry.

    Between hosts that is as exact as their clocks agree. One entry is read for a sample, so there are few of them.
    """
    now = time.time()
    if driver.heard is None or now < driver.heard[2] + SAMPLED_S:
        return
    shard, sequence, at = driver.heard
    driver.heard = None
    found = await driver.engines.log.read(shard, sequence - 1, most=1, upto=sequence)
    for stamp in (entry.stamp for entry in found.entries if entry.stamp):
        driver.counts[LATENCY] += max(0, round(1e6 * (at - datetime.fromisoformat(stamp).timestamp())))
        driver.counts[SAMPLES] += 1


async def report_for_ever(backbone: Backbone, driver: Driver, *, extra: Callable[[], Mapping[str, Any]] = dict) -> None:
    """Publish a snapshot for ever, with whatever else is worth telling, and log what has happened.

    Who watches takes silence for trouble: of the few that all depend on it must be short, edges may be many.
    """
    events, every = EventLog(), 1.0 if isinstance(driver.part, Edge) else 0.5
    while True:
        with suppress(TransportError):
            if isinstance(driver.part, Edge):
                await sample_latency(driver)
            now = snapshot(driver) | dict(extra())
            events.take(now)
            await backbone.publish_statistics(driver.part.name, json.dumps(now).encode())
        await asyncio.sleep(every)
