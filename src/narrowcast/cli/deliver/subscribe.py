"""`narrowcast subscribe`: what matches a profile, one JSON object per line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from narrowcast.cli.deliver.running import HERE, Interface, SystemAt
from narrowcast.cli.output import notes


def subscribe(
    profile: Annotated[str, typer.Argument(help="The profile, such as \"symbol = 'IBM' AND price > 100\".")],
    system: SystemAt = HERE,
    limit: Annotated[int | None, typer.Option(min=1, help="Stop after this many messages.")] = None,
    seconds: Annotated[float | None, typer.Option(min=0, help="Stop after this many seconds.")] = None,
    name: Annotated[str | None, typer.Option(help="The name of the subscription, also for --state.")] = None,
    state: Annotated[
        Path | None, typer.Option(help="A file that keeps the position in the log, to continue there next time.")
    ] = None,
    from_start: Annotated[
        bool, typer.Option("--from-start", help="Begin with the oldest message in the log, not the next.")
    ] = False,
    interface: Interface = None,
    gateway: Annotated[str | None, typer.Option(help="The broker that overlay channels arrive at.")] = None,
    edge: Annotated[
        Path | None,
        typer.Option(help="The socket of a narrowcast edge on this host, shared by its processes ([edge] socket)."),
    ] = None,
) -> None:
    """Print every message that matches, each once and in order, as it comes.

    Examples:

        narrowcast subscribe "symbol = 'IBM' AND price > 100"

        narrowcast subscribe "price > 100" --from-start --limit 10

        narrowcast subscribe "symbol = 'IBM'" --name desk-4 --state desk-4.json
    """
    from narrowcast.deliver.transport.loop import run
    from narrowcast.profiles import Profile

    wanted = Profile.parse(profile)
    run(_run(wanted.text, system, limit, seconds, name, state, from_start, interface, gateway, edge))


async def _run(
    profile: str,
    system: str,
    limit: int | None,
    seconds: float | None,
    name: str | None,
    state: Path | None,
    from_start: bool,
    interface: str | None,
    gateway: str | None,
    edge: Path | None,
) -> None:
    import asyncio
    from contextlib import suppress

    from narrowcast.cli.deliver.running import stopping
    from narrowcast.deliver.client.connect import connect

    stop = stopping()
    async with connect(system, interface=interface, gateway=gateway, edge=edge) as connection:
        subscription = connection.subscribe(profile, name=name, position=_position(state), from_start=from_start)
        printing = asyncio.ensure_future(_print(subscription, limit, state))
        ended = asyncio.ensure_future(stop.wait())
        await asyncio.wait({printing, ended}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in (printing, ended):
            task.cancel()
        with suppress(asyncio.CancelledError):
            await printing


async def _print(subscription: Any, limit: int | None, state: Path | None) -> None:
    import json
    import sys

    await subscription.ready()
    notes.print(f"subscribed: {subscription.profile}", markup=False, soft_wrap=True)
    left = limit
    async for batch in subscription:
        if batch.gap is not None:
            notes.print(f"[yellow]gap:[/] some messages will not come ({batch.gap})")
        rows = batch[:left] if left is not None else batch[:]
        sys.stdout.writelines(json.dumps(row, default=str) + "\n" for row in rows)
        sys.stdout.flush()
        if state is not None and len(rows) == len(batch):
            _remember(state, batch.position)
        if left is not None:
            left -= len(rows)
            if left <= 0:
                return


def _position(state: Path | None) -> dict[int, int] | None:
    import json

    if state is None or not state.exists():
        return None
    return {int(shard): at for shard, at in json.loads(state.read_text()).items()}


def _remember(state: Path, position: dict[int, int]) -> None:
    import json

    half = state.with_name(f".{state.name}.half")
    half.write_text(json.dumps(position))
    half.replace(state)
