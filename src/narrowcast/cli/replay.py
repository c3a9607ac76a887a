"""`narrowcast replay`: what a plan carries on traffic it was not planned from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrowcast.cli.output import AsJson, output, print_json, table
from narrowcast.cli.spark import Explain, Master, Memory, Overwrite, columns, running, say
from narrowcast.errors import InputError


def replay(
    plan: Annotated[Path, typer.Argument(help="A folder with a channels plan.")],
    messages: Annotated[Path, typer.Argument(help="The message log: Parquet, CSV or JSON lines.")],
    key: Annotated[
        str | None, typer.Option(help="The columns that make a flow, for a plan that does not say: symbol,venue.")
    ] = None,
    subscriptions: Annotated[
        Path | None, typer.Option(help="Who wants what: each message against these profiles.")
    ] = None,
    interest: Annotated[Path | None, typer.Option(help="Who wants what: whole flows, instead of profiles.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the tables by group, link and subscriber here.")] = None,
    master: Master = "local[*]",
    memory: Memory = "1g",
    explain: Explain = False,
    overwrite: Overwrite = False,
    json: AsJson = False,
) -> None:
    """Replay a plan over a message log and compare its cost with the one predicted.

    Examples:

        narrowcast replay plan tomorrow.parquet --subscriptions subscriptions.parquet

        narrowcast replay plan tomorrow.parquet --interest interest.parquet --out replayed
    """
    from narrowcast.data.planning.replay import replay as run

    if (subscriptions is None) == (interest is None):
        raise InputError("give either --subscriptions or --interest: who wants what", name="subscriptions")
    made = columns(key) or ()
    read = [path for path in (messages, subscriptions, interest) if path is not None]
    with running(master, memory, "replaying", read) as (spark, report):
        result = run(
            spark,
            plan,
            messages,
            key=made,
            subscriptions=subscriptions,
            interest=interest,
            out=out,
            overwrite=overwrite,
            explain=say if explain else None,
            progress=report,
        )
    if json:
        print_json({"cost": result.cost, "predicted": result.predicted, "folder": out})
        return
    names = [*result.cost, *(n for n in result.predicted if n not in result.cost)]
    rows = [(n.replace("_", " "), result.cost.get(n, "-"), result.predicted.get(n, "-")) for n in names]
    output.print(table("Replayed", ("", "measured", "predicted"), rows, numbers=("measured", "predicted")))
