"""`narrowcast serve` and `narrowcast receive`: merged queries answered again and again over a running system."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrowcast.cli.deliver.running import HERE, Interface, SystemAt
from narrowcast.cli.output import notes, text
from narrowcast.cli.spark import Master, Memory

if TYPE_CHECKING:
    from narrowcast.data.answer.serve import PeriodReport
    from narrowcast.plans.queries.service.messages import PeriodAnswers
    from narrowcast.plans.queries.service.server import QueryService


def serve(
    queries: Annotated[
        Path, typer.Argument(help="The queries table: query, client, profile, [every]. Read anew in every period.")
    ],
    data: Annotated[
        str, typer.Argument(metavar="TABLE", help="The data to query: Parquet, CSV, JSON lines or a Spark table.")
    ],
    plan: Annotated[
        Path,
        typer.Option(help="A queries plan made with --channels, or a network plan; its system was started with it."),
    ],
    system: SystemAt = HERE,
    period: Annotated[float, typer.Option(min=0, help="Seconds from the start of a period to the next.")] = 60.0,
    periods: Annotated[int | None, typer.Option(min=1, help="Stop after this many periods. Default: never.")] = None,
    tags: Annotated[
        bool, typer.Option("--tags", help="Mark each row with the queries it answers, instead of sending extractors.")
    ] = False,
    save: Annotated[
        Path | None, typer.Option(help="Write the plan here as the queries change it, to begin with next time.")
    ] = None,
    master: Master = "local[*]",
    memory: Memory = "1g",
) -> None:
    """Run the merged queries over the table in every period, in one scan, and send the answers to the clients.

    Answers travel on the physical channels of the plan as messages with headers; `narrowcast receive` takes out
    exactly what a client asked for. Queries that are new in the table join the set where they gain most, those that
    left it are dropped, and clients are told where their channels change. A query with `every` 5 is answered in every
    fifth period.

    Examples:

        narrowcast plan queries queries.parquet --measured measured --channels 50 --out plan

        narrowcast up plan --detach; narrowcast serve queries.parquet places.parquet --plan plan --period 300
    """
    import signal
    import time

    from narrowcast.cli.answer import queries_plan
    from narrowcast.cli.spark import running
    from narrowcast.data.answer.serve import serve_periods
    from narrowcast.deliver.client.connect import connect
    from narrowcast.errors import InputError
    from narrowcast.plans.queries.service.server import QueryService

    made, key = queries_plan(plan)
    if made.physical is None:
        raise InputError(f"{plan}: the plan must have physical channels", name="plan", hint="plan with --channels 50")
    service = QueryService(made)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with running(master, memory, "serving") as (spark, _), connect(system) as connection:
            served = serve_periods(spark, queries, data, service, connection.publish, tags=tags, key=key)
            for done, report in enumerate(served, 1):
                changed = bool(report.new or report.gone)
                if save is not None and (changed or done == 1):
                    service.plan().save(save, overwrite=True)
                _say(report, service)
                if done == periods:
                    break
                time.sleep(max(0.0, period - report.seconds))
    except KeyboardInterrupt:
        notes.print("ended")
    finally:
        signal.signal(signal.SIGTERM, before)


def _say(report: PeriodReport, service: QueryService) -> None:
    if report.kept:
        notes.print(f"[yellow]the queries stay as they were:[/] {report.kept}", soft_wrap=True)
    if report.set_aside:
        notes.print(f"[yellow]{report.set_aside:,} bad queries set aside[/]")
    notes.print(
        f"period {report.period}: {report.queries:,} queries (+{report.new:,} -{report.gone:,}) by {report.sets:,} "
        f"merged ones on {service.channels:,} channels, {text(report.rows)} rows in {text(report.messages)} messages, "
        f"{report.retuned:,} clients told of other channels; {report.seconds:.1f} s, the scan {report.scan_s:.1f} s",
        soft_wrap=True,
        markup=False,
    )


def receive(
    client: Annotated[str, typer.Argument(help="The client, as the queries table names it.")],
    system: SystemAt = HERE,
    out: Annotated[
        Path | None, typer.Option(help="A folder: a Parquet file for each query, in a folder for each period.")
    ] = None,
    periods: Annotated[int | None, typer.Option(min=1, help="Stop after this many periods. Default: never.")] = None,
    after: Annotated[
        int, typer.Option(help="The last period that the client has already. Default: all that the log still has.")
    ] = -1,
    interface: Interface = None,
) -> None:
    """Receive the answers that `narrowcast serve` sends, and take out exactly what a client's queries ask for.

    It listens to the physical channels that carry an answer for the client and to nothing else. Rows are printed as
    JSON lines, or written with --out.

    Examples:

        narrowcast receive ann --periods 1

        narrowcast receive ann --out answers
    """
    import asyncio

    asyncio.run(_receive(client, system, out, periods, after, interface))


async def _receive(
    client: str, system: str, out: Path | None, periods: int | None, after: int, interface: str | None
) -> None:
    import asyncio
    from contextlib import suppress

    from narrowcast.cli.deliver.running import stopping
    from narrowcast.deliver.client.connect import connect

    stop = stopping()
    async with connect(system, interface=interface) as connection:
        taking = asyncio.ensure_future(_take(connection, client, out, periods, after))
        ended = asyncio.ensure_future(stop.wait())
        await asyncio.wait({taking, ended}, return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()
        if not taking.done():
            taking.cancel()
        with suppress(asyncio.CancelledError):
            await taking


async def _take(connection: Any, client: str, out: Path | None, periods: int | None, after: int) -> None:
    from contextlib import aclosing

    from narrowcast.plans.queries.service.messages import receive_answers

    async with aclosing(receive_answers(connection, client, after=after)) as answers:
        done = 0
        async for found in answers:
            _give(found, out)
            done += 1
            rows = sum(table.num_rows for table in found.answers.values())
            notes.print(f"period {found.period}: {len(found.answers):,} queries, {rows:,} rows")
            if done == periods:
                return


def _give(found: PeriodAnswers, out: Path | None) -> None:
    """Print a period's rows, or write them; a period's folder is there only when it is complete."""
    import json
    import shutil
    import sys

    if out is None:
        for query, rows in sorted(found.answers.items()):
            for row in rows.to_pylist():
                line = {"period": found.period, "query": query, "row": row}
                sys.stdout.write(json.dumps(line, default=str) + "\n")
        sys.stdout.flush()
        return
    import pyarrow.parquet as pq

    place, half = out / f"period-{found.period}", out / f".period-{found.period}.half"
    shutil.rmtree(half, ignore_errors=True)
    half.mkdir(parents=True)
    names = {}
    for at, (query, rows) in enumerate(sorted(found.answers.items())):
        names[query] = f"{at:05d}.parquet"
        pq.write_table(rows, half / names[query])
    (half / "queries.json").write_text(json.dumps(names, indent=2) + "\n", encoding="utf-8")
    shutil.rmtree(place, ignore_errors=True)
    half.rename(place)
