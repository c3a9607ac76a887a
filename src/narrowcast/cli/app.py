"""Every command, in the order a person meets them. A new command is one line here."""

from __future__ import annotations

from typing import Annotated

import typer

from narrowcast.cli.demo import demo
from narrowcast.cli.generate import generate
from narrowcast.cli.match import match
from narrowcast.cli.measure import measure
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

for command in (demo, profile, match, generate, measure, replay):
    app.command()(command)


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
