"""`narrowcast replay`: what a plan carries on traffic it was not planned from."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from narrowcast.cli.arguments import columns
from narrowcast.cli.output import AsJson, notes, output, print_json, table
from narrowcast.cli.spark import Conf, Explain, Master, Memory, Overwrite, as_given, near, running, say


def replay(
    plan: Annotated[Path, typer.Argument(help="The plan's folder, of any kind.")],
    messages: Annotated[Path, typer.Argument(help="The message log: Parquet, CSV or JSON lines.")],
    key: Annotated[
        str | None, typer.Option(help="The columns that make a flow, as symbol,venue, if the plan does not say.")
    ] = None,
    subscriptions: Annotated[Path | None, typer.Option(help="The subscriptions table: subscriber, profile.")] = None,
    interest: Annotated[Path | None, typer.Option(help="The interest table: subscriber, flow.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="The folder for tables by group, link and subscriber, or its URL.")
    ] = None,
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
    with notes.status("starting"):  # Spark's modules take their time to load
        from narrowcast.data.ingest.key import check_known
        from narrowcast.data.planning.replay import check_replay
        from narrowcast.data.planning.replay import replay as run
        from narrowcast.model.stores import destination

    made = columns(key) or ()
    check_replay(plan, made, subscriptions, interest)
    with ExitStack() as until:
        place, replace = (None, False)
        if out is not None:
            place, replace = until.enter_context(destination(out, overwrite=overwrite))
        given = {"messages": messages, "subscriptions": subscriptions, "interest": interest}
        read = {
            name: until.enter_context(near(path, name, master, conf))
            for name, path in given.items()
            if path is not None
        }
        check_known(made, read["messages"], "key")
        spark, report = until.enter_context(running(master, memory, "replaying", read.values(), conf))
        result = run(
            spark,
            plan,
            read["messages"],
            key=made,
            subscriptions=read.get("subscriptions"),
            interest=read.get("interest"),
            out=place,
            overwrite=replace,
            explain=say if explain else None,
            progress=report,
        )
    if json:
        print_json(
            {"cost": result.cost, "predicted": result.predicted, "folder": None if out is None else as_given(out)}
        )
        return
    names = [*result.cost, *(n for n in result.predicted if n not in result.cost)]
    rows = [(n.replace("_", " "), result.cost.get(n, "-"), result.predicted.get(n, "-")) for n in names]
    output.print(table("Replayed", ("", "measured", "predicted"), rows, numbers=("measured", "predicted")))
