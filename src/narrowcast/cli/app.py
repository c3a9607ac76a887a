"""Every command, in the order a person meets them. A new command is one line here."""

from __future__ import annotations

from typing import Annotated

import typer

from narrowcast.cli.answer import answer
from narrowcast.cli.calibrate import calibrate
from narrowcast.cli.demo import demo
from narrowcast.cli.generate import generate
from narrowcast.cli.match import match
from narrowcast.cli.measure import measure
from narrowcast.cli.plan_channels import channels
from narrowcast.cli.plan_filters import filters
from narrowcast.cli.plan_hybrid import hybrid
from narrowcast.cli.plan_queries import queries
from narrowcast.cli.profile import profile
from narrowcast.cli.replay import replay

app = typer.Typer(
    name="narrowcast",
    help="Work out the cheapest safe way to get each message to exactly the people who want it.",
    epilog="Start with: narrowcast demo",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=True,
)

plan = typer.Typer(help="Plan: which way each message goes. One command per kind of plan.", no_args_is_help=True)
for planner in (channels, hybrid, filters, queries):
    plan.command()(planner)

for command in (demo, profile, match, generate, measure):
    app.command()(command)
app.add_typer(plan, name="plan")
for later in (replay, answer, calibrate):
    app.command()(later)


def _version(asked: bool) -> None:
    if asked:
        import narrowcast

        print(f"narrowcast {narrowcast.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what happens to standard error.")] = False,
) -> None:
    import logging

    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(name)s: %(message)s",
        datefmt="%H:%M:%S",
    )
