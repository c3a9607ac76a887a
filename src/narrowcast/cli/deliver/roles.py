"""`narrowcast coordinator|source|broker|relay|edge|gate` and `narrowcast preflight`: processes one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from narrowcast.cli.deliver.running import Config, Metrics
from narrowcast.cli.output import AsJson, notes, output, print_json, table
from narrowcast.errors import InputError

CHECKED = ("coordinator", "source", "broker", "relay", "edge", "gate")


def coordinator(config: Config, metrics: Metrics = None) -> None:
    """Run a coordinator: plans, and moves the system from plan to plan. Several may run; one leads."""
    _run("coordinator", config, metrics)


def source(config: Config, metrics: Metrics = None) -> None:
    """Run the source of a shard: reads the log and sends frames to channels. Several may run."""
    _run("source", config, metrics)


def broker(config: Config, metrics: Metrics = None) -> None:
    """Run a broker of the overlay: passes frames on along the plan's trees."""
    _run("broker", config, metrics)


def edge(config: Config, metrics: Metrics = None) -> None:
    """Run a standing edge: the subscriptions of its file, each written to a file that survives a kill.

    With a socket in its file it serves the other processes of this host too: narrowcast.connect(…, edge=SOCKET).
    """
    _run("edge", config, metrics)


def relay(config: Config, metrics: Metrics = None) -> None:
    """Run the relays of a network's sites: what comes to a gateway goes on into its site. One more may stand by."""
    _run("relay", config, metrics)


def gate(config: Config, metrics: Metrics = None) -> None:
    """Run a gate: answers publishers and subscribers that have accounts, and refuses what they may not have."""
    _run("gate", config, metrics)


def preflight(
    config: Config,
    role: Annotated[str | None, typer.Option(help=f"The role to check for: {', '.join(CHECKED)}.")] = None,
    json: AsJson = False,
) -> None:
    """Check a host before anything starts: every problem at once, each with its fix."""
    import asyncio

    from narrowcast.deliver.processes.preflight import check_configuration
    from narrowcast.deliver.processes.system import System

    if role is not None and role not in CHECKED:
        raise InputError(f"role must be one of {', '.join(CHECKED)}, got {role!r}", name="role", got=role)
    problems = asyncio.run(check_configuration(System.read(config), role))
    if json:
        print_json({"problems": [{"what": p.what, "fix": p.fix, "fatal": p.fatal} for p in problems]})
    elif problems:
        rows = [("stops" if p.fatal else "note", p.what, p.fix) for p in problems]
        output.print(table(f"Problems of {config}", ("", "what", "fix"), rows))
    else:
        notes.print("nothing is in the way")
    if any(problem.fatal for problem in problems):
        raise typer.Exit(1)


def _run(role: str, path: Path, metrics: int | None) -> None:
    from dataclasses import replace

    from narrowcast.deliver.processes.roles import run_role
    from narrowcast.deliver.processes.system import System
    from narrowcast.deliver.transport.loop import run

    config = System.read(path)
    if metrics is not None:
        config = replace(config, metrics=replace(config.metrics, port=metrics))
    notes.print(f"{role} starts; Ctrl-C ends it")
    run(run_role(role, config))
