"""`narrowcast diff`: what changes between two plans, and how to get from one to the other."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from narrowcast.cli.output import AsJson, notes, output, print_json, table
from narrowcast.errors import PlanError
from narrowcast.model.quantity import quantity

if TYPE_CHECKING:
    from narrowcast.evaluate.migration import Migration, Step

# The figure that people compare plans of a kind by.
HEADLINE = {"channels": "excess"}
LINUX_JOINS = 20  # per socket, unless net.ipv4.igmp_max_memberships says otherwise
OPENED = {
    "take": "session filters wider",
    "copy": "unicast copies on",
    "ask": "merged queries on",
    "filter": "filters on",
}
CLOSED = {
    "take": "session filters narrower", "copy": "unicast copies off", "ask": "merged queries off",
    "filter": "filters off",
}  # fmt: skip
# What a plan of a kind sends: one, and several.
CONTENT = {"queries": ("query", "queries"), "filters": ("leaf", "leaves"), "semantic": ("gateway", "gateways")}
# Who joins: one, and several.
WHO = {"semantic": ("gateway", "gateways")}


def diff(
    old: Annotated[Path, typer.Argument(help="The folder of the plan in force.")],
    new: Annotated[Path, typer.Argument(help="The folder of the new plan.")],
    join_rate: Annotated[
        float | None, typer.Option(min=0.001, help="The most joins and leaves per second, of all subscribers together.")
    ] = None,
    subscriber_join_rate: Annotated[
        float | None, typer.Option(min=0.001, help="The most joins and leaves per second of each subscriber.")
    ] = None,
    drain_s: Annotated[
        float, typer.Option(min=0, help="Seconds that messages sent under the old plan may take to arrive.")
    ] = 1.0,
    out: Annotated[
        Path | None, typer.Option(help="Write the new plan here, with the old plan's numbers where possible.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many rows of each list to show.")] = 10,
    json: AsJson = False,
) -> None:
    """Show what moves between two plans, who joins and leaves what, and the steps that lose nobody.

    Numbers of groups, sessions and sets mean nothing, so the new plan's are first made to agree with the
    old one's. The steps are: add (everything the new plan needs beside the old), move (contents change
    their way), drain, remove. Whoever wants something under both plans has it at every step.

    Examples:

        narrowcast diff plan-monday plan-tuesday --join-rate 50

        narrowcast diff plan-monday plan-tuesday --json > migration.json
    """
    from narrowcast.model.folder import read_tables, write_tables
    from narrowcast.plans.verbs import certify, judge
    from narrowcast.plans.verbs import diff as compare

    plans = [read_tables(folder) for folder in (old, new)]
    for folder, plan in zip((old, new), plans, strict=True):
        faults = judge(plan).faults
        if faults:
            raise PlanError(f"{folder} is unsound: {faults[0]} (see narrowcast check {folder})")
    with notes.status("comparing"):
        found = compare(*plans, join_rate=join_rate, subscriber_join_rate=subscriber_join_rate, drain_s=drain_s)
    if out is not None:
        write_tables(certify(found.new), out)
    if json:
        print_json({"old": old, "new": new, **found.as_dict()})
        return
    _show(found, top)
    if out is not None:
        output.print(f"Written to {out}")


def _show(found: Migration, top: int) -> None:
    joins, leaves = found.counts()
    moved = [move for move in found.moves if move.before is not None and move.after is not None]
    started, ended = (sum(getattr(m, end) is None for m in found.moves) for end in ("before", "after"))
    joining = joins | leaves
    what, several = CONTENT.get(found.new.kind, ("flow", "flows"))
    one, all_of_them = WHO.get(found.new.kind, ("subscriber", "subscribers"))
    output.print(f"[bold]{_headline(found)}[/]")
    output.print(
        f"{len(moved):,} of {len(found.after.place):,} {several} move, {started:,} start, {ended:,} end; "
        f"{sum(joins.values()):,} joins and {sum(leaves.values()):,} leaves at {len(joining):,} {all_of_them}"
    )
    _show_filters(found)
    if found.moves:
        rows = [
            (escape(m.content.split(" [")[0]), m.weight, m.before or "nowhere", m.after or "nowhere")
            for m in found.moves[:top]
        ]
        columns = (what, "rate", "from", "to")
        output.print(table(f"Moves ({len(rows):,} of {len(found.moves):,})", columns, rows, numbers=("rate",)))
    if joining:
        most = sorted(joining, key=lambda who: (-joins[who] - leaves[who], who))[:top]
        counts = [(escape(who), joins[who], leaves[who], found.peak_joins.get(who, 0)) for who in most]
        columns = (one, "joins", "leaves", "most at once")
        title = f"{all_of_them.capitalize()} ({len(counts):,} of {len(joining):,})"
        output.print(table(title, columns, counts, numbers=columns[1:]))
    if not found.steps:
        output.print("Nothing has to be done.")
        return
    steps = [_row(step, at + 1) for at, step in enumerate(found.steps)]
    if len(steps) > 2 * top:
        steps = [*steps[:top], ("…", f"{len(steps) - 2 * top:,} more"), *steps[-top:]]
    heads = ("step", "", "at", "joins", "moves", "leaves", "beside")
    output.print(table(f"Migration in {quantity(found.seconds)} s", heads, steps, numbers=heads[2:6]))
    _warn(found)
    output.print("Whoever wants something under both plans has it at every step.")


def _warn(found: Migration) -> None:
    """Old and new joins together may be more than either plan has."""
    limits = dict(found.new.parameters.get("limits", {}))
    allowed = int(limits.get("joins_per_subscriber") or limits.get("joins_per_user") or LINUX_JOINS)
    many = [who for who, n in found.peak_joins.items() if n > allowed]
    if many:
        output.print(f"[yellow]{len(many):,} subscribers are in more than {allowed} groups for a while[/]")


def _headline(found: Migration) -> str:
    for term in (HEADLINE.get(found.new.kind, "total"), "total"):  # a hybrid plan has no excess
        before, after = found.cost.get(term, (None, None))
        if before is not None and after is not None:
            share = f" ({after / before - 1:+.1%})" if before else ""
            return f"{'cost' if term == 'total' else term + ' cost'} {quantity(before)} → {quantity(after)}{share}"
    return f"from a {found.old.kind} plan to a {found.new.kind} plan"


def _show_filters(found: Migration) -> None:
    gone, come = (sorted(set(a) - set(b)) for a, b in ((found.before.filters, found.after.filters),
                                                       (found.after.filters, found.before.filters)))  # fmt: skip
    if gone or come:
        output.print(f"filters go from {', '.join(gone) or 'nowhere'} to {', '.join(come) or 'nowhere'}", markup=False)


def _row(step: Step, number: int) -> tuple[object, ...]:
    from narrowcast.evaluate.ways import SIGNALLED

    joins, leaves = (sum(need.verb in SIGNALLED for need in needs) or "" for needs in (step.do, step.undo))
    beside = [f"{n:,} {OPENED[verb]}" for verb, n in Counter(need.verb for need in step.do).items() if verb in OPENED]
    beside += [
        f"{n:,} {CLOSED[verb]}" for verb, n in Counter(need.verb for need in step.undo).items() if verb in CLOSED
    ]
    return str(number), step.kind, f"{quantity(step.at_s)} s", joins, len(step.moves) or "", leaves, ", ".join(beside)
