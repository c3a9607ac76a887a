"""The report of a filter placement on a multicast tree."""

from __future__ import annotations

import numpy as np

from narrowcast.model.arrays import Floats
from narrowcast.plans.filters.result import FiltersPlan
from narrowcast.reports.build import Load, Yardstick, assemble, load_chart, ways_section
from narrowcast.reports.curve import curve
from narrowcast.reports.find import Findable
from narrowcast.reports.parts import Report, Section, Tile, table
from narrowcast.reports.picture import Picture
from narrowcast.reports.text import number, percent, plural, short
from narrowcast.reports.tree import tree_drawing
from narrowcast.reports.whatif import Whatif

WORST = 10


def report(plan: FiltersPlan, whatif: Whatif | None) -> Report:
    """Where the filters are, what links carry, and what of it nobody below wants."""
    in_vain, objective, total = _in_vain(plan), plan.goal, plan.cost.total
    costs = {name: float(value) for name, value in plan.cost.baselines.items()}
    none = costs.get("no filter", 0.0)
    ways = ways_section(
        costs,
        total,
        label=f"{objective} by placement",
        lead=f"The {objective} of all links together.",
        note=lambda _, value: f"{percent(value / none)} of no filter" if none else "",
    )
    chosen, vertices = plural(len(plan.filters), "filter"), plural(plan.tree.n, "vertex", "vertices")
    saved = f"{chosen} save {percent(1 - total / none)} of the {objective}" if none else f"{chosen} on {vertices}"
    clean = f"{_clean(plan, in_vain):,} of {plural(plan.tree.n - 1, 'link')} now carry nothing in vain"
    return assemble(
        plan,
        whatif,
        headline=[saved, _gap(plan), clean],
        summary=f"A multicast tree of {vertices}; filters pass on only what someone below wants.",
        tiles=[
            Tile(objective.capitalize(), number(total), f"no filter: {number(none)}" if none else ""),
            Tile("Filters", f"{len(plan.filters):,}", f"of {vertices}"),
            Tile("Wanted", percent(_useful(plan, in_vain)), f"of what links carry; no filter: {percent(_bare(plan))}"),
        ],
        ways=ways,
        yardstick=Yardstick(total, total / none if none else None, f"the {objective} without filters", objective),
        sections=[_tree(plan), _links(plan, in_vain)],
        find=[_nodes(plan, in_vain)],
    )


def _in_vain(plan: FiltersPlan) -> Floats:
    """What the link into each vertex carries that nobody below wants."""
    return np.where(plan.tree.parents >= 0, np.maximum(plan.loads - plan.flow, 0.0), 0.0)


def _clean(plan: FiltersPlan, in_vain: Floats) -> int:
    """How many links carry nothing in vain."""
    return int(((plan.tree.parents >= 0) & (in_vain <= 1e-9 * np.maximum(plan.loads, 1.0))).sum())


def _useful(plan: FiltersPlan, in_vain: Floats) -> float:
    """The share of what links carry that somebody below wants."""
    carried = float(plan.loads.sum())
    return 1 - float(in_vain.sum()) / carried if carried else 1.0


def _bare(plan: FiltersPlan) -> float:
    """The same share without any filter: every link carries all that the source sends."""
    links = plan.tree.parents >= 0
    root = float(plan.flow[~links].max(initial=0.0))
    return float(plan.flow[links].sum()) / ((root * int(links.sum())) or 1.0)


def _nodes(plan: FiltersPlan, in_vain: Floats) -> Findable:
    names, parents, chosen = plan.node_names, plan.tree.parents, set(plan.filters.tolist())
    rows = [
        (
            names[v], "yes" if v in chosen else "no", names[parents[v]] if parents[v] >= 0 else "nothing: the source",
            *(number(float(of[v])) for of in (plan.loads, plan.flow, in_vain)),
        )
        for v in range(plan.tree.n)
    ]  # fmt: skip
    return Findable("node", ("filters", "is fed by", "load of its link", "wanted below", "in vain"), rows)


def _gap(plan: FiltersPlan) -> str:
    if plan.gap is None:
        return ""
    return "the most that is possible" if plan.gap <= 1e-9 else f"within {percent(plan.gap)} of the most possible"


def _tree(plan: FiltersPlan) -> Section:
    return Section("tree", "The tree", picture(plan).markup, "The source is in the middle, users at the ends.")


def _links(plan: FiltersPlan, in_vain: Floats) -> Section:
    parents, names, load = plan.tree.parents, plan.node_names, plan.loads
    links = np.flatnonzero(parents >= 0).tolist()
    short_name = [short(name, 24) for name in names]
    loads = [
        Load(f"into {short_name[v]}", float(load[v]), (short_name[v], number(load[v]), number(in_vain[v])))
        for v in links
    ]
    chart = load_chart(loads, ("link into", "load", "in vain"), what="link")
    worst = [v for v in sorted(links, key=lambda v: -in_vain[v])[:WORST] if in_vain[v] > 0]
    columns = ("link into", "from", "load", "wanted below", "in vain")
    amounts = (load, plan.flow, in_vain)
    rows = [(*(short(names[w]) for w in (v, parents[v])), *(number(of[v]) for of in amounts)) for v in worst]
    told = table(columns, rows, numbers=columns[2:], stack=True) if rows else "<p>No link carries anything in vain.</p>"
    lead = "What each link carries, the busiest first, and the links that carry most of what nobody below them wants."
    return Section("links", "Load per link", f"{chart}<h3>Most in vain</h3>{told}", lead)


def picture(plan: FiltersPlan) -> Picture:
    """The tree in a circle, the source in its middle; links as thick as their load."""
    title = f"{plural(len(plan.filters), 'filter')} on a tree of {plural(plan.tree.n, 'vertex', 'vertices')}"
    chosen = set(plan.filters.tolist())
    drawing, hidden = tree_drawing(plan.tree.parents, plan.loads, chosen, plan.node_names, f"{title}.")
    caption = f"The {hidden:,} deepest vertices are not drawn." if hidden else ""
    return Picture(title, drawing, (("filter", "filter"), ("other", "link, as thick as its load")), caption)


def traffic_curve(plan: FiltersPlan) -> Picture:
    """Traffic with 0 to k filters; where only bounds are known, those too."""
    lines = [list(enumerate(values.tolist())) for values in (plan.curve, plan.curve_bound)]
    lines = lines if (plan.curve_bound < plan.curve).any() else lines[:1]
    drawing = curve(
        lines, label="Total traffic against filters", x_name="filters", y_text=number, present=float(len(plan.filters)),
        knee=None, own=None, width=720, height=400, style="", marker=False,
    )  # fmt: skip
    keys = (("ours", "total traffic"), ("other", "no placement has less")) if len(lines) > 1 else ()
    return Picture("Total traffic by number of filters", drawing, keys)
