"""`narrowcast top`: what runs, what it does, and what the plan said it would do."""

from __future__ import annotations

import json as json_text
from typing import Annotated, Any

import typer

from narrowcast.cli.deliver.running import HERE, SystemAt
from narrowcast.cli.output import AsJson, output, print_json, table

GROUPS = ("group", "messages/s", "share", "predicted", "members")
EDGES = (
    "subscriber", "profiles", "useful/s", "useful", "by group", "by session", "by flow", "by profile", "repaired",
    "lag",
)  # fmt: skip
ADAPTING = ("kept", "now", "replans", "moves", "joins", "why")


def top(
    system: SystemAt = HERE,
    once: Annotated[bool, typer.Option("--once", help="Measure for --seconds, print once and exit.")] = False,
    seconds: Annotated[float, typer.Option(min=0.5, help="Seconds over which rates are measured.")] = 2.0,
    json: AsJson = False,
) -> None:
    """Show rates, what is useful, what is filtered at which level, repairs and lag; measured / predicted.

    Shares are of all messages sent. "by group": the network kept it away; "by session": the middleware
    dropped it; "by flow" and "by profile": the edge did. Predicted shares do not know profiles beyond flows.
    """
    import asyncio

    asyncio.run(_run(system, once or json, seconds, json))


async def _run(system: str, once: bool, seconds: float, as_json: bool) -> None:
    import asyncio

    from rich.live import Live

    from narrowcast.cli.deliver.running import stopping
    from narrowcast.deliver.processes.backbone import backbone, url_of
    from narrowcast.deliver.processes.overview import Overview

    overview = Overview()
    stop = stopping()
    base = await backbone(url_of(system), name="top")
    try:
        await base.listen_statistics(
            lambda data: overview.take(json_text.loads(data), asyncio.get_running_loop().time())
        )
        if once:
            await _wait(stop, seconds + 2.0)
            found = overview.measured(seconds)
            print_json(found) if as_json else output.print(*_tables(found), sep="\n")
            return
        with Live(console=output, refresh_per_second=2, screen=output.is_terminal) as live:
            while not stop.is_set():
                await _wait(stop, 1.0)
                live.update(_page(overview.measured(seconds)))
    finally:
        await base.close()


async def _wait(stop: Any, seconds: float) -> None:
    import asyncio
    from contextlib import suppress

    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)


def _page(found: dict[str, Any]) -> Any:
    from rich.console import Group

    return Group(*_tables(found))


def _tables(found: dict[str, Any]) -> list[Any]:
    title = f"{found['messages_s']:,.0f} messages/s sent, {len(found['nodes'])} processes, epoch {found['epoch']}"
    groups = [
        (g["group"], g["messages_s"], _share(g["share"]), _share(g["predicted"]), g["members"]) for g in found["groups"]
    ]
    edges = [_row(edge) for edge in found["edges"]]
    adapting = found.get("adapting")
    rows = [tuple(adapting[name] for name in ADAPTING)] if adapting else []
    nodes = [(n["name"], n["role"], n["frames_s"], n["bytes_s"], n["trouble"]) for n in found["nodes"]]
    return [
        table(title, ("process", "role", "frames/s", "bytes/s", "trouble"), nodes, numbers=("frames/s", "bytes/s")),
        table("Groups", GROUPS, groups, numbers=GROUPS[1:]),
        table("Subscribers (measured / predicted)", EDGES, edges, numbers=EDGES[1:]),
        *([table("Adapting", ("cost kept", "cost now", *ADAPTING[2:]), rows, numbers=ADAPTING[:-1])] if rows else []),
    ]


def _row(edge: dict[str, Any]) -> tuple[object, ...]:
    measured, predicted = edge["measured"], edge["predicted"]
    levels = [_pair(measured.get(level), predicted.get(level)) for level in ("useful", "group", "session", "flow")]
    rest = (_share(measured.get("profile")), edge["repaired"], edge["lag"])
    return edge["name"], edge["subscriptions"], edge["useful_s"], *levels, *rest


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _pair(measured: float | None, predicted: float | None) -> str:
    if predicted is None:
        return _share(measured)
    return f"{'' if measured is None else f'{measured:.0%}'}/{predicted:.0%}"
