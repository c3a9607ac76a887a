"""`narrowcast plan queries`: which range queries to answer together."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from narrowcast.cli.arguments import columns
from narrowcast.cli.output import AsJson, Seed, notes, output, print_json, table, text, working
from narrowcast.cli.plan.common import Out, Overwrite, Picture, Strict, as_json, drawn, show, written
from narrowcast.errors import InputError
from narrowcast.reports.text import plural

if TYPE_CHECKING:
    from narrowcast.plans.queries.result import QueriesPlan
    from narrowcast.plans.queries.sizes import GridHistogram, PointCounts


class QueryMethod(StrEnum):
    pair = "pair"
    directed = "directed"
    cluster = "cluster"
    all_partitions = "partition"  # str has a method of that name
    exhaustive = "exhaustive"


class QueryProcedure(StrEnum):
    rectangle = "rectangle"
    polygon = "polygon"
    exact = "exact"


class Sizes(StrEnum):
    area = "area"
    counts = "counts"
    histogram = "histogram"


Attributes = Annotated[
    str | None, typer.Option(help="The attributes to merge along, as lat,lon. Default: those that all queries name.")
]
MethodOption = Annotated[
    QueryMethod, typer.Option(help="pair is fast; directed is better; partition is optimal, for up to 22 queries.")
]
ProcedureOption = Annotated[
    QueryProcedure,
    typer.Option(help="Shape of a merged query: rectangle; polygon, a union of few; exact, disjoint pieces."),
]
Km = Annotated[float, typer.Option(min=0, help="Cost of a merged query.")]
Kt = Annotated[float, typer.Option(min=0, help="Cost of sending a row.")]
Ku = Annotated[float, typer.Option(min=0, help="Cost of a row to a client that did not ask for it.")]


def queries(
    queries: Annotated[Path, typer.Argument(help="The queries table: query, client, profile (a range).")],
    attributes: Attributes = None,
    method: MethodOption = QueryMethod.pair,
    procedure: ProcedureOption = QueryProcedure.rectangle,
    km: Km = 365e-5,
    kt: Kt = 3.25e-5,
    ku: Ku = 0.16e-5,
    table: Annotated[
        Path | None, typer.Option(help="The data to query, to count sizes in. Default: sizes are areas.")
    ] = None,
    sizes: Annotated[
        Sizes | None, typer.Option(help="area; with --table counts (exact, the default) or histogram (for large data).")
    ] = None,
    ka: Annotated[float, typer.Option(min=0, help="Cost to the server of answering a query.")] = 0.0,
    starts: Annotated[int | None, typer.Option(min=1, help="Starts of the directed search. Default: 50.")] = None,
    inner: Annotated[str | None, typer.Option(help="The method inside each cluster (cluster). Default: pair.")] = None,
    metric: Annotated[str | None, typer.Option(help="How clusters are found: heuristic or gain (cluster).")] = None,
    measured: Annotated[
        Path | None,
        typer.Option(help="A folder that measure wrote: sizes come from its grid, and are compared with query_sizes."),
    ] = None,
    channels: Annotated[
        int | None,
        typer.Option(min=1, help="The number of physical channels; merged queries share them. Default: one each."),
    ] = None,
    picture: Picture = None,
    out: Out = None,
    overwrite: Overwrite = False,
    strict: Strict = False,
    seed: Seed = 0,
    json: AsJson = False,
) -> None:
    """Answer many overlapping range queries by few merged ones that are sent once to all who asked.

    Every plan is checked by code that had no part in making it before it is written: each query lies
    inside the merged query that answers it.

    Examples:

        narrowcast plan queries queries.parquet --out plan --picture map.png

        narrowcast plan queries queries.csv --table places.parquet --attributes lat,lon --procedure polygon

        narrowcast plan queries queries.parquet --measured measured --channels 50 --ka 0.003 --out plan
    """
    from narrowcast.model.folder import fingerprint
    from narrowcast.model.quarantine import Quarantine
    from narrowcast.plans.queries.intake import (
        check_bounded,
        grid_error,
        measured_grid,
        read_queries,
        shared_attributes,
    )
    from narrowcast.plans.queries.plan import make
    from narrowcast.plans.queries.ranges import range_boxes
    from narrowcast.plans.queries.result import QueryDemand

    if measured is not None and (table is not None or sizes is not None):
        given = "table" if table is not None else "sizes"
        raise InputError(f"{given} must be left out with --measured, which has sizes already", name=given)
    by = Sizes.histogram if measured is not None else _by(table, sizes)
    aside = Quarantine(strict=strict)
    asked = read_queries(queries, aside)
    if not asked:
        raise InputError(f"{queries}: no valid row: {aside.rows[0][2] if aside.rows else 'the table is empty'}")
    along = shared_attributes(asked, columns(attributes))
    boxes = range_boxes([query.profile for query in asked], along)
    if by is Sizes.area:
        check_bounded(asked, boxes, along)
    wanted = QueryDemand(boxes, along, tuple(q.query for q in asked), tuple(q.client for q in asked))
    with working("planning"):
        size: PointCounts | GridHistogram | None = None
        if measured is not None:
            size = measured_grid(measured, along)
        elif table is not None and by is not Sizes.area:
            size = _size(table, along, by)
        made = make(
            wanted, method.value, procedure.value, km, kt, ku, ka, size=size, seed=seed, starts=starts, inner=inner,
            metric=metric, channels=channels,
        )  # fmt: skip
    inputs = {"queries": queries} | ({} if table is None else {"table": table})
    if measured is not None:
        inputs["grid"] = measured / "grid.parquet"
        off = grid_error(measured, made)
        notes.print(f"the grid's sizes are {off:.1%} off the exact ones of query_sizes, added up")
    made = written(
        made.made_from({name: fingerprint(path) for name, path in inputs.items()}), out, aside, overwrite=overwrite
    )
    drawn(made, picture)
    physical = made.physical
    on = sum(map(len, made.pieces)) if physical is None else len(set(physical))
    if json:
        sets = [[{"query": asked[q].query, "client": asked[q].client} for q in members] for members in made.sets]
        told = {"queries": len(asked), "merged": len(made.sets), "channels": on, "attributes": along}
        print_json(as_json(made, aside, out, **told, sets=sets, saved=made.saved, picture=picture))
        return
    clients = len({query.client for query in asked})
    headline = (
        f"[bold]{plural(len(asked), 'query', 'queries')} of {plural(clients, 'client')}[/] answered by "
        f"{len(made.sets):,} on {plural(on, 'channel')}: cost {text(made.cost)}, "
        f"{made.saved:.1%} below answering each alone"
    )
    show(headline, made.cost, {"each alone": made.baseline}, out)
    _show_sets(made)


def _by(data: Path | None, sizes: Sizes | None) -> Sizes:
    if sizes is None:
        return Sizes.area if data is None else Sizes.counts
    if (data is None) != (sizes is Sizes.area):
        wrong = "needs --table" if data is None else "cannot be used with --table"
        raise InputError(f"--sizes {sizes.value} {wrong}", name="sizes", got=sizes.value)
    return sizes


def _size(data: Path, along: tuple[str, ...], by: Sizes) -> PointCounts | GridHistogram:
    """The rows as points. What is no number lies in no range and has no size."""
    import numpy as np
    import pyarrow as pa

    from narrowcast.model.tables import read_table
    from narrowcast.plans.queries.sizes import GridHistogram, PointCounts

    rows = read_table(data, name="data", columns=along)
    points = np.empty((rows.num_rows, len(along)))
    for j, name in enumerate(along):
        kind = rows[name].type
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            raise InputError(f"{data}: column {name!r} must hold numbers, got {kind}", name=name, got=str(kind))
        points[:, j] = rows[name].cast(pa.float64(), safe=False).to_numpy()
    points = points[np.isfinite(points).all(axis=1)]
    if by is Sizes.counts:
        return PointCounts(points)
    return GridHistogram.from_points(points, bins=_bins(len(along)))


def _bins(d: int) -> int:
    """As many steps as leave the grid a few million cells."""
    return max(1, min(64, int(4e6 ** (1 / d)) - 1))


def _show_sets(made: QueriesPlan) -> None:
    """The sets that answer most queries."""
    names = made.demand.query_names
    largest: list[Any] = sorted(range(len(made.sets)), key=lambda at: (-len(made.sets[at]), at))[:10]
    rows = []
    for at in largest:
        members = [names[q] for q in made.sets[at]]
        more = f" and {len(members) - 6:,} more" if len(members) > 6 else ""
        rows.append((at, len(members), float(made.sizes[at]), ", ".join(members[:6]) + more))
    output.print(table("Largest sets", ("set", "queries", "size", "which"), rows, numbers=("set", "queries", "size")))
