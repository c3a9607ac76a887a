"""The report of a filter placement on a multicast tree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from narrowcast.model.arrays import Floats, Ints
from narrowcast.model.plan import Plan
from narrowcast.reports.build import Load, Yardstick, assemble, load_chart, ways_section
from narrowcast.reports.parts import Report, Section, Tile, figure, legend, table
from narrowcast.reports.text import number, percent, plural, short
from narrowcast.reports.tree import tree_drawing
from narrowcast.reports.whatif import Whatif

WORST = 10


def filters_report(plan: Plan, whatif: Whatif | None) -> Report:
    """Where the filters are, what links carry, and what of it nobody below wants."""
    read, objective = _read(plan), str(plan.parameters.get("objective", "traffic"))
    total = float(plan.cost.get("total", plan.cost.get("traffic", 0.0)))
    costs = {name: float(value) for name, value in plan.baselines.items()}
    none = costs.get("no filter", 0.0)
    ways = ways_section(
        costs,
        total,
        label=f"{objective} by placement",
        lead=f"The {objective} of all links together.",
        note=lambda _, value: f"{percent(value / none)} of no filter" if none else "",
    )
    chosen, vertices = plural(len(read.filters), "filter"), plural(len(read.names), "vertex", "vertices")
    saved = f"{chosen} save {percent(1 - total / none)} of the {objective}" if none else f"{chosen} on {vertices}"
    clean = f"{read.clean:,} of {plural(len(read.names) - 1, 'link')} now carry nothing in vain"
    return assemble(
        plan,
        whatif,
        headline=[saved, _gap(plan), clean],
        summary=f"A multicast tree of {vertices}; filters pass on only what someone below wants.",
        tiles=[
            Tile(objective.capitalize(), number(total), f"no filter: {number(none)}" if none else ""),
            Tile("Filters", f"{len(read.filters):,}", f"on {vertices}"),
            Tile("Wanted", percent(read.useful), "of what links carry"),
        ],
        ways=ways,
        yardstick=Yardstick(total, total / none if none else None, f"the {objective} without filters", objective),
        sections=[_tree(read), _links(read)],
    )


@dataclass(frozen=True, eq=False)
class _Read:
    """The tree of a plan: parents by index, the load of the link into each vertex, what is wanted below it."""

    names: list[str]
    parents: Ints
    load: Floats
    flow: Floats
    filters: set[int]

    @cached_property
    def in_vain(self) -> Floats:
        """What the link into each vertex carries that nobody below wants."""
        return np.where(self.parents >= 0, np.maximum(self.load - self.flow, 0.0), 0.0)

    @property
    def clean(self) -> int:
        """How many links carry nothing in vain."""
        return int(((self.parents >= 0) & (self.in_vain <= 1e-9 * np.maximum(self.load, 1.0))).sum())

    @property
    def useful(self) -> float:
        carried = float(self.load.sum())
        return 1 - float(self.in_vain.sum()) / carried if carried else 1.0


def _read(plan: Plan) -> _Read:
    trees = plan.tables["trees"]
    names = [str(name) for name in trees["node"].to_pylist()]
    at = {name: i for i, name in enumerate(names)}
    parents = np.array([-1 if p is None else at.get(str(p), -1) for p in trees["parent"].to_pylist()], np.int64)
    load = np.array([0.0 if v is None else float(v) for v in trees["load"].to_pylist()])
    chosen = {at[str(name)] for name in plan.tables["filters"]["node"].to_pylist() if str(name) in at}
    return _Read(names, parents, load, trees["flow"].to_numpy().astype(np.float64), chosen)


def _gap(plan: Plan) -> str:
    if plan.gap is None:
        return ""
    return "the most that is possible" if plan.gap <= 1e-9 else f"within {percent(plan.gap)} of the most possible"


def _tree(read: _Read) -> Section:
    label = f"The tree with its {plural(len(read.filters), 'filter')}; thick links carry much."
    drawing, hidden = tree_drawing(read.parents, read.load, read.filters, read.names, label)
    caption = f"The {hidden:,} deepest vertices are not drawn." if hidden else ""
    keys = legend([("filter", "filter"), ("other", "link, as thick as its load")])
    return Section(
        "tree", "The tree", keys + figure(drawing, caption), "The source is in the middle, users at the ends."
    )


def _links(read: _Read) -> Section:
    links = np.flatnonzero(read.parents >= 0).tolist()
    short_name = [short(name, 24) for name in read.names]
    loads = [
        Load(
            f"into {short_name[v]}", float(read.load[v]), (short_name[v], number(read.load[v]), number(read.in_vain[v]))
        )
        for v in links
    ]
    chart = load_chart(loads, ("link into", "load", "in vain"), what="link")
    worst = [v for v in sorted(links, key=lambda v: -read.in_vain[v])[:WORST] if read.in_vain[v] > 0]
    columns = ("link into", "from", "load", "wanted below", "in vain")
    amounts = (read.load, read.flow, read.in_vain)
    rows = [(*(short(read.names[w]) for w in (v, read.parents[v])), *(number(of[v]) for of in amounts)) for v in worst]
    told = table(columns, rows, numbers=columns[2:], stack=True) if rows else "<p>No link carries anything in vain.</p>"
    lead = "What each link carries, the busiest first, and the links that carry most of what nobody below them wants."
    return Section("links", "Load per link", f"{chart}<h3>Most in vain</h3>{told}", lead)
