"""Every command, in the order a person meets them. A new command is one line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from narrowcast.cli.answer import answer
from narrowcast.cli.check import check
from narrowcast.cli.deliver.account import account
from narrowcast.cli.deliver.adapt import adapt
from narrowcast.cli.deliver.calibrate import calibrate
from narrowcast.cli.deliver.console import console
from narrowcast.cli.deliver.publish import publish
from narrowcast.cli.deliver.roles import broker, coordinator, edge, gate, preflight, relay, source
from narrowcast.cli.deliver.serve import receive, serve
from narrowcast.cli.deliver.subscribe import subscribe
from narrowcast.cli.deliver.top import top
from narrowcast.cli.deliver.up import down, up
from narrowcast.cli.demo import demo
from narrowcast.cli.diff import diff
from narrowcast.cli.explain import explain
from narrowcast.cli.export import export
from narrowcast.cli.generate import generate
from narrowcast.cli.match import match
from narrowcast.cli.measure import measure
from narrowcast.cli.plan.channels import channels
from narrowcast.cli.plan.filters import filters
from narrowcast.cli.plan.hybrid import hybrid
from narrowcast.cli.plan.network import network
from narrowcast.cli.plan.queries import queries
from narrowcast.cli.plan.semantic import semantic
from narrowcast.cli.profile import profile
from narrowcast.cli.replay import replay
from narrowcast.cli.report import report
from narrowcast.cli.whatif import whatif

app = typer.Typer(
    name="narrowcast",
    help="Plan, check and run the cheapest way to get each message to exactly the subscribers who want it.",
    epilog="Start with: narrowcast demo",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    add_completion=True,
)

plan = typer.Typer(help="Make a plan: which way each message goes. One command per kind of plan.", no_args_is_help=True)
for planner in (channels, hybrid, filters, queries, semantic, network):
    plan.command()(planner)

START, PLANS, USES, LIVE, ROLES = (
    "Begin here",
    "A plan and whether to trust it",
    "Put a plan to use",
    "Deliver",
    "One role at a time, on many hosts",
)
COMMANDS: dict[str, tuple[Callable[..., None], ...]] = {
    START: (demo, profile, match, generate, measure),
    PLANS: (check, explain, report, whatif, diff),
    USES: (export, replay, answer, calibrate),
    LIVE: (up, publish, subscribe, serve, receive, adapt, top, console, down),
    ROLES: (preflight, coordinator, source, broker, relay, edge, gate),
}
for panel, commands in COMMANDS.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
    if panel == LIVE:
        app.add_typer(account, name="account", rich_help_panel=LIVE)
    if panel == START:
        app.add_typer(plan, name="plan", rich_help_panel=PLANS)


def _version(asked: bool) -> None:
    if asked:
        import narrowcast

        print(f"narrowcast {narrowcast.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Write log lines to standard error; works anywhere on the line.")
    ] = False,
    log_format: Annotated[
        str | None,
        typer.Option(help="How log lines are written: text, or json, an object on each line.", show_envvar=False),
    ] = None,
) -> None:
    import logging
    import os

    from narrowcast.deliver.processes.logs import FORMAT, set_up_logs

    if log_format is not None:
        os.environ[FORMAT] = log_format  # for the processes that `up` starts
    set_up_logs(logging.INFO if verbose else logging.WARNING)
