"""`narrowcast replay`: what a plan carries on traffic it was not planned from."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrowcast.cli.arguments import columns
from narrowcast.cli.output import AsJson, output, print_json, table
from narrowcast.cli.spark import Conf, Explain, Master, Memory, Overwrite, running, say


def replay(
    plan: Annotated[Path, typer.Argument(help="The plan's folder, of any kind.")],
    messages: Annotated[Path, typer.Argument(help="The message log: Parquet, CSV or JSON lines.")],
    key: Annotated[
        str | None, typer.Option(help="The columns that make a flow, as symbol,venue, if the plan does not say.")
    ] = None,
    subscriptions: Annotated[Path | None, typer.Option(help="The subscriptions table: subscriber, profile.")] = None,
    interest: Annotated[Path | None, typer.Option(help="The interest table: subscriber, flow.")] = None,
    out: Annotated[Path | None, typer.Option(help="The folder for tables by group, link and subscriber.")] = None,
    master: Master = "local[*]",
    memory: Memory = "1g",
    conf: Conf = None,
    explain: Explain = False,
    overwrite: Overwrite = False,
    json: AsJson = False,
) -> None:
    """Replay a plan over a message log and compare its cost with the one predicted.

    Channels plans need --subscriptions or --interest; filters plans --subscriptions with the column node. Queries and
    semantic plans know who wants what.

    Examples:

        narrowcast replay plan tomorrow.parquet --subscriptions subscriptions.parquet

        narrowcast replay plan tomorrow.parquet --interest interest.parquet --out replayed

        narrowcast replay merged tomorrow.parquet
    """
    from narrowcast.data.ingest.key import check_known
    from narrowcast.data.planning.replay import check_replay
    from narrowcast.data.planning.replay import replay as run
    from narrowcast.model.tables import local_path

    out = None if out is None else local_path(out, "out")
    made = columns(key) or ()
    check_known(made, messages, "key")
    read = [path for path in (messages, subscriptions, interest) if path is not None]
    check_replay(plan, made, subscriptions, interest)
    with running(master, memory, "replaying", read, conf) as (spark, report):
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
