"""`narrowcast measure`: from input tables to everything planning needs, on Spark."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer

from narrowcast.cli.arguments import columns
from narrowcast.cli.output import AsJson, notes, output, print_json, table
from narrowcast.cli.spark import Conf, Explain, Master, Memory, Out, Overwrite, as_given, near, running, say, types
from narrowcast.errors import InputError


def measure(
    inputs: Annotated[
        str,
        typer.Argument(
            help="A folder with the input tables: messages.parquet, subscriptions.csv, flows.jsonl, …; or its URL."
        ),
    ],
    out: Out,
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
        float | None, typer.Option(help="Half-life in seconds of a message's weight in selectivity and overlap.")
    ] = None,
    window_s: Annotated[
        float | None, typer.Option(help="Seconds before the newest message that selectivity and overlap cover.")
    ] = None,
    overlap: Annotated[bool, typer.Option(help="Count the pairs of profiles that match the same messages.")] = True,
    grid: Annotated[
        str | None, typer.Option(help="The attributes of the grid of sizes, as lat,lon. Default: those of the queries.")
    ] = None,
    cells: Annotated[int, typer.Option(min=1, help="The number of cells of the grid along each attribute.")] = 32,
    type: Annotated[
        list[str] | None,
        typer.Option("--type", help="Types of attributes in text files: NAME=TYPE, as price=double,size=bigint."),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first bad row instead of setting it aside.")
    ] = False,
    master: Master = "local[*]",
    memory: Memory = "1g",
    conf: Conf = None,
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

        narrowcast measure market --out measured --master yarn --conf spark.executor.memory=4g

        narrowcast measure s3://bucket/market --out s3://bucket/measured
    """
    with notes.status("starting"):  # Spark's modules take their time to load
        from narrowcast.data.ingest.find import check_enough, find_inputs
        from narrowcast.data.ingest.here import clean_tables
        from narrowcast.data.ingest.key import check_known, chosen_key
        from narrowcast.data.statistics.match import Decay
        from narrowcast.data.statistics.measure import MeasureSettings, measure_folder
        from narrowcast.model.stores import destination

    if classes and key is not None:
        raise InputError("--key and --classes cannot be used together", name="key", got=key)
    ignored: list[str] = []
    with destination(out, overwrite=overwrite) as (place, replace), near(inputs, "inputs", master, conf) as folder:
        found = find_inputs(folder, ignored.append)
        settings = MeasureSettings(
            key=chosen_key(() if classes else columns(key), found.get("messages")),
            decay=Decay(half_life_s, window_s),
            overlap=overlap,
            grid_attributes=columns(grid),
            grid_cells=cells,
            types=types(type),
            strict=strict,
        )
        check_known(settings.types or (), found.get("messages"), "types")
        check_known(settings.grid_attributes or (), found.get("messages"), "grid")
        for line in ignored:
            notes.print(line, soft_wrap=True, markup=False)
        check_enough(found)
        # Small tables are read while Spark starts.
        with ThreadPoolExecutor(1) as aside:
            clean = aside.submit(clean_tables, found)
            with running(master, memory, "measuring", found.values(), conf) as (spark, report):
                result = measure_folder(
                    spark,
                    found,
                    place,
                    settings,
                    overwrite=replace,
                    explain=say if explain else None,
                    progress=report,
                    clean=clean.result(),
                    origins={} if folder == inputs else {str(folder): as_given(inputs)},
                )
        bad = sum(result.set_aside.values())
        some = bad_rows(place / "quarantine.parquet") if bad else []
        made = [(s.table, s.rows) for s in result.steps if (place / f"{s.table}.parquet").is_file()]
    target = as_given(out)
    for line in result.remarks:
        notes.print(line, soft_wrap=True, markup=False, style="yellow")
    _say_bad(bad, some, f"{target}/quarantine.parquet")
    if json:
        steps = [{"table": s.table, "rows": s.rows, "seconds": s.seconds} for s in result.steps]
        print_json(
            {
                "folder": target,
                "key": settings.key,
                "rows_in": result.rows_in,
                "set_aside": result.set_aside,
                "bad_rows": some,
                "ignored": ignored,
                "remarks": result.remarks,
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
    output.print(table(f"Written to {target}", ("table", "rows"), made, numbers=("rows",)))


def _say_bad(n: int, some: list[dict[str, Any]], place: str) -> None:
    """How many rows were set aside and where they are, with some of them."""
    if n:
        notes.print(f"[yellow]{n:,} bad rows set aside[/] in {place}", soft_wrap=True)
    for row in some:
        line = f"  {row['table']}, {Path(row['file']).name}, row {row['row']}: {row['reason']}"
        whole = f"; the row is {row['raw'][:200]}" if row["kind"] == "bad profile" else ""
        notes.print(line + whole, soft_wrap=True, markup=False)


def bad_rows(path: Path, each: int = 2) -> list[dict[str, Any]]:
    """Some rows that were set aside: the first of every table and kind of fault."""
    import pyarrow.parquet as pq

    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for batch in pq.ParquetFile(path).iter_batches(columns=["table", "file", "row", "kind", "reason", "raw"]):
        places = zip(batch.column("table").to_pylist(), batch.column("kind").to_pylist(), strict=True)
        for place, kind in enumerate(places):
            seen[kind] += 1
            if seen[kind] <= each:
                found += batch.slice(place, 1).to_pylist()
    return found
