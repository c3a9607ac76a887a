"""`narrowcast check`: is a plan sound, and does it cost what it says?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrowcast.cli.output import AsJson, notes, output, print_json, table
from narrowcast.errors import InputError

if TYPE_CHECKING:
    from narrowcast.model.plan import Plan

SHOWN = 20


def check(
    plan: Annotated[Path, typer.Argument(help="The plan's folder.")],
    messages: Annotated[
        Path | None, typer.Option(help="Messages to send through the plan: nobody may miss one. With --subscriptions.")
    ] = None,
    subscriptions: Annotated[
        Path | None, typer.Option(help="The subscriptions table: subscriber, profile. With --messages.")
    ] = None,
    key: Annotated[str, typer.Option(help="The attribute of a message that names its flow.")] = "symbol",
    sample: Annotated[int, typer.Option(min=1, help="At most so many messages, drawn evenly.")] = 100_000,
    json: AsJson = False,
) -> None:
    """Check a plan again, by code that had no part in making it, from the plan's folder alone.

    Who wants something gets it; nothing is sent without need; budgets and limits are kept; costs and
    baselines are recomputed from their definitions; and no table was changed since the plan was written.
    The exit code is 0 for a sound plan and 1 for any fault.

    Examples:

        narrowcast check plan

        narrowcast check plan --messages messages.parquet --subscriptions subscriptions.parquet --key symbol
    """
    from narrowcast.evaluate import judge
    from narrowcast.model.plan import load

    if (messages is None) != (subscriptions is None):
        raise InputError("--messages and --subscriptions go together", name="messages")
    given = load(plan)
    with notes.status("checking"):
        found = judge(given)
        faults, checked = list(found.faults), list(found.checked)
        if messages is not None and subscriptions is not None:
            missed, pairs = _messages(given, messages, subscriptions, key, sample)
            faults += missed
            checked.append(f"{pairs:,} wanted messages reach their subscribers")
    if json:
        result = {"plan": plan, "kind": given.kind, "sound": not faults, "faults": faults, "checked": checked}
        print_json(result | {"cost": found.cost})
    else:
        _show(given, faults, checked, dict(found.cost))
    if faults:
        raise typer.Exit(1)


def _messages(given: Plan, messages: Path, subscriptions: Path, key: str, sample: int) -> tuple[list[str], int]:
    from narrowcast.evaluate.sample import message_faults
    from narrowcast.model.tables import read_table

    wishes = read_table(subscriptions, name="subscriptions", columns=("subscriber", "profile"))
    pairs = list(zip(map(str, wishes["subscriber"].to_pylist()), wishes["profile"].to_pylist(), strict=True))
    return message_faults(given, read_table(messages, name="messages", columns=(key,)), pairs, key=key, sample=sample)


def _show(plan: Plan, faults: list[str], checked: list[str], cost: dict[str, Any]) -> None:
    for fault in faults[:SHOWN]:
        output.print(f"[red]✗[/] {fault}", markup=True, soft_wrap=True)
    if len(faults) > SHOWN:
        output.print(f"… and {len(faults) - SHOWN:,} more")
    if faults:
        output.print(f"[bold red]unsound[/]: {len(faults):,} fault{'s' * (len(faults) != 1)} in this {plan.kind} plan")
        return
    for line in checked:
        output.print(f"[green]✓[/] {line}", soft_wrap=True)
    rows = list(cost.items())
    output.print(table("Cost, recomputed", ("term", "value"), rows, numbers=("value",)))
    output.print(f"[bold green]sound[/]: a {plan.kind} plan that does and costs what it says")
