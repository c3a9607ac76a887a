"""`narrowcast generate`: write the tables of a realistic workload, of any size."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from narrowcast.cli.arguments import pairs
from narrowcast.cli.output import AsJson, Seed, output, print_json, progress, table
from narrowcast.errors import InputError


class Workload(StrEnum):
    market = "market"
    random = "random"
    mechanical = "mechanical"
    tree_demand = "tree_demand"
    overlay = "overlay"
    rectangles = "rectangles"
    commuter = "commuter"
    network = "network"


class Format(StrEnum):
    parquet = "parquet"
    csv = "csv"
    jsonl = "jsonl"


def generate(
    workload: Annotated[Workload, typer.Argument(help="The kind of workload to generate.")],
    out: Annotated[
        Path, typer.Option(help="The folder to write; it must be new or empty, unless --overwrite is given.")
    ],
    messages: Annotated[int | None, typer.Option(min=0, help="The number of messages in the log.")] = None,
    subscribers: Annotated[int | None, typer.Option(min=1, help="The number of subscribers.")] = None,
    format: Annotated[Format, typer.Option(help="The format of the tables.")] = Format.parquet,
    option: Annotated[
        list[str] | None, typer.Option("--set", help="Other parameters: NAME=VALUE, as symbols=5000,markets=3.")
    ] = None,
    bad_rows: Annotated[
        float, typer.Option(min=0, max=0.5, help="Add this share of bad rows (0 to 0.5); planted.jsonl lists them.")
    ] = 0.0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a workload that is already there.")] = False,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Write the tables of a realistic workload: subscriptions with profiles, a message log, and the rest.

    manifest.json beside them says the flow key, which `narrowcast measure` takes by default.

    market: trading desks and symbols. mechanical: a middleware cell with nested roles. random: no structure at
    all. tree_demand: users under a multicast tree. overlay: brokers, gateways and clients. rectangles: range queries.
    commuter: people who are at work by day and at home by night; wishes says when each subscription holds.
    network: a bank with sites on a real backbone, hosts with and without multicast, and market data wanted near home.

    Examples:

        narrowcast generate market --out market --messages 100000

        narrowcast generate market --out small --subscribers 50 --set symbols=2000 --format csv

        narrowcast generate network --out bank --set sites=10 --set symbols=5000
    """
    from narrowcast import workloads

    with progress() as bar:
        tasks: dict[str, int] = {}

        def show(name: str, rows: int, expected: int | None) -> None:
            if name not in tasks:
                tasks[name] = int(bar.add_task(f"writing {name}", total=expected))
            bar.update(tasks[name], completed=rows)  # type: ignore[arg-type]

        made = workloads.write(
            workload.value,
            out,
            messages=messages,
            users=subscribers,
            format=format.value,
            seed=seed,
            bad_rows=bad_rows,
            overwrite=overwrite,
            progress=show,
            **dict(map(_setting, pairs(option))),
        )
    if json:
        print_json({name: {"path": w.path, "rows": w.rows, "planted": w.planted} for name, w in made.items()})
        return
    rows = [(name, w.rows, w.path) for name, w in made.items()]
    output.print(table(f"Workload {workload.value}", ("table", "rows", "file"), rows, numbers=("rows",)))


def _setting(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals:
        raise InputError(f"--set expects NAME=VALUE, e.g. symbols=5000; got {text!r}", name="set", got=text)
    for kind in (int, float):
        try:
            return name, kind(value)
        except ValueError:
            continue
    return name, value
