"""`narrowcast answer`: run merged queries over a table and write what goes to each channel."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from narrowcast.cli.arguments import columns
from narrowcast.cli.output import AsJson, Seed, notes, output, print_json, table
from narrowcast.cli.plan.common import Strict
from narrowcast.cli.plan.queries import Attributes, QueryMethod, QueryProcedure
from narrowcast.cli.spark import Conf, Explain, Master, Memory, Out, Overwrite, as_given, near, running, say
from narrowcast.errors import InputError, UnsupportedError

if TYPE_CHECKING:
    from narrowcast.plans.queries.result import QueriesPlan


def answer(
    queries: Annotated[Path, typer.Argument(help="The queries table: query, client, profile (a range).")],
    data: Annotated[
        str, typer.Argument(metavar="TABLE", help="The data to query: Parquet, CSV, JSON lines or a Spark table.")
    ],
    out: Out,
    plan: Annotated[
        Path | None,
        typer.Option(
            help="A plan with queries: its sets are kept, new queries join them. Default: plan for this table."
        ),
    ] = None,
    attributes: Attributes = None,
    method: Annotated[QueryMethod | None, typer.Option(help="How to merge, without --plan. Default: pair.")] = None,
    procedure: Annotated[
        QueryProcedure | None, typer.Option(help="Shape of a merged query, without --plan. Default: rectangle.")
    ] = None,
    km: Annotated[float | None, typer.Option(min=0, help="Cost of a merged query. Default: 0.00365.")] = None,
    kt: Annotated[float | None, typer.Option(min=0, help="Cost of sending a row. Default: 0.0000325.")] = None,
    ku: Annotated[
        float | None, typer.Option(min=0, help="Cost of a row to a client that did not ask for it. Default: 0.0000016.")
    ] = None,
    ka: Annotated[float | None, typer.Option(min=0, help="Cost to the server of a query's work. Default: 0.")] = None,
    incremental: Annotated[
        Path | None, typer.Option(help="A folder of state: answer only with rows new since the last run with it.")
    ] = None,
    master: Master = "local[*]",
    memory: Memory = "1g",
    conf: Conf = None,
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

        narrowcast answer queries.csv places.parquet --out tuesday --plan plan
    """
    with notes.status("starting"):  # Spark's modules take their time to load
        from narrowcast.data.answer.answer import Merging
        from narrowcast.data.answer.answer import answer as run
        from narrowcast.model.stores import destination
        from narrowcast.model.tables import local_path
        from narrowcast.plans.queries.api import Constants

    incremental = None if incremental is None else local_path(incremental, "incremental")
    prices = {name: value for name, value in (("km", km), ("kt", kt), ("ku", ku), ("ka", ka)) if value is not None}
    followed = None
    if plan is not None:
        chosen = {"attributes": attributes, "method": method, "procedure": procedure, **prices}
        followed = _followed(plan, [name for name, value in chosen.items() if value is not None])
    ways = (method or QueryMethod.pair).value, (procedure or QueryProcedure.rectangle).value
    merging = Merging(columns(attributes), *ways, Constants(**prices), seed)
    with ExitStack() as until:
        place, replace = until.enter_context(destination(out, overwrite=overwrite))
        asked = until.enter_context(near(queries, "queries"))
        source = until.enter_context(near(data, "table", master, conf))
        spark, report = until.enter_context(running(master, memory, "answering", conf=conf))
        result = run(
            spark,
            asked,
            source,
            place,
            merging,
            plan=followed,
            incremental=incremental,
            strict=strict,
            overwrite=replace,
            explain=say if explain else None,
            progress=report,
        )
    target = as_given(out)
    if result.set_aside:
        notes.print(
            f"[yellow]{result.set_aside:,} bad rows set aside[/], see {target}/*quarantine.parquet", soft_wrap=True
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
        print_json(told | {"steps": steps, "folder": target})
        return
    rows = [(name.replace("_", " "), value) for name, value in told.items()]
    output.print(table(f"Answered in {target}", ("", "count"), rows, numbers=("count",)))


def _followed(folder: Path, also: list[str]) -> QueriesPlan:
    if also:
        raise InputError(f"{also[0]} must be left out with --plan, which says it already", name=also[0])
    return queries_plan(folder)[0]


def queries_plan(folder: Path) -> tuple[QueriesPlan, tuple[str, ...]]:
    """The merged queries of a plan, and the key by which they are flows of a network; a plan without is refused."""
    from narrowcast.plans.network.result import NetworkPlan
    from narrowcast.plans.queries.result import QueriesPlan
    from narrowcast.plans.verbs import load

    found = load(folder)
    if isinstance(found, NetworkPlan) and found.demand.queries is not None:
        return found.demand.queries.merged, found.key
    if not isinstance(found, QueriesPlan):
        told = f"{folder}: the plan must be of kind queries, or a network with queries, got {found.kind}"
        raise UnsupportedError(told, works=("queries", "network"))
    return found, ()
