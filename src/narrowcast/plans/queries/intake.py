"""The queries table on one machine: range predicates taken in, everything else set aside with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model.quarantine import Quarantine
from narrowcast.model.tables import read_table
from narrowcast.plans.queries.result import QueriesPlan
from narrowcast.plans.queries.service.answers import Query
from narrowcast.plans.queries.sizes import GridHistogram
from narrowcast.profiles import Profile
from narrowcast.profiles.algebra.sets import ValueSet

COLUMNS = ("query", "client", "profile")


def read_queries(path: str | Path, quarantine: Quarantine) -> list[Query]:
    """The good rows of the table queries (query, client, profile, and every if there is one), in its order.

    A missing cell, a profile that does not parse or is no range, a frequency that is no whole number of periods, and
    a (query, client) that stood before are set aside; each row by the first of these.
    """
    table = read_table(path, name="queries", columns=COLUMNS)
    found: dict[tuple[str, str], Query] = {}
    often = table["every"].to_pylist() if "every" in table.column_names else [1] * table.num_rows
    rows = zip(*(table[name].to_pylist() for name in COLUMNS), strict=True)
    for at, (cells, every) in enumerate(zip(rows, often, strict=True)):
        try:
            query = _query(cells, every)
            if (query.query, query.client) in found:
                raise InputError("query appears twice for its client")
            found[query.query, query.client] = query
        except InputError as error:
            quarantine.add(path, [at], " ".join(str(error).split()))
    return list(found.values())


def _query(cells: Sequence[object], every: object) -> Query:
    for name, cell in zip(COLUMNS, cells, strict=True):
        if cell is None or str(cell).strip() == "":
            raise InputError(f"{name} is empty")
    query, client, text = cells
    if not isinstance(text, str):
        raise InputError(f"profile must be text, got {text!r}")
    try:
        profile = Profile.parse(text)
    except InputError as error:
        raise InputError(f"profile: {error}") from None
    check_range(profile)
    return Query(str(query), str(client), profile, _periods(every))


def _periods(every: object) -> int:
    """Every so many periods; an empty cell means every one."""
    try:
        found = 1 if every is None or every == "" else int(str(every))
    except ValueError:
        found = 0
    if found < 1:
        raise InputError(f"every must be a whole number of periods, 1 or more, got {every!r}")
    return found


def check_range(profile: Profile) -> None:
    """Refuse a profile that is not one box: an interval of numbers for each attribute it names.

    >>> check_range(Profile.parse("lat BETWEEN 1 AND 2 AND lon > 3"))
    """
    boxes = profile.boxes
    if boxes is None or len(boxes) != 1 or not boxes[0]:
        raise InputError("profile: not a range: it must be one box of intervals")
    for name, values in boxes[0].items():
        if len(values.number) != 1 or replace(values, number=()) != ValueSet():
            raise InputError(f"profile: not a range: {name} must lie in one interval of numbers")


def shared_attributes(queries: Sequence[Query], given: Sequence[str] | None = None) -> tuple[str, ...]:
    """The attributes to merge along: those given, else those that every query names, sorted.

    >>> two = [Query("a", "c", Profile.parse("x > 1 AND y < 2")), Query("b", "c", Profile.parse("x < 5"))]
    >>> shared_attributes(two)
    ('x',)
    """
    named = {name for query in queries for name in query.profile.attributes}
    if given is not None:
        for name in given:
            if queries and name not in named:
                raise InputError(
                    f"attributes must be among {', '.join(sorted(named))}, got {name!r}",
                    name="attributes",
                    allowed=tuple(sorted(named)),
                    got=name,
                )
        if len(set(given)) != len(given):
            raise InputError(f"attributes must be different, got {given}", name="attributes", got=tuple(given))
        return tuple(given)
    if not queries:
        raise InputError("queries must have a valid row, got none", name="queries", hint="see what was set aside")
    shared = set.intersection(*(set(query.profile.attributes) for query in queries))
    if not shared:
        raise InputError(
            "the queries share no attribute to merge along",
            name="attributes",
            allowed=tuple(sorted(named)),
            hint=f"name some: --attributes {','.join(sorted(named)[:2])}",
        )
    return tuple(sorted(shared))


def check_bounded(queries: Sequence[Query], boxes: np.ndarray, attributes: Sequence[str]) -> None:
    """Refuse sides without an end: an area would have no size. Sizes counted in data need no ends."""
    open_sides = np.argwhere(~np.isfinite(boxes).all(axis=2))
    if len(open_sides):
        at, side = (int(i) for i in open_sides[0])
        raise InputError(
            f"query {queries[at].query} of {queries[at].client} is unbounded along {attributes[side]}, so has no area",
            name="queries",
            got=queries[at].profile.text,
            hint="count sizes in data: --table TABLE; or name other --attributes",
        )


def measured_grid(folder: str | Path, attributes: Sequence[str]) -> GridHistogram:
    """The grid that `measure` counted, as sizes over these attributes; others of the grid are added up.

    Raises
    ------
    InputError : the folder has no grid, or one without an attribute
    """
    table = read_table(Path(folder) / "grid.parquet", name="grid", columns=("messages",))
    for name in attributes:
        if f"{name}_cell" not in table.column_names:
            raise InputError(
                f"{folder}: the grid has no attribute {name!r}", name="measured", hint=f"measure --grid {name}"
            )
    edges, at = [], []
    for name in attributes:
        cell, low, high = (table[f"{name}_{end}"].to_numpy() for end in ("cell", "low", "high"))
        steps = int(cell.max(initial=0)) + 1
        step = float(high[0] - low[0]) if len(cell) else 1.0
        first = float(low[0] - cell[0] * step) if len(cell) else 0.0
        edges.append(first + np.arange(steps + 1) * step)
        at.append(cell.astype(np.int64))
    counts = np.zeros([len(cuts) - 1 for cuts in edges])
    np.add.at(counts, tuple(at), table["messages"].to_numpy().astype(np.float64))
    return GridHistogram(counts, edges)


def grid_error(folder: str | Path, plan: QueriesPlan) -> float:
    """How far the sizes that a plan was made with are off the exact ones that `measure` counted, of all of these."""
    wanted = ("query", "client", "messages")
    table = read_table(Path(folder) / "query_sizes.parquet", name="query_sizes", columns=wanted)
    exact = {(str(q), str(c)): float(n) for q, c, n in zip(*(table[n].to_pylist() for n in wanted), strict=True)}
    demand = plan.demand
    names = zip(demand.query_names, demand.clients or demand.query_names, strict=True)
    known = np.array([exact.get(name, np.nan) for name in names])
    there = ~np.isnan(known)
    total = float(known[there].sum())
    return float(np.abs(plan.problem().alone[there] - known[there]).sum()) / total if total else 0.0
