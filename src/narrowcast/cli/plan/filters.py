"""`narrowcast plan filters`: which vertices of a multicast tree should filter, and what that saves."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from narrowcast.cli.output import AsJson, Seed, output, print_json, table, text, working
from narrowcast.cli.plan.common import Out, Overwrite, Picture, Strict, as_json, drawn, show, written
from narrowcast.errors import InputError
from narrowcast.reports.text import plural

if TYPE_CHECKING:
    from narrowcast.model.quarantine import Quarantine
    from narrowcast.plans.filters.result import FiltersPlan, TreeDemand


class FilterObjective(StrEnum):
    traffic = "traffic"
    delay = "delay"
    both = "both"


class FilterMethod(StrEnum):
    auto = "auto"
    exact = "exact"
    price = "price"
    flip = "flip"


def filters(
    tree: Annotated[
        Path,
        typer.Argument(
            help="The tree table: node, parent, [link_cost], [can_filter], [users]. Or the folder of a measured tree, "
            "without a demand."
        ),
    ],
    demand: Annotated[
        Path | None,
        typer.Argument(help="The demand table: node (a leaf), item, [size]. Or what narrowcast measure wrote."),
    ] = None,
    k: Annotated[int | None, typer.Option("--k", min=0, help="The most filters (traffic only). Default: 15.")] = None,
    objective: Annotated[FilterObjective, typer.Option(help="What to minimize.")] = FilterObjective.traffic,
    method: Annotated[
        FilterMethod,
        typer.Option(
            help="exact is optimal; price is faster, with a gap; auto picks one; flip moves filters of --previous."
        ),
    ] = FilterMethod.auto,
    previous: Annotated[
        Path | None, typer.Option(help="The folder of the plan in force (flip): its filters stay unless moving pays.")
    ] = None,
    moves: Annotated[int | None, typer.Option(min=0, help="The most filters to move (flip). Default: 1.")] = None,
    move_price: Annotated[
        float | None,
        typer.Option(min=0, help="What each moved filter must save (flip), in traffic or delay. Default: 0."),
    ] = None,
    filter_delay: Annotated[float | None, typer.Option(min=0, help="Delay added by a filter. Default: 0.")] = None,
    link_delay: Annotated[
        float | None, typer.Option(min=0, help="Delay of a link per unit of flow on it. Default: 1.")
    ] = None,
    traffic_weight: Annotated[float | None, typer.Option(min=0, help="Weight of traffic (both). Default: 1.")] = None,
    delay_weight: Annotated[float | None, typer.Option(min=0, help="Weight of delay (both). Default: 1.")] = None,
    price: Annotated[float | None, typer.Option(min=0, help="Cost of one filter (both). Default: 0.")] = None,
    curve: Annotated[Path | None, typer.Option(help="Draw traffic against filters to this .png or .svg file.")] = None,
    picture: Picture = None,
    out: Out = None,
    overwrite: Overwrite = False,
    strict: Strict = False,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Place filters on a multicast tree so that links carry less of what nobody below wants.

    traffic: the least total traffic with at most k filters. delay: the least total delay, with as many filters as
    pay. both: the least weighed sum of traffic, delay and a price per filter. All are optimal, or say how far from it
    they may be. Every plan is checked by code that had no part in making it before it is written.

    Examples:

        narrowcast plan filters tree.parquet demand.parquet --k 15 --out plan --curve curve.png --picture tree.png

        narrowcast plan filters tree.csv demand.csv --objective delay --filter-delay 400 --link-delay 100

        narrowcast measure inputs --out measured; narrowcast plan filters measured --k 15 --out plan

        narrowcast plan filters measured --k 15 --method flip --previous plan --moves 1 --move-price 20 --out next
    """
    from narrowcast.model.quarantine import Quarantine
    from narrowcast.plans.filters.plan import make

    if curve is not None and objective is not FilterObjective.traffic:
        raise InputError(
            f"--curve must be left out for --objective {objective.value}: the number of filters is free",
            name="curve",
            got=str(curve),
        )
    aside = Quarantine(strict=strict)
    wanted = _wanted(tree, demand, aside)
    shape = wanted.tree
    with working("planning"):
        made = make(
            wanted,
            k,
            objective.value,
            filter_delay,
            link_delay,
            traffic_weight,
            delay_weight,
            price,
            method.value,
            seed,
            previous=None if previous is None else _plan_in(previous),
            moves=moves,
            move_price=move_price,
        )
    made = written(made, out, aside, overwrite=overwrite)
    _draw(made, curve, picture)
    nodes = [made.node_names[v] for v in made.filters.tolist()]
    if json:
        print_json(as_json(made, aside, out, filters=nodes, curve=made.curve, method=made.method, picture=picture))
        return
    without = float(made.cost.baselines["no filter"])
    saved = 1 - made.objective / without if without else 0.0
    gap = "" if made.gap is None else f", gap {made.gap:.2%}"
    headline = (
        f"[bold]{plural(len(nodes), 'filter')} on a tree of {shape.n:,} vertices[/]: {made.goal} "
        f"{text(made.objective)}, {saved:.1%} below no filter ({made.method}{gap})"
    )
    show(headline, made.objective, made.cost.baselines, out)
    _show_filters(nodes, made)


def _wanted(tree: Path, demand: Path | None, aside: Quarantine) -> TreeDemand:
    """The tree and what is wanted below each of its nodes, from whichever tables say so."""
    from narrowcast.model.folder import fingerprint
    from narrowcast.model.intake import read_demand, read_tree
    from narrowcast.plans.filters.demand import flow_from_demand, is_tree_demand, measured_flow
    from narrowcast.plans.filters.plan import demand_in
    from narrowcast.plans.filters.result import TreeDemand

    if demand is None:
        return demand_in(tree)
    shape = read_tree(tree)
    if is_tree_demand(demand):
        found = demand_in(demand)
        inputs = {"tree": fingerprint(tree), **found.inputs}
        return TreeDemand(*measured_flow(demand, shape), inputs=inputs)
    inputs = {"tree": fingerprint(tree), "demand": fingerprint(demand)}
    return TreeDemand(shape, flow_from_demand(shape, *read_demand(demand, shape, aside)), inputs=inputs)


def _plan_in(folder: Path) -> FiltersPlan:
    """The plan in force."""
    from narrowcast.plans.filters.result import FiltersPlan
    from narrowcast.plans.verbs import load

    found = load(folder)
    if not isinstance(found, FiltersPlan):
        raise InputError(f"--previous must be a filters plan, got a {found.kind} plan", name="previous", got=found.kind)
    return found


def _draw(made: FiltersPlan, curve: Path | None, picture: Path | None) -> None:
    drawn(made, picture)
    if curve is not None:
        from narrowcast.plans.filters.report import traffic_curve
        from narrowcast.reports.picture import save_picture

        save_picture(traffic_curve(made), curve)


def _show_filters(nodes: list[str], made: FiltersPlan) -> None:
    """Where the filters go, and what some numbers of filters would do."""
    more = f" and {len(nodes) - 20:,} more" if len(nodes) > 20 else ""
    output.print("At: " + ", ".join(nodes[:20]) + more, markup=False)
    if not made.curve.size:
        return
    some = sorted({j for j in (0, 1, 2, 3, 5, 10, 15, 30, 60, 100) if j < made.curve.size} | {made.curve.size - 1})
    rows = [(j, float(made.curve[j]), f"{1 - made.curve[j] / max(made.curve[0], 1e-300):.1%}") for j in some]
    output.print(
        table("Traffic by number of filters", ("filters", "traffic", "saved"), rows, numbers=("filters", "traffic"))
    )
