"""`narrowcast explain`: why a flow, subscriber, group or node is where it is, and what else could have been."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from narrowcast.cli.output import AsJson, output, print_json, table, text
from narrowcast.errors import InputError
from narrowcast.model.quantity import quantity

if TYPE_CHECKING:
    from narrowcast.evaluate.explanation import Explanation


def explain(
    plan: Annotated[Path, typer.Argument(help="The plan's folder.")],
    flow: Annotated[str | None, typer.Option(help="A flow, by its name (channels).")] = None,
    subscriber: Annotated[str | None, typer.Option(help="A subscriber, by name; for queries, a client.")] = None,
    group: Annotated[int | None, typer.Option(help="A multicast group, by its number.")] = None,
    session: Annotated[int | None, typer.Option(help="A session, by its number.")] = None,
    channel: Annotated[int | None, typer.Option(help="A channel: a session, or a set of merged queries.")] = None,
    node: Annotated[str | None, typer.Option(help="A node of the tree (filters).")] = None,
    query: Annotated[str | None, typer.Option(help="A query, by its name, or as 'name of client'.")] = None,
    site: Annotated[str | None, typer.Option(help="A site (network): what one more group would save.")] = None,
    top: Annotated[int, typer.Option(min=1, help="How many rows of each list to show.")] = 10,
    json: AsJson = False,
) -> None:
    """Say where something goes, who gets it unasked, what the next best choice was and what it would cost.

    Every other choice is the cost of the whole plan with that one thing changed, recomputed from its
    definition; choices that a budget or limit forbids are shown with the one that does.

    Examples:

        narrowcast explain plan --flow IBM

        narrowcast explain plan --subscriber desk-17 --json
    """
    from narrowcast.model.folder import read_tables
    from narrowcast.plans.verbs import explain as explained

    asked = {"flow": flow, "subscriber": subscriber, "group": group, "session": session, "channel": channel,
             "node": node, "query": query, "site": site}  # fmt: skip
    given = [(what, name) for what, name in asked.items() if name is not None]
    if len(given) != 1:
        options = ", ".join(f"--{what}" for what in asked)
        raise InputError(f"explain needs exactly one of {options}", name="explain", got=[w for w, _ in given])
    found = explained(read_tables(plan), **dict(given))
    if json:
        print_json(found.as_dict(top))
        return
    _show(found, top)


def _show(found: Explanation, top: int) -> None:
    output.print(f"[bold]{escape(found.headline)}[/]", soft_wrap=True)
    facts = [(_words(name), _plain(value)) for name, value in found.facts.items() if value is not None]
    shown = table("", ("", ""), facts)
    shown.show_header = False
    output.print(shown)
    if found.unwanted:
        rows = [(escape(u.who), u.rate, escape(u.of)) for u in found.unwanted[:top]]
        heads = ("who", "rate" if found.kind == "channels" else "amount", "of what")
        title = f"Received unasked ({len(rows):,} of {len(found.unwanted):,})"
        output.print(_without_empty(title, heads, rows, numbers=heads[1:2]))
    _show_choices(found, top)


def _show_choices(found: Explanation, top: int) -> None:
    if found.cost is None or not found.choices:
        output.print("There was no other choice.")
        return
    rows: list[tuple[object, ...]] = [("[bold green]as planned[/]", found.cost, "", "")]
    rows += [(escape(c.what), c.cost, _change(c.change, found.cost), c.barred) for c in found.choices[:top]]
    title = f"Choices, by {found.measure} ({len(rows) - 1:,} of {len(found.choices):,})"
    output.print(
        _without_empty(title, ("choice", "cost", "change", "not allowed by"), rows, numbers=("cost", "change"))
    )
    best = found.next_best
    if best is None:
        output.print("No other choice is allowed.")
    elif not _change(best.change, found.cost):
        output.print(f"Next best: {escape(best.what)}, at the same cost")
    else:
        share = f" ({best.change / found.cost:+.2%})" if found.cost else ""
        word = "more" if best.change > 0 else "less"
        output.print(f"Next best: {escape(best.what)}, which would cost {quantity(abs(best.change))} {word}{share}")


def _without_empty(
    title: str, heads: tuple[str, ...], rows: Sequence[tuple[object, ...]], *, numbers: Sequence[str]
) -> Table:
    """A table that leaves out its last column where that says nothing."""
    if not any(row[-1] for row in rows):
        heads, rows = heads[:-1], [row[:-1] for row in rows]
    return table(title, heads, rows, numbers=numbers)


def _change(change: float, cost: float) -> str:
    """A difference in cost; rounding is none."""
    return "" if abs(change) <= 1e-9 * max(abs(cost), abs(change + cost)) else quantity(change, signed=True)


def _words(name: str) -> str:
    return f"number of {name[2:]}" if name.startswith("n_") else name


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return escape(", ".join(str(v) for v in value)) or "none"
    return text(value.item() if hasattr(value, "item") else value)
