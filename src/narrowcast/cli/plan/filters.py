"""`narrowcast plan filters`: which vertices of a multicast tree should filter, and what that saves."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from narrowcast.cli.output import AsJson, Seed, notes, output, print_json, table, text
from narrowcast.cli.plan.common import Out, Overwrite, Picture, Strict, as_json, show, written
from narrowcast.errors import InputError

if TYPE_CHECKING:
    from narrowcast.plans.filters.result import FiltersPlan


class FilterObjective(StrEnum):
    traffic = "traffic"
    delay = "delay"
    both = "both"


class FilterMethod(StrEnum):
    auto = "auto"
    exact = "exact"
    price = "price"


def filters(
    tree: Annotated[Path, typer.Argument(help="The tree table: node, parent, [link_cost], [can_filter], [users].")],
    demand: Annotated[Path, typer.Argument(help="The demand table: node (a leaf), item, [size].")],
    k: Annotated[int | None, typer.Option("--k", min=0, help="The most filters (traffic only). Default: 15.")] = None,
    objective: Annotated[FilterObjective, typer.Option(help="What to minimize.")] = FilterObjective.traffic,
    method: Annotated[
        FilterMethod, typer.Option(help="exact is optimal; price is faster, with a gap; auto picks one.")
    ] = FilterMethod.auto,
    filter_delay: Annotated[float | None, typer.Option(min=0, help="Delay added by a filter. Default: 0.")] = None,
    link_delay: Annotated[
        float | None, typer.Option(min=0, help="Delay of a link per unit of flow on it. Default: 1.")
    ] = None,
    traffic_weight: Annotated[float | None, typer.Option(min=0, help="Weight of traffic (both). Default: 1.")] = None,
    delay_weight: Annotated[float | None, typer.Option(min=0, help="Weight of delay (both). Default: 1.")] = None,
    price: Annotated[float | None, typer.Option(min=0, help="Cost of one filter (both). Default: 0.")] = None,
    curve: Annotated[Path | None, typer.Option(help="Draw traffic against filters to this .png, .svg or .pdf.")] = None,
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
    """
    from narrowcast.model.folder import fingerprint
    from narrowcast.model.intake import read_demand, read_tree
    from narrowcast.model.quarantine import Quarantine
    from narrowcast.plans.filters.demand import flow_from_demand
    from narrowcast.plans.filters.plan import make
    from narrowcast.plans.filters.result import TreeDemand

    if curve is not None and objective is not FilterObjective.traffic:
        raise InputError(
            f"--curve must be left out for --objective {objective.value}: the number of filters is free",
            name="curve",
            got=str(curve),
        )
    aside = Quarantine(strict=strict)
    shape = read_tree(tree)
    wanted = TreeDemand(shape, flow_from_demand(shape, *read_demand(demand, shape, aside)))
    with notes.status("planning"):
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
        )
    made = written(
        made.made_from({"tree": fingerprint(tree), "demand": fingerprint(demand)}), out, aside, overwrite=overwrite
    )
    _draw(made, curve, picture)
    nodes = [made.node_names[v] for v in made.filters.tolist()]
    if json:
        print_json(as_json(made, aside, out, filters=nodes, curve=made.curve, method=made.method, picture=picture))
        return
    without = float(made.cost.baselines["no filter"])
    saved = 1 - made.objective / without if without else 0.0
    headline = (
        f"[bold]{len(nodes):,} filter{'s' * (len(nodes) != 1)} on a tree of {shape.n:,} vertices[/]: {made.goal} "
        f"{text(made.objective)}, {saved:.1%} below no filter ({made.method}, gap {made.gap or 0.0:.2%})"
    )
    show(headline, {"narrowcast": made.objective, **made.cost.baselines}, "narrowcast", out)
    _show_filters(nodes, made)


def _draw(made: FiltersPlan, curve: Path | None, picture: Path | None) -> None:
    from narrowcast.cli.pictures.filters import curve_picture, tree_picture

    if curve is not None:
        curve_picture(made.curve, made.curve_bound, curve)
    if picture is not None:
        tree_picture(made.tree, made.loads, made.filters, picture)


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
