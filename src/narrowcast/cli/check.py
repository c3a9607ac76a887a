"""`narrowcast check`: is a plan sound, and does it cost what it says?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrowcast.cli.output import AsJson, notes, output, print_json, table
from narrowcast.errors import InputError

if TYPE_CHECKING:
    from narrowcast.model.plan import Tables

SHOWN = 20


def check(
    plan: Annotated[Path, typer.Argument(help="The plan's folder.")],
    messages: Annotated[
        Path | None, typer.Option(help="Messages that the plan must bring to all who want them. Needs --subscriptions.")
    ] = None,
    subscriptions: Annotated[
        Path | None,
        typer.Option(help="Who wants what: subscriber, profile, and node for filters and semantic. Needs --messages."),
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="The attributes that make a flow, as symbol,venue, if the plan has none.")
    ] = None,
    sample: Annotated[int, typer.Option(min=1, help="The most messages to check, drawn evenly.")] = 100_000,
    json: AsJson = False,
) -> None:
    """Check a plan again, by code that had no part in making it, from the plan's folder alone.

    Who wants something gets it; nothing is sent without need; budgets and limits are kept; costs and
    baselines are recomputed from their definitions; and no table was changed since the plan was written.
    The exit code is 0 for a sound plan and 1 for any fault.

    Examples:

        narrowcast check plan

        narrowcast check plan --messages messages.parquet --subscriptions subscriptions.parquet
    """
    from narrowcast.cli.arguments import columns
    from narrowcast.model.folder import read_tables
    from narrowcast.plans.verbs import check_tables

    if (messages is None) != (subscriptions is None):
        raise InputError("--messages and --subscriptions must be given together", name="messages")
    given = read_tables(plan)
    if key is not None:
        given = replace(given, key=columns(key) or ())
    with notes.status("checking"):
        found = check_tables(given, messages, subscriptions, sample=sample)
    if json:
        result = {"plan": plan, "kind": given.kind, "sound": found.sound, "faults": found.faults}
        print_json(result | {"checked": found.checked, "cost": found.cost})
    else:
        _show(given, list(found.faults), list(found.checked), dict(found.cost))
    if not found.sound:
        raise typer.Exit(1)


def _show(plan: Tables, faults: list[str], checked: list[str], cost: dict[str, Any]) -> None:
    from narrowcast.reports.text import term_words

    for fault in faults[:SHOWN]:
        output.print(f"[red]✗[/] {fault}", markup=True, soft_wrap=True)
    if len(faults) > SHOWN:
        output.print(f"… and {len(faults) - SHOWN:,} more")
    if faults:
        output.print(f"[bold red]unsound[/]: {len(faults):,} fault{'s' * (len(faults) != 1)} in this {plan.kind} plan")
        return
    for line in checked:
        output.print(f"[green]✓[/] {line}", soft_wrap=True)
    rows = [(term_words(name), value) for name, value in cost.items()]
    output.print(table("Cost, recomputed", ("term", "value"), rows, numbers=("value",)))
    output.print(f"[bold green]sound[/]: a {plan.kind} plan that does and costs what it says")
