"""The end of the demo: the plan put on the wire, with its source killed in the middle."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

MESSAGES, DESKS = 2000, 5
PATIENCE_S = 60.0
WATCHED, RATE = 12, 500  # desks and messages a second while somebody looks


def live(folder: Path) -> dict[str, Any]:
    """Start a system, subscribe a few desks, publish, kill the source half-way, and compare with direct matching.

    Where the engines are missing it says so instead; the rest of the demo needs none of them.
    """
    from narrowcast.deliver.processes.supervise import start_detached, stop_running
    from narrowcast.errors import NarrowcastError
    from narrowcast.model.tables import read_table
    from narrowcast.profiles import Matcher

    log = read_table(folder / "market" / "messages.parquet", name="messages").slice(0, MESSAGES)
    wanted = _profiles(folder, log)
    rows, cols = Matcher(wanted).match(log)
    expected = [rows[cols == at].tolist() for at in range(len(wanted))]
    data = folder / "live"
    try:
        start_detached([str(folder / "plan"), "--system", str(data)], data)
    except NarrowcastError as error:
        return {"skipped": str(error)}
    try:
        begin = time.perf_counter()
        got = asyncio.run(_deliver(data, log, wanted, expected))
        seconds = time.perf_counter() - begin
    finally:
        stop_running(data)
    exact = all(have == want for have, want in zip(got, expected, strict=True))
    return {"messages": log.num_rows, "desks": len(wanted), "delivered": [len(have) for have in got],
            "expected": [len(want) for want in expected], "exact": exact, "seconds": seconds}  # fmt: skip


def stay_up(folder: Path) -> Path:
    """Start the plan's system again, to be looked at; its data folder."""
    from narrowcast.deliver.processes.supervise import start_detached

    data = folder / "live"
    start_detached([str(folder / "plan"), "--system", str(data)], data)
    return data


def watched(folder: Path, data: Path) -> None:
    """Desks that listen, messages that flow and a console that shows them, until Ctrl-C; then the system goes too."""
    from narrowcast.cli.output import notes
    from narrowcast.deliver.processes.supervise import stop_running

    try:
        asyncio.run(_flow(folder, data))
    finally:
        notes.print("stopping the system")
        stop_running(data)


async def _flow(folder: Path, data: Path) -> None:
    from contextlib import AsyncExitStack

    from narrowcast.cli.deliver.console import beside
    from narrowcast.cli.deliver.running import stopping
    from narrowcast.deliver.client.connect import connect
    from narrowcast.model.tables import read_table

    stop = stopping()
    log = read_table(folder / "market" / "messages.parquet", name="messages").slice(0, 20 * MESSAGES)
    async with AsyncExitStack() as stack:
        tasks = [asyncio.ensure_future(beside(data, stop))]
        for desk, profile in _wishes(folder, log, WATCHED).items():
            connection = await stack.enter_async_context(connect(data))
            tasks.append(asyncio.ensure_future(_drain(connection.subscribe(profile, name=desk))))
        tasks.append(asyncio.ensure_future(_publish(await stack.enter_async_context(connect(data)), log)))
        await stop.wait()
        for task in tasks[1:]:
            task.cancel()
        await tasks[0]


async def _drain(subscription: Any) -> None:
    async for _ in subscription:
        pass


async def _publish(connection: Any, log: pa.Table) -> None:
    """The log again and again; what cannot be sent now is left out, and the next is tried."""
    from contextlib import suppress

    from narrowcast.errors import TransportError

    while True:
        for start in range(0, log.num_rows, RATE // 10):
            with suppress(TransportError):
                await connection.publish(log.slice(start, RATE // 10).to_pylist())
            await asyncio.sleep(0.1)


def _profiles(folder: Path, log: pa.Table) -> list[str]:
    return list(_wishes(folder, log, DESKS).values())


def _wishes(folder: Path, log: pa.Table, desks: int) -> dict[str, str]:
    """The profiles that match most of these messages, each of another desk, by its name."""
    import numpy as np

    from narrowcast.model.tables import read_table
    from narrowcast.profiles import Matcher

    table = read_table(folder / "market" / "subscriptions.parquet", name="subscriptions")
    profiles, owners = table["profile"].to_pylist(), table["subscriber"].to_pylist()
    _, cols = Matcher(profiles).match(log)
    busiest = np.argsort(-np.bincount(cols, minlength=len(profiles)), kind="stable").tolist()
    found: dict[str, str] = {}
    for at in busiest:
        found.setdefault(owners[at], profiles[at])
    return dict(list(found.items())[:desks])


async def _deliver(data: Path, log: pa.Table, wanted: list[str], expected: list[list[int]]) -> list[list[int]]:
    """What each subscription received, as row numbers of the log, in the order of arrival."""
    from narrowcast.deliver.client.connect import connect
    from narrowcast.deliver.processes.supervise import state_of

    numbered = [{**row, "number": at} for at, row in enumerate(log.to_pylist())]
    async with connect(data) as connection:
        subscriptions = [connection.subscribe(profile) for profile in wanted]
        for subscription in subscriptions:
            await subscription.ready(PATIENCE_S)
        got: list[list[int]] = [[] for _ in wanted]
        tasks = [asyncio.ensure_future(_collect(s, have, len(want)))
                 for s, have, want in zip(subscriptions, got, expected, strict=True)]  # fmt: skip
        half = len(numbered) // 2
        await connection.publish(numbered[:half])
        state: Any = state_of(data)
        os.kill(state["processes"]["source-0"], signal.SIGKILL)
        await connection.publish(numbered[half:])
        await asyncio.wait(tasks, timeout=PATIENCE_S)
        await asyncio.sleep(0.5)  # whatever came twice would come now
        for task in tasks:
            task.cancel()
    return got


async def _collect(subscription: Any, have: list[int], want: int) -> None:
    async for batch in subscription:
        have.extend(row["number"] for row in batch)
        if len(have) >= want:
            return
