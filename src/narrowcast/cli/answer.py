"""`narrowcast answer`: run merged queries over a table and write what goes to each channel."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrowcast.cli.output import AsJson, Seed, notes, output, print_json, table
from narrowcast.cli.plan.common import Strict
from narrowcast.cli.plan.queries import (
    Attributes,
    Km,
    Kt,
    Ku,
    MethodOption,
    ProcedureOption,
    QueryMethod,
    QueryProcedure,
)
from narrowcast.cli.spark import Explain, Master, Memory, Overwrite, columns, running, say


def answer(
    queries: Annotated[Path, typer.Argument(help="The queries table: query, client, profile (a range).")],
    data: Annotated[
        str, typer.Argument(metavar="TABLE", help="The data to query: Parquet, CSV, JSON lines or a Spark table.")
    ],
    out: Annotated[Path, typer.Option(help="The folder to write; it must not exist yet.")],
    attributes: Attributes = None,
    method: MethodOption = QueryMethod.pair,
    procedure: ProcedureOption = QueryProcedure.rectangle,
    km: Km = 365e-5,
    kt: Kt = 3.25e-5,
    ku: Ku = 0.16e-5,
    incremental: Annotated[
        Path | None, typer.Option(help="A folder of state: answer only with rows new since the last run with it.")
    ] = None,
    master: Master = "local[*]",
    memory: Memory = "1g",
    explain: Explain = False,
    overwrite: Overwrite = False,
    strict: Strict = False,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Answer all queries by few merged ones, in one scan of the table.

    Each channel's rows go to `--out` as Parquet with a JSON header that says who takes what from them;
    `narrowcast.plans.queries.Client` takes exactly its own answers out. With `--incremental` a channel carries
    only the rows beyond those of the last run, repeats counted; while the queries stay, so do the channels.

    Examples:

        narrowcast answer queries.parquet places.parquet --out answers

        narrowcast answer queries.csv places.parquet --out tuesday --incremental state --procedure exact
    """
    from narrowcast.data.answer.answer import Merging
    from narrowcast.data.answer.answer import answer as run
    from narrowcast.model.tables import local_path
    from narrowcast.plans.queries.api import Constants

    out = local_path(out, "out")
    incremental = None if incremental is None else local_path(incremental, "incremental")
    merging = Merging(columns(attributes), method.value, procedure.value, Constants(km, kt, ku), seed)
    with running(master, memory, "answering") as (spark, report):
        result = run(
            spark,
            queries,
            data,
            out,
            merging,
            incremental=incremental,
            strict=strict,
            overwrite=overwrite,
            explain=say if explain else None,
            progress=report,
        )
    if result.set_aside:
        notes.print(
            f"[yellow]{result.set_aside:,} bad rows set aside[/], see {out}/*quarantine.parquet", soft_wrap=True
        )
    told = {
        "queries": result.queries,
        "channels": result.channels,
        "rows": result.rows,
        "set_aside": result.set_aside,
        **({} if incremental is None else {"gone": result.gone, "everything_sent": result.fresh}),
    }
    if json:
        steps = [{"step": s.table, "rows": s.rows, "seconds": s.seconds} for s in result.steps]
        print_json(told | {"steps": steps, "folder": out})
        return
    rows = [(name.replace("_", " "), value) for name, value in told.items()]
    output.print(table(f"Answered in {out}", ("", "count"), rows, numbers=("count",)))
