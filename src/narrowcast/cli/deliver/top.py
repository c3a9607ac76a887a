"""`narrowcast top`: what runs, what it does, and what the plan said it would do."""

from __future__ import annotations

import json as json_text
from typing import Annotated, Any, Literal

import typer
from rich.text import Text

from narrowcast.cli.deliver.running import HERE, SystemAt
from narrowcast.cli.output import AsJson, output, print_json, text

EDGES = ("subscriber", "useful/s", "useful", "group", "session", "flow", "profile", "repaired", "lag")
GROUPS = ("group", "messages/s", "share", "predicted", "members")
NODES = ("process", "role", "frames/s", "bytes/s", "trouble")
ADAPTING = ("kept", "now", "replans", "moves", "joins", "why")
HEAD = 2  # lines above the rows of a table


def top(
    system: SystemAt = HERE,
    once: Annotated[bool, typer.Option("--once", help="Measure for --seconds, print once and exit.")] = False,
    seconds: Annotated[float, typer.Option(min=0.5, help="Seconds over which rates are measured.")] = 2.0,
    json: AsJson = False,
) -> None:
    """Show subscribers, groups and processes: rates, what is useful, what is filtered where, repairs and lag.

    Subscribers come first, those furthest behind before the others; an edge with several is one line. Shares are of
    all messages sent, measured / predicted: "useful" was delivered; "group": the network kept it away; "session":
    the middleware dropped it; "flow" and "profile": the edge did. Predicted shares do not know profiles beyond flows.
    Where a plan has latency bounds, "ms" is the mean latency from the log / the strictest bound there, for delays in
    milliseconds. On a terminal the page has as many lines as the terminal; --json has everything.
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
            print_json(found) if as_json else output.print(page(found, _height(), output.width))
            return
        with Live(console=output, refresh_per_second=2, screen=output.is_terminal) as live:
            while not stop.is_set():
                await _wait(stop, 1.0)
                live.update(page(overview.measured(seconds), _height(), output.width))
    finally:
        await base.close()


async def _wait(stop: Any, seconds: float) -> None:
    import asyncio
    from contextlib import suppress

    with suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)


def _height() -> int | None:
    """The lines there are, but for the one that the prompt takes."""
    return output.height - 1 if output.is_terminal else None


def page(found: dict[str, Any], height: int | None = None, width: int = 80) -> Any:
    """What was measured as one page of at most `height` lines; None: as long as it takes."""
    from rich.console import Group

    edges = sorted(found["edges"], key=lambda edge: (-edge["lag"], -edge["repaired"], edge["called"]))
    adapting, bounded = found.get("adapting"), any(edge["bound_ms"] is not None for edge in edges)
    nodes = sorted(found["nodes"], key=lambda node: (not node["trouble"], node["role"] == "edge", node["name"]))
    parts: list[tuple[str, tuple[str, ...], list[tuple[object, ...]]]] = [
        ("Subscribers, most behind first", (*EDGES, *["ms"] * bounded), [_row(edge, bounded) for edge in edges]),
        ("Groups", GROUPS, [_group(group) for group in found["groups"]]),
        ("Processes", NODES, [(n["name"], n["role"], n["frames_s"], n["bytes_s"], n["trouble"]) for n in nodes]),
    ]
    if adapting:
        parts.append(("Adapting", ("cost kept", "cost now", *ADAPTING[2:]), [tuple(adapting[n] for n in ADAPTING)]))
    shown = _rows_each([len(rows) for _, _, rows in parts], None if height is None else height - 1 - HEAD * len(parts))
    title = f"{found['messages_s']:,.0f} messages/s sent, {len(found['nodes'])} processes, epoch {found['epoch']}"
    return Group(
        Text(title, style="bold"), *(_lines(*part, most, width) for part, most in zip(parts, shown, strict=True))
    )


def _rows_each(wanted: list[int], lines: int | None) -> list[int]:
    """How many rows each table shows: in turn one more, the first ones two, until the lines are used up.

    >>> _rows_each([100, 50, 10], 12), _rows_each([1, 50, 2], 12), _rows_each([3, 2], None)
    ([6, 3, 3], [1, 9, 2], [3, 2])
    """
    if lines is None:
        return list(wanted)
    shown = [0] * len(wanted)
    while sum(shown) < lines and shown != wanted:
        for at in (0, *range(len(wanted))):
            if shown[at] < wanted[at] and sum(shown) < lines:
                shown[at] += 1
    return shown


def _lines(title: str, columns: tuple[str, ...], rows: list[tuple[object, ...]], most: int, width: int) -> Any:
    """A table of one line per row, without a frame."""
    from rich.table import Table

    more = "" if most >= len(rows) else f" ({most} of {len(rows):,})"
    made = Table(title=title + more, title_justify="left", title_style="bold cyan", box=None, pad_edge=False)
    cells = [[text(cell) for cell in row] for row in rows[:most]]
    wide = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    wide[0] = max(4, min(wide[0], width - sum(wide[1:]) - 2 * len(wide)))  # names give way, numbers do not
    for at, column in enumerate(columns):
        words = at == 0 or column in ("role", "trouble", "why")
        side: Literal["left", "right"] = "left" if words else "right"
        made.add_column(column, justify=side, no_wrap=True, overflow="ellipsis", max_width=wide[at])
    for row in cells:
        made.add_row(*row)
    return made


def _group(group: dict[str, Any]) -> tuple[object, ...]:
    share, predicted = _share(group["share"]), _share(group["predicted"])
    return str(group["group"]), group["messages_s"], share, predicted, group["members"]


def _row(edge: dict[str, Any], bounded: bool) -> tuple[object, ...]:
    measured, predicted = edge["measured"], edge["predicted"]
    levels = [_pair(measured.get(level), predicted.get(level)) for level in ("useful", "group", "session", "flow")]
    late = "/".join(f"{edge[name]:.1f}" for name in ("latency_ms", "bound_ms") if edge[name] is not None)
    rest = (_share(measured.get("profile")), edge["repaired"], edge["lag"], *[late] * bounded)
    return edge["called"], edge["useful_s"], *levels, *rest


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}"


def _pair(measured: float | None, predicted: float | None) -> str:
    if predicted is None:
        return _share(measured)
    return f"{'' if measured is None else f'{measured:.0%}'}/{predicted:.0%}"
