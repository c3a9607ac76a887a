"""What the reports of all kinds share: the bars against other ways, a load per something, and the order of it all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from narrowcast.model.plan import Plan
from narrowcast.reports.find import Findable, find_section
from narrowcast.reports.parts import Bar, Report, Section, Tile, bars, columns_chart, figure, folded, table
from narrowcast.reports.text import number
from narrowcast.reports.whatif import Whatif, whatif_section

OURS = "this plan"
MOST_COLUMNS = 200
MOST_ROWS = 500
FEW = 6  # columns with a text under each


@dataclass(frozen=True)
class Yardstick:
    """This plan's cost, its share of `measure`, and what one calls it: what a what-if is compared with."""

    cost: float
    share: float | None
    measure: str
    unit: str


def ways_section(
    costs: Mapping[str, float],
    ours: float,
    *,
    label: str,
    lead: str,
    value: Callable[[float], str] = number,
    note: Callable[[str, float], str] = lambda name, cost: "",
) -> Section:
    """A bar for every named way and for this plan, the least first."""
    ways = {**costs, OURS: ours}
    longest = max(ways.values()) or 1.0
    order = sorted(ways, key=lambda name: (ways[name], name != OURS, name))
    rows = [Bar(name, ways[name] / longest, value(ways[name]), note(name, ways[name]), name == OURS) for name in order]
    return Section("ways", "Against the other ways", bars(label, rows), lead)


@dataclass(frozen=True)
class Load:
    """One bar of a load chart: what it is, how much, and the row of the table beside it."""

    name: str
    amount: float
    row: Sequence[object]


def load_chart(loads: Sequence[Load], columns: Sequence[str], *, what: str) -> str:
    """Upright bars, the largest first, and the same as a table; `what` says what a bar is."""
    order = sorted(loads, key=lambda load: -load.amount)
    if not order:
        return f"<p>There is no {what}.</p>"
    shown = order[:MOST_COLUMNS]
    told = [f"{load.name}: {number(load.amount)}" for load in shown]
    label = f"Load of every {what}, the largest first: {told[0]}, down to {told[-1]}."
    under = told if len(told) <= FEW else [told[0], told[-1]]
    chart = columns_chart(label, [load.amount for load in shown], told, under=under)
    rows = table(columns, [load.row for load in order[:MOST_ROWS]], numbers=columns[1:])
    return figure(chart) + folded("As a table", rows)


def assemble(
    plan: Plan,
    whatif: Whatif | None,
    *,
    headline: Sequence[str],
    summary: str,
    tiles: Sequence[Tile],
    ways: Section,
    yardstick: Yardstick,
    sections: Sequence[Section],
    find: Sequence[Findable] = (),
    hover: Sequence[Mapping[str, Any]] | None = None,
) -> Report:
    """The report in the order of every report: the ways, the what-if, one's own, what this kind has to show."""
    first, data = [ways], dict[str, Any]()
    if hover is not None:
        data["hover"] = hover
    if whatif is not None:
        y = yardstick
        asked, points = whatif_section(whatif, cost=y.cost, measure=y.measure, unit=y.unit, relative_cost=y.share)
        first.append(asked)
        data["whatif"] = points
    if find:
        mine, data["find"] = find_section(find)
        first.append(mine)
    return Report(
        title=f"{plan.kind.capitalize()} plan",
        headline=", ".join(part for part in headline if part),
        summary=summary,
        tiles=tuple(tiles),
        sections=(*first, *sections),
        data=data,
    )
