"""The report of a plan that merges range queries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from narrowcast.model.arrays import Floats
from narrowcast.plans.queries.result import QueriesPlan
from narrowcast.reports.build import Load, Yardstick, assemble, load_chart, ways_section
from narrowcast.reports.find import Findable
from narrowcast.reports.map import map_drawing
from narrowcast.reports.parts import Report, Section, Tile, table
from narrowcast.reports.picture import Picture
from narrowcast.reports.text import number, percent, plural, short
from narrowcast.reports.whatif import Whatif

WORST = 10
WAYS = {"apart": "each alone"}


def report(plan: QueriesPlan, whatif: Whatif | None) -> Report:
    """Which queries are answered together, where, and what that saves."""
    total, members = plan.cost.total, plan.sets
    costs = {WAYS.get(name, name): float(found) for name, found in plan.cost.baselines.items()}
    apart = costs.get(WAYS["apart"], 0.0)
    terms = ", ".join(f"{name} {number(value)}" for name, value in plan.cost.terms.items())
    asked = plural(len(plan.demand.boxes), "query", "queries")
    together = sum(len(inside) for inside in members if len(inside) > 1)
    return assemble(
        plan,
        whatif,
        headline=[
            f"{asked} answered by {len(members):,}",
            f"{percent(1 - total / apart)} cheaper than each alone" if apart else f"cost {number(total)}",
            f"{together:,} share an answer with others",
        ],
        summary=f"Range queries over {', '.join(map(short, plan.demand.attributes))}; each client takes exactly its "
        "own rows out of a shared answer.",
        tiles=[
            Tile(
                "Cost", percent(total / apart) if apart else number(total), "of answering each alone" if apart else ""
            ),
            Tile("Answers sent", f"{len(members):,}", f"for {asked}"),
            Tile("Shared", f"{together:,}", f"of {asked} get their answer with others’"),
        ],
        ways=ways_section(
            costs,
            total,
            label="Cost by way of answering",
            lead=f"Costs in the unit of km, kt and ku. Of this plan: {terms}.",
        ),
        yardstick=Yardstick(total, total / apart if apart else None, "the cost of each alone", "cost"),
        sections=[_map(plan), _sets(plan)],
        find=[_asked(plan)],
    )


def _area(box: Floats) -> float:
    sides = box[:, 1] - box[:, 0]
    return float(np.prod(sides)) if np.isfinite(sides).all() else float("nan")


def _map(plan: QueriesPlan) -> Section:
    lead = "Every query as it was asked, and the merged ones that answer several."
    return Section("map", "The map", picture(plan).markup, lead)


def _asked(plan: QueriesPlan) -> Findable:
    rows = []
    for at, members in enumerate(plan.sets):
        whole = sum(map(_area, plan.pieces[at]))
        for q in members:
            share = percent(_area(plan.demand.boxes[q]) / whole) if whole else "–"
            rows.append((plan.demand.full_names[q], plan.numbers[at], f"{len(members) - 1:,}", share))
    return Findable("query", ("number of its answer", "other queries in it", "own share, by size"), rows)


def _sets(plan: QueriesPlan) -> Section:
    numbers, sizes = plan.numbers, [len(members) for members in plan.sets]
    loads = [Load(f"answer {at}", float(n), (at, f"{n:,}")) for at, n in zip(numbers, sizes, strict=True)]
    chart = load_chart(loads, ("answer", "queries"), what="answer")
    sent = [sum(map(_area, pieces)) for pieces in plan.pieces]
    own = [sum(_area(plan.demand.boxes[q]) for q in members) for members in plan.sets]
    discarded = [n * whole - mine for n, whole, mine in zip(sizes, sent, own, strict=True)]
    # A size without an end comes first: nothing is more to discard.
    worst = sorted(range(len(sizes)), key=lambda at: (np.isfinite(discarded[at]), -np.nan_to_num(discarded[at])))
    share = [percent(mine / (n * whole)) if whole else "–" for n, whole, mine in zip(sizes, sent, own, strict=True)]
    rows = [
        (numbers[at], f"{sizes[at]:,}", number(sent[at]), share[at], _some(plan, plan.sets[at])) for at in worst[:WORST]
    ]
    columns = ("answer", "queries", "size", "own share", "for")
    told = table(columns, rows, numbers=columns[1:4], stack=True)
    lead = "How many queries each answer serves, and the ten answers in which clients find most that is not theirs."
    return Section("sets", "Load per answer", f"{chart}<h3>Most to discard</h3>{told}", lead)


def _some(plan: QueriesPlan, members: Sequence[int]) -> str:
    named = ", ".join(short(plan.demand.full_names[q], 24) for q in members[:4])
    return named + (f" and {len(members) - 4} more" if len(members) > 4 else "")


def picture(plan: QueriesPlan) -> Picture:
    """Boxes along the first two attributes; with one attribute intervals, one above another."""
    boxes, attributes, names = plan.demand.boxes, plan.demand.attributes, plan.demand.full_names
    rank = {q: i for i, q in enumerate(q for members in plan.sets for q in members)}
    merged = [at for at, members in enumerate(plan.sets) if len(members) > 1]
    drawn, scale = map_drawing(
        [(box, rank[q], names[q]) for q, box in enumerate(boxes)],
        [
            (box, [rank[q] for q in plan.sets[at]], f"answer {plan.numbers[at]}, for {len(plan.sets[at])} queries")
            for at in merged
            for box in plan.pieces[at]
        ],
        attributes,
        f"{plural(len(boxes), 'query', 'queries')} on the map, and {len(merged):,} merged.",
    )
    more = f" Of {len(attributes)} attributes the first two." if len(attributes) > 2 else ""
    title = f"{plural(len(boxes), 'query', 'queries')} answered by {len(plan.sets):,}"
    return Picture(title, drawn, (("ours", "merged query"), ("nothing", "query")), scale + more)
