"""`narrowcast plan filters`: which vertices of a multicast tree should filter, and what that saves."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrowcast.cli.output import AsJson, notes, output, print_json, table, text
from narrowcast.cli.plan.common import Out, Overwrite, Strict, show, write
from narrowcast.errors import InputError

if TYPE_CHECKING:
    from numpy import float64, int64
    from numpy.typing import NDArray

    from narrowcast.model import Tree


class Objective(StrEnum):
    traffic = "traffic"
    delay = "delay"
    both = "both"


@dataclass(frozen=True)
class _Found:
    """What the commands show of a placement, whatever it was made for."""

    filters: NDArray[int64]
    value: float
    baselines: dict[str, float]
    lower_bound: float
    gap: float
    method: str
    curve: NDArray[float64] | None = None
    curve_bound: NDArray[float64] | None = None


def filters(
    tree: Annotated[Path, typer.Argument(help="The tree table: node, parent, [link_cost], [can_filter], [users].")],
    demand: Annotated[Path, typer.Argument(help="The demand table: node (a leaf), item, [size].")],
    k: Annotated[int | None, typer.Option("--k", min=0, help="At most so many filters (traffic only).")] = None,
    objective: Annotated[Objective, typer.Option(help="What to make small.")] = Objective.traffic,
    filter_delay: Annotated[float, typer.Option(min=0, help="Delay added by a filter.")] = 0.0,
    link_delay: Annotated[float, typer.Option(min=0, help="Delay of a link per unit of flow on it.")] = 1.0,
    traffic_weight: Annotated[float, typer.Option(min=0, help="Weight of traffic (both).")] = 1.0,
    delay_weight: Annotated[float, typer.Option(min=0, help="Weight of delay (both).")] = 1.0,
    price: Annotated[float, typer.Option(min=0, help="Cost of one filter (both).")] = 0.0,
    curve: Annotated[Path | None, typer.Option(help="Draw traffic against filters to this .png, .svg or .pdf.")] = None,
    drawing: Annotated[
        Path | None, typer.Option(help="Draw the tree, its filters and link loads to this file.")
    ] = None,
    out: Out = None,
    overwrite: Overwrite = False,
    strict: Strict = False,
    json: AsJson = False,
) -> None:
    """Place filters on a multicast tree so that links carry less of what nobody below wants.

    traffic: the least total traffic with at most k filters. delay: the least total delay, with as many filters as
    pay. both: the least weighed sum of traffic, delay and a price per filter. All are optimal, or say how far from it
    they may be. Every plan is checked by code that had no part in making it before it is written.

    Examples:

        narrowcast plan filters tree.parquet demand.parquet --k 15 --out plan --curve curve.png

        narrowcast plan filters tree.csv demand.csv --objective delay --filter-delay 400 --link-delay 100
    """
    from narrowcast.evaluate import certify
    from narrowcast.model.intake import read_demand, read_tree
    from narrowcast.model.plan import fingerprint
    from narrowcast.model.quarantine import Quarantine
    from narrowcast.plans import filters as planner
    from narrowcast.plans.filters.result import as_plan

    _check_options(objective, k, curve)
    aside = Quarantine(strict=strict)
    shape = read_tree(tree)
    flow = planner.flow_from_demand(shape, *read_demand(demand, shape, aside))
    weights = {"traffic_weight": traffic_weight, "delay_weight": delay_weight, "price": price}
    delays = {"filter_delay": filter_delay, "link_delay": link_delay}
    given: dict[Objective, dict[str, Any]] = {
        Objective.traffic: {"k": 15 if k is None else k},
        Objective.delay: delays,
        Objective.both: delays | weights,
    }
    with notes.status("planning"):
        found = _place(shape, flow, objective, given[objective])
    traffic = planner.traffic(shape, flow, found.filters)
    plan = as_plan(
        shape,
        flow,
        found.filters,
        cost={"total": found.value, "traffic": traffic},
        parameters={"objective": objective.value, "method": found.method, **given[objective]},
        baselines=found.baselines,
        inputs={"tree": fingerprint(tree), "demand": fingerprint(demand)},
        lower_bound=found.lower_bound,
        gap=found.gap,
    )
    with notes.status("checking"):
        plan = certify(plan)
    write(plan, out, aside, overwrite=overwrite)
    _draw(shape, flow, found, curve, drawing)
    if json:
        nodes = plan.tables["filters"]["node"].to_pylist()
        print_json({
            "filters": nodes, "cost": plan.cost, "baselines": plan.baselines, "curve": found.curve,
            "lower_bound": plan.lower_bound, "gap": plan.gap, "method": found.method,
            "set_aside": len(aside.rows), "out": out,
        })  # fmt: skip
        return
    saved = 1 - found.value / found.baselines["no filter"] if found.baselines["no filter"] else 0.0
    headline = (
        f"[bold]{found.filters.size:,} filter{'s' * (found.filters.size != 1)} on a tree of {shape.n:,} vertices[/]: "
        f"{objective.value} {text(found.value)}, {saved:.1%} below no filter ({found.method}, gap {found.gap:.2%})"
    )
    show(plan, headline, {"narrowcast": found.value} | found.baselines, "narrowcast", out)
    _show_filters(plan.tables["filters"]["node"].to_pylist(), found)


def _check_options(objective: Objective, k: int | None, curve: Path | None) -> None:
    if objective is Objective.traffic:
        return
    for name, given in (("--k", k), ("--curve", curve)):
        if given is not None:
            raise InputError(
                f"{name} belongs to --objective traffic; for {objective.value} the number of filters is free",
                name=name,
                got=given,
            )


def _place(shape: Tree, flow: NDArray[float64], objective: Objective, given: dict[str, Any]) -> _Found:
    """The placement, and the same measure for no filter and for a filter wherever one can be."""
    from narrowcast.plans import filters as planner

    if objective is Objective.traffic:
        r = planner.place(shape, flow, **given)
        baselines = {
            "no filter": planner.traffic(shape, flow, []),
            "every vertex": planner.traffic(shape, flow, shape.can_filter),
        }
        return _Found(r.filters, r.traffic, baselines, r.lower_bound, r.gap, r.method, r.curve, r.curve_bound)
    if objective is Objective.delay:
        d = planner.place_for_delay(shape, flow, **given)
        baselines = {
            "no filter": planner.delay(shape, flow, [], **given),
            "every vertex": planner.delay(shape, flow, shape.can_filter, **given),
        }
        return _Found(d.filters, d.delay, baselines, d.delay, 0.0, "exact")
    w = planner.place_weighted(shape, flow, **given)
    a, b, price = (given[name] for name in ("traffic_weight", "delay_weight", "price"))
    delays = {name: given[name] for name in ("filter_delay", "link_delay")}
    baselines = {
        name: a * planner.traffic(shape, flow, some)
        + b * planner.delay(shape, flow, some, **delays)
        + price * int(shape.can_filter[some].sum())
        for name, some in (("no filter", []), ("every vertex", shape.can_filter.nonzero()[0]))
    }
    return _Found(w.filters, w.objective, baselines, w.objective, 0.0, "exact")


def _draw(shape: Tree, flow: NDArray[float64], found: _Found, curve: Path | None, drawing: Path | None) -> None:
    from narrowcast.cli.pictures.filters import curve_picture, tree_picture
    from narrowcast.plans.filters import loads

    if curve is not None and found.curve is not None and found.curve_bound is not None:
        curve_picture(found.curve, found.curve_bound, curve)
    if drawing is not None:
        tree_picture(shape, loads(shape, flow, found.filters), found.filters, drawing)


def _show_filters(nodes: list[str], found: _Found) -> None:
    """Where the filters go, and what some numbers of filters would do."""
    more = f" and {len(nodes) - 20:,} more" if len(nodes) > 20 else ""
    output.print("At: " + ", ".join(nodes[:20]) + more, markup=False)
    if found.curve is None:
        return
    some = sorted({j for j in (0, 1, 2, 3, 5, 10, 15, 30, 60, 100) if j < found.curve.size} | {found.curve.size - 1})
    rows = [(j, float(found.curve[j]), f"{1 - found.curve[j] / max(found.curve[0], 1e-300):.1%}") for j in some]
    output.print(
        table("Traffic by number of filters", ("filters", "traffic", "saved"), rows, numbers=("filters", "traffic"))
    )
