"""`narrowcast measure`: from input tables to everything planning needs, on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrowcast.cli.output import AsJson, notes, output, print_json, table
from narrowcast.cli.spark import Explain, Master, Memory, Overwrite, columns, running, say, types
from narrowcast.errors import InputError


def measure(
    inputs: Annotated[
        Path, typer.Argument(help="A folder with the input tables: messages.parquet, subscriptions.csv, flows.jsonl, …")
    ],
    out: Annotated[Path, typer.Option(help="The folder to write; it must not exist yet.")],
    key: Annotated[
        str | None,
        typer.Option(
            help="The attributes that make a flow, as symbol or symbol,venue. Default: what manifest.json beside "
            "the messages says; without one, content classes."
        ),
    ] = None,
    classes: Annotated[
        bool, typer.Option("--classes", help="Content classes instead of a key: messages that the same profiles match.")
    ] = False,
    half_life_s: Annotated[
        float | None, typer.Option(help="Seconds after which a message counts half, in selectivity and overlap.")
    ] = None,
    window_s: Annotated[
        float | None, typer.Option(help="Seconds before the newest message that selectivity and overlap look back.")
    ] = None,
    overlap: Annotated[bool, typer.Option(help="Count the pairs of profiles that match the same messages.")] = True,
    grid: Annotated[
        str | None, typer.Option(help="The attributes of the grid of sizes. Default: those of the queries.")
    ] = None,
    cells: Annotated[int, typer.Option(min=1, help="Steps of the grid along each attribute.")] = 32,
    type: Annotated[
        list[str] | None, typer.Option("--type", help="An attribute's type in text files: NAME=TYPE, as price=double.")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first bad row instead of setting it aside.")
    ] = False,
    master: Master = "local[*]",
    memory: Memory = "1g",
    explain: Explain = False,
    overwrite: Overwrite = False,
    json: AsJson = False,
) -> None:
    """Check the input tables, match messages with profiles, and write what planning needs.

    Rates, interest, audiences, selectivity, overlap, tree demand and sizes go to `--out` as Parquet,
    with a manifest; bad rows go to its table quarantine. The folder is complete or not there.

    Examples:

        narrowcast measure market --out measured

        narrowcast measure market --out measured --key symbol --half-life-s 600 --master spark://host:7077 --explain
    """
    from narrowcast.data.ingest.key import chosen_key
    from narrowcast.data.statistics.match import Decay
    from narrowcast.data.statistics.measure import MeasureSettings, find_inputs, measure_folder

    if classes and key is not None:
        raise InputError("--key and --classes exclude each other", name="key", got=key)
    found = find_inputs(inputs)
    settings = MeasureSettings(
        key=chosen_key(() if classes else columns(key), found.get("messages")),
        decay=Decay(half_life_s, window_s),
        overlap=overlap,
        grid_attributes=columns(grid),
        grid_cells=cells,
        types=types(type),
        strict=strict,
    )
    with running(master, memory, "measuring", found.values()) as (spark, report):
        result = measure_folder(
            spark, found, out, settings, overwrite=overwrite, explain=say if explain else None, progress=report
        )
    aside = sum(result.set_aside.values())
    if aside:
        notes.print(f"[yellow]{aside:,} bad rows set aside[/] in {out / 'quarantine.parquet'}", soft_wrap=True)
    if json:
        steps = [{"table": s.table, "rows": s.rows, "seconds": s.seconds} for s in result.steps]
        print_json(
            {
                "folder": out,
                "key": settings.key,
                "rows_in": result.rows_in,
                "set_aside": result.set_aside,
                "steps": steps,
            }
        )
        return
    if "messages" in found:
        output.print(
            f"Flows by {', '.join(settings.key)}" if settings.key else "Flows are content classes", markup=False
        )
    rows = [(name, n, result.set_aside[name]) for name, n in result.rows_in.items()]
    output.print(table("Taken in", ("table", "rows", "set aside"), rows, numbers=("rows", "set aside")))
    made = [(s.table, s.rows) for s in result.steps if (out / f"{s.table}.parquet").is_file()]
    output.print(table(f"Written to {out}", ("table", "rows"), made, numbers=("rows",)))
