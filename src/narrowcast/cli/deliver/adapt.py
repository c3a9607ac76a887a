"""`narrowcast adapt`: follow interest and rates as they drift, live or over a recorded log."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrowcast.cli.output import AsJson, notes, output, print_json, table
from narrowcast.errors import InputError

if TYPE_CHECKING:
    from narrowcast.adapt.decide import Policy

COLUMNS = ("time", "cost kept", "cost now", "re-plans", "moves", "joins", "why")


def adapt(
    config: Annotated[
        Path | None, typer.Option(help="The TOML file of the system, such as .narrowcast/up.toml; see its [adapt].")
    ] = None,
    snapshots: Annotated[
        Path | None, typer.Option(help="Statistics that somebody else writes here; otherwise Spark keeps them.")
    ] = None,
    replay: Annotated[
        Path | None, typer.Option(help="A recorded message log with a column ts: no system needed.")
    ] = None,
    wishes: Annotated[
        Path | None, typer.Option(help="For --replay: subscriber, profile, [since], [until], [node].")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(help="For --replay: the plan to start from; otherwise one is made.")
    ] = None,
    key: Annotated[str, typer.Option(help="For --replay: the columns that make a flow, with commas.")] = "topic",
    groups: Annotated[int, typer.Option(min=1, help="For --replay without --plan: multicast groups.")] = 12,
    sessions: Annotated[int, typer.Option(min=1, help="For --replay without --plan: sessions.")] = 60,
    every: Annotated[float, typer.Option(min=0.001, help="For --replay: seconds between two looks.")] = 900.0,
    half_life: Annotated[float, typer.Option(min=0.001, help="For --replay: half-life of rates, in seconds.")] = 1800.0,
    horizon: Annotated[
        float, typer.Option(min=0.001, help="For --replay: seconds that demand is expected to stay.")
    ] = 3600.0,
    out: Annotated[Path | None, typer.Option(help="For --replay: write the timeline into this folder.")] = None,
    json: AsJson = False,
) -> None:
    """Follow interest and rates as they drift: re-plan where it is worth it, and move without losing a message.

    Beside a running system it keeps statistics of the log, compares what the plan costs with the best in reach,
    and offers a better plan, checked sound, to the coordinator. Edges that do not prepare undo the move.
    `narrowcast top` shows what it does. With --replay the same loop runs over a recorded log, faster than real time.

    Examples:

        narrowcast up plan --detach; narrowcast adapt --config .narrowcast/up.toml

        narrowcast generate commuter --out day

        narrowcast adapt --replay day/messages.parquet --wishes day/wishes.parquet
    """
    if (config is None) == (replay is None):
        raise InputError("give either --config or --replay", name="config", hint="--config .narrowcast/up.toml")
    if config is not None:
        _live(config, snapshots)
        return
    from narrowcast.adapt.decide import Policy

    assert replay is not None
    if wishes is None:
        raise InputError("a replay needs --wishes: who wanted what when", name="wishes")
    rows = _replay(replay, wishes, plan, tuple(key.split(",")), (groups, sessions), every, half_life,
                   Policy(horizon_s=horizon), out)  # fmt: skip
    if json:
        print_json({"timeline": rows})
    else:
        counted = list(zip(rows, accumulate(row["replanned"] for row in rows), strict=True))
        shown = [_row(row, n) for row, n in counted if row["replanned"]] or [_row(*each) for each in counted[-1:]]
        output.print(table(f"{len(rows)} looks, {_total(rows)}", COLUMNS, shown, numbers=COLUMNS[1:6]))


def _total(rows: list[dict[str, Any]]) -> str:
    return f"{sum(r['replanned'] for r in rows)} re-plans, {sum(r['moves'] for r in rows)} moves"


def _row(row: dict[str, Any], replans: int) -> tuple[object, ...]:
    hours = f"{row['time'] / 3600:.2f} h"
    return hours, row["first"], row["now"], replans, row["moves"], row["joins"], row["why"]


def _replay(
    messages: Path, wishes: Path, plan: Path | None, key: tuple[str, ...], budget: tuple[int, int], every_s: float,
    half_life_s: float, policy: Policy, out: Path | None,
) -> list[dict[str, Any]]:  # fmt: skip
    from narrowcast.adapt import timeline
    from narrowcast.adapt.kinds import continued
    from narrowcast.adapt.loop import Loop
    from narrowcast.adapt.replay import Record
    from narrowcast.model.plan import load
    from narrowcast.model.tables import read_table
    from narrowcast.plans.channels.replan import ContinuedChannels, Settings

    record = Record(
        read_table(messages, name="messages", columns=("ts", *key)),
        read_table(wishes, name="wishes", columns=("subscriber", "profile")),
        key,
    )
    rows: list[dict[str, Any]] = []
    loop: Loop | None = None
    for demand in record.demands(every_s, half_life_s):
        if loop is None:
            if not demand.interest.n_pairs:
                continue
            begun = None if plan is None else load(plan)
            present = ContinuedChannels.begin(demand, Settings(*budget)) if begun is None else continued(begun, demand)
            loop = Loop(present, policy, installed=begun)
        rows.append(loop.step(demand))
        if out is not None:
            timeline.append(out, rows[-1])
    return rows


def _live(config: Path, snapshots: Path | None) -> None:
    import asyncio

    from narrowcast.adapt.live import Live
    from narrowcast.adapt.settings import settings_of
    from narrowcast.cli.deliver.running import stopping
    from narrowcast.deliver.processes.backbone import backbone
    from narrowcast.deliver.processes.configuration import read_configuration

    found = read_configuration(config)
    settings = settings_of(found, snapshots=snapshots)

    def told(row: dict[str, Any]) -> None:
        moved = f"moved {row['moves']} flows, {row['joins']} joins" if row["replanned"] else row["why"]
        notes.print(f"cost {row['kept']:,.0f} kept, {row['best']:,.0f} in reach: {moved}", soft_wrap=True)

    async def run() -> None:
        stop = stopping()
        base = await backbone(found.url, name="adapt", system=found.system)
        try:
            notes.print("adapting; Ctrl-C ends it")
            await Live(base, settings, told).run(stop)
        finally:
            await base.close()

    asyncio.run(run())
