"""The report of a plan that merges range queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from narrowcast.model.arrays import Floats
from narrowcast.model.plan import Plan
from narrowcast.reports.build import Load, Yardstick, assemble, load_chart, ways_section
from narrowcast.reports.map import map_drawing
from narrowcast.reports.parts import Report, Section, Tile, figure, legend, table
from narrowcast.reports.text import number, percent, plural, short
from narrowcast.reports.whatif import Whatif

WORST = 10
WAYS = {"apart": "each alone"}


def queries_report(plan: Plan, whatif: Whatif | None) -> Report:
    """Which queries are answered together, where, and what that saves."""
    read = _read(plan)
    total = float(plan.cost.get("total", 0.0))
    costs = {WAYS.get(n, n): float(v) for n, v in plan.baselines.items() if isinstance(v, int | float)}
    apart = costs.get(WAYS["apart"], 0.0)
    terms = ", ".join(f"{name} {number(float(value))}" for name, value in plan.cost.items() if name != "total")
    asked = plural(len(read.queries), "query", "queries")
    together = sum(len(members) for members in read.members.values() if len(members) > 1)
    return assemble(
        plan,
        whatif,
        headline=[
            f"{asked} answered by {len(read.members):,}",
            f"{percent(1 - total / apart)} cheaper than each alone" if apart else f"cost {number(total)}",
            f"{together:,} share an answer with others",
        ],
        summary=f"Range queries over {', '.join(map(short, read.dimensions))}; each client takes exactly its own rows "
        "out of a shared answer.",
        tiles=[
            Tile(
                "Cost", percent(total / apart) if apart else number(total), "of answering each alone" if apart else ""
            ),
            Tile("Answers sent", f"{len(read.members):,}", f"for {asked}"),
            Tile("Shared", f"{together:,}", "queries get their answer with others’"),
        ],
        ways=ways_section(costs, total, label="Cost by way of answering", lead=f"Of this plan: {terms}."),
        yardstick=Yardstick(total, total / apart if apart else None, "the cost of each alone", "cost"),
        sections=[_map(read), _sets(read)],
    )


@dataclass(frozen=True, eq=False)
class _Read:
    """Boxes of queries and of the pieces of each set, by key, and the queries of each set."""

    dimensions: list[str]
    queries: dict[tuple[Any, ...], Floats]
    pieces: dict[tuple[Any, ...], Floats]
    members: dict[Any, list[tuple[Any, ...]]]

    def sent(self, at: Any) -> float:
        """The size of a set's answer, if its sides have ends."""
        return sum(_area(box) for key, box in self.pieces.items() if key[0] == at)

    def own(self, at: Any) -> float:
        """The sizes of its queries together."""
        return sum(_area(self.queries[key]) for key in self.members[at] if key in self.queries)


def _read(plan: Plan) -> _Read:
    asked, merges, channels = (plan.tables[name] for name in ("queries", "merges", "channels"))
    dimensions = list(dict.fromkeys(str(d) for d in asked["dimension"].to_pylist()))
    keys = [c for c in ("query", "client") if c in asked.column_names]
    members: dict[Any, list[tuple[Any, ...]]] = {}
    for row in merges.to_pylist():
        members.setdefault(row["set"], []).append(tuple(row[k] for k in keys))
    pieces = _boxes(channels, ["set", "piece"], dimensions)
    return _Read(dimensions, _boxes(asked, keys, dimensions), pieces, members)


def _boxes(source: Any, keys: list[str], dimensions: list[str]) -> dict[tuple[Any, ...], Floats]:
    """Boxes by key from a table with a row per key and dimension."""
    found: dict[tuple[Any, ...], Floats] = {}
    place = {name: j for j, name in enumerate(dimensions)}
    for row in source.to_pylist():
        box = found.setdefault(tuple(row[k] for k in keys), np.full((len(dimensions), 2), np.nan))
        box[place[str(row["dimension"])]] = row["low"], row["high"]
    return found


def _area(box: Floats) -> float:
    sides = box[:, 1] - box[:, 0]
    return float(np.prod(sides)) if np.isfinite(sides).all() else float("nan")


def _map(read: _Read) -> Section:
    merged = {at for at, inside in read.members.items() if len(inside) > 1}
    rank = {key: i for i, key in enumerate(k for at in sorted(read.members) for k in read.members[at])}
    drawn, scale = map_drawing(
        [(box, rank.get(key, 0)) for key, box in read.queries.items()],
        [(box, [rank[k] for k in read.members[key[0]]]) for key, box in read.pieces.items() if key[0] in merged],
        read.dimensions,
        f"{plural(len(read.queries), 'query', 'queries')} on the map, and {len(merged):,} merged.",
    )
    keys = legend([("ours", "merged query"), ("nothing", "query")])
    more = f" Of {len(read.dimensions)} attributes the first two." if len(read.dimensions) > 2 else ""
    lead = f"Every query as it was asked, and the merged ones that answer several.{more}"
    return Section("map", "The map", keys + figure(drawn, scale), lead)


def _sets(read: _Read) -> Section:
    sizes = {at: len(members) for at, members in read.members.items()}
    loads = [Load(f"answer {at}", float(n), (at, f"{n:,}")) for at, n in sizes.items()]
    chart = load_chart(loads, ("answer", "queries"), what="answer")
    sent, own = ({at: of(at) for at in sizes} for of in (read.sent, read.own))
    discarded = {at: sizes[at] * sent[at] - own[at] for at in sizes}
    # A size without an end comes first: nothing is more to discard.
    worst = sorted(sizes, key=lambda at: (np.isfinite(discarded[at]), -np.nan_to_num(discarded[at])))[:WORST]
    rows = [
        (at, f"{sizes[at]:,}", number(sent[at]), percent(own[at] / (sizes[at] * sent[at])) if sent[at] else "–",
         _some(read.members[at]))
        for at in worst
    ]  # fmt: skip
    columns = ("answer", "queries", "size", "own share", "for")
    told = table(columns, rows, numbers=columns[1:4], stack=True)
    lead = "How many queries each answer serves, and the ten answers in which clients find most that is not theirs."
    return Section("sets", "Load per answer", f"{chart}<h3>Most to discard</h3>{told}", lead)


def _some(members: list[tuple[Any, ...]]) -> str:
    named = ", ".join(short(" of ".join(map(str, key)), 24) for key in members[:4])
    return named + (f" and {len(members) - 4} more" if len(members) > 4 else "")
