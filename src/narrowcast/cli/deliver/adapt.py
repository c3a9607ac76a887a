"""`narrowcast adapt`: follow interest and rates as they drift, live or over a recorded log."""

from __future__ import annotations

import os
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrowcast.cli.deliver.running import SYSTEM
from narrowcast.cli.output import AsJson, notes, output, print_json, table
from narrowcast.cli.plan.common import Strict
from narrowcast.errors import InputError

if TYPE_CHECKING:
    from narrowcast.adapt.decide import Policy

COLUMNS = ("time", "cost kept", "cost now", "re-plans", "moves", "joins", "why")


def adapt(
    system: Annotated[
        Path | None,
        typer.Option(
            help="The running system: the data folder of `narrowcast up`, or its TOML file; see its [adapt]. "
            f"Without --replay, {SYSTEM} stands for it."
        ),
    ] = None,
    snapshots: Annotated[
        Path | None,
        typer.Option(help="A folder of statistics that another process writes. Default: Spark measures them."),
    ] = None,
    replay: Annotated[
        Path | None, typer.Option(help="A recorded message log with a column ts, instead of a running system.")
    ] = None,
    subscriptions: Annotated[
        Path | None, typer.Option(help="For --replay: a table of subscriber, profile, [since], [until], [node].")
    ] = None,
    plan: Annotated[
        Path | None, typer.Option(help="For --replay: the folder of the plan to start from. Default: a new plan.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(help="For --replay: the columns that make a flow, as symbol,venue. Default: as plan or log say."),
    ] = None,
    groups: Annotated[int, typer.Option(min=1, help="For --replay without --plan: number of multicast groups.")] = 12,
    sessions: Annotated[int, typer.Option(min=1, help="For --replay without --plan: number of sessions.")] = 60,
    every_s: Annotated[float, typer.Option(min=0.001, help="For --replay: seconds between two checks.")] = 900.0,
    half_life_s: Annotated[
        float, typer.Option(min=0.001, help="For --replay: half-life of the rates, in seconds.")
    ] = 1800.0,
    horizon_s: Annotated[
        float, typer.Option(min=0.001, help="For --replay: seconds that demand is expected to stay the same.")
    ] = 3600.0,
    out: Annotated[Path | None, typer.Option(help="For --replay: write the timeline into this folder.")] = None,
    strict: Strict = False,
    json: AsJson = False,
) -> None:
    """Follow interest and rates as they drift: re-plan where it is worth it, and move without losing a message.

    Beside a running system it keeps statistics of the log, compares what the plan costs with the best in reach,
    and offers a better plan, checked sound, to the coordinator. Edges that do not prepare undo the move.
    `narrowcast top` shows what it does. With --replay the same loop runs over a recorded log, faster than real time.

    Examples:

        narrowcast up plan --detach; narrowcast adapt --system .narrowcast

        narrowcast generate commuter --out day

        narrowcast adapt --replay day/messages.parquet --subscriptions day/wishes.parquet
    """
    if system is None and replay is None and SYSTEM in os.environ:
        system = Path(os.environ[SYSTEM])
    if (system is None) == (replay is None):
        raise InputError("adapt needs exactly one of --system and --replay", name="system", hint="--system .narrowcast")
    if system is not None:
        if not system.exists():
            raise InputError(f"no system has been started in {system}", name="system", hint="narrowcast up PLAN")
        _live(system / "up.toml" if system.is_dir() else system, snapshots)
        return
    from narrowcast.adapt.decide import Policy

    assert replay is not None
    if subscriptions is None:
        raise InputError("--replay needs --subscriptions: who wanted what when", name="subscriptions")
    rows = _replay(replay, subscriptions, plan, key, (groups, sessions), every_s, half_life_s,
                   Policy(horizon_s=horizon_s), out, strict)  # fmt: skip
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
    messages: Path, wishes: Path, plan: Path | None, given: str | None, budget: tuple[int, int], every_s: float,
    half_life_s: float, policy: Policy, out: Path | None, strict: bool,
) -> list[dict[str, Any]]:  # fmt: skip
    from narrowcast.adapt import timeline
    from narrowcast.adapt.loop import Loop
    from narrowcast.adapt.replay import Record, usable_wishes
    from narrowcast.cli.arguments import columns
    from narrowcast.cli.plan.common import told_aside
    from narrowcast.model.quarantine import Quarantine
    from narrowcast.model.tables import key_of, read_table
    from narrowcast.plans.channels.replan import ChannelSettings, ContinuedChannels
    from narrowcast.plans.kinds import kind_of
    from narrowcast.plans.verbs import load

    begun = None if plan is None else load(plan)
    key = columns(given) or (begun.key if begun is not None else ()) or key_of(messages)
    if not key and (begun is None or begun.kind != "semantic"):  # semantic plans go by content, not by flows
        raise InputError("neither plan nor log has a flow key", name="key", hint="name its columns: --key topic")
    aside = Quarantine(strict=strict)
    record = Record(
        read_table(messages, name="messages", columns=("ts", *key)),
        usable_wishes(read_table(wishes, name="subscriptions", columns=("subscriber", "profile")), wishes, aside),
        key,
    )
    told_aside(aside)
    rows: list[dict[str, Any]] = []
    loop: Loop | None = None
    for demand in record.demands(every_s, half_life_s):
        if loop is None:
            if not demand.interest.n_pairs:
                continue
            if begun is None:
                present: Any = ContinuedChannels.begin(demand, ChannelSettings(*budget))
            else:
                present = kind_of(begun.kind).replan.continued(begun, demand)
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
    from narrowcast.deliver.processes.system import System

    found = System.read(config)
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
