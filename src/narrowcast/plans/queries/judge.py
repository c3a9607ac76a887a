"""Query merging plans judged from their tables alone: whose answer a channel cuts short, and what it all costs.

Nothing here comes from the planner. A set's channel carries what lies in its pieces; a query is answered
if each set it is in has a piece around the query's whole box, so that no row it wants stays behind.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrowcast.evaluate.columns import constant
from narrowcast.evaluate.compare import same
from narrowcast.model.plan import Tables

Floats = NDArray[np.float64]
PROCEDURES = ("rectangle", "polygon", "exact")
SIZES = ("area", "counts", "histogram", "function")
Name = tuple[object, ...]  # (query,) or (query, client)

COLUMNS: Mapping[str, Sequence[str]] = {
    "queries": ("query", "dimension", "low", "high"),
    "merges": ("query", "set"),
    "channels": ("set", "piece", "dimension", "low", "high"),
}
OPTIONAL: Sequence[str] = ()
BOUNDED = "total"


def faults(plan: Tables) -> list[str]:
    """Every way in which the plan is unsound; an empty list is a sound plan. O(members · pieces of a set).

    A query that only several pieces together would cover counts as cut short: no procedure makes that,
    and whatever is unknown is refused.
    """
    return list(_faults(QueryTables(plan)))


def cost(plan: Tables) -> dict[str, float]:
    """The terms of the plan's cost, from K_A·work + K_M·|M| + K_T·size(M) + K_U·U.

    All of them where the plan says that sizes are areas (parameter `size`); where they were counted in data
    that the plan does not hold, only `channel`, which depends on no size.
    """
    read, known = QueryTables(plan), plan.parameters
    if read.broken:
        return {}
    exact = known.get("procedure") == "exact"
    area = known.get("size") == "area"
    if exact and not all(np.isfinite(box).all() for box in read.queries.values()):
        return {}
    channels, size, irrelevant = 0, 0.0, 0.0
    for at, members in read.members.items():
        boxes = np.array([read.queries[name] for name in members])
        channels += combinations(boxes) if exact else 1
        if area:
            sent = union_area(boxes if exact else np.array(list(read.pieces[at].values())))
            own = float(np.prod(boxes[:, :, 1] - boxes[:, :, 0], axis=1).sum())
            size += sent
            irrelevant += 0.0 if exact else len(members) * sent - own
    k = constants(plan)
    terms = {"channel": k["km"] * channels}
    if not area:
        return terms
    work = k["per_query"] * channels + k["per_object"] * size
    terms |= {"server": k["ka"] * work, "transfer": k["kt"] * size, "client": k["ku"] * irrelevant}
    return {"total": sum(terms.values()), **terms}


def checked(plan: Tables) -> Sequence[str]:
    """What was looked at, in words."""
    return (
        "every query lies inside the merged query that answers it",
        "no merged query is wider than its queries need",
    )


class QueryTables:
    """The tables as boxes by name: of each query, and of each piece of each set; and what is wrong with them."""

    def __init__(self, plan: Tables) -> None:
        self.broken: list[str] = []
        if plan.parameters.get("procedure", "rectangle") not in PROCEDURES:
            got = plan.parameters.get("procedure")
            self.broken.append(f"parameter procedure must be one of {', '.join(PROCEDURES)}, got {got!r}")
        if plan.parameters.get("size", "area") not in SIZES:
            got = plan.parameters.get("size")
            self.broken.append(f"parameter size must be one of {', '.join(SIZES)}, got {got!r}")
        asked, merges, channels = (plan.tables[name] for name in ("queries", "merges", "channels"))
        self.dimensions = sorted({str(name) for name in asked["dimension"].to_pylist()})
        self.queries: dict[Any, Floats] = dict(self._boxes("query", _names(asked), asked))
        sets = [(at, piece) for at, piece in zip(_list(channels, "set"), _list(channels, "piece"), strict=True)]
        self.pieces: dict[Any, dict[Any, Floats]] = {}
        for (at, piece), box in self._boxes("piece", sets, channels):
            self.pieces.setdefault(at, {})[piece] = box
        self.rows = list(zip(_names(merges), _list(merges, "set"), strict=True))
        self.members: dict[Any, list[Name]] = {}
        for name, at in self.rows:
            self.members.setdefault(at, []).append(name)
        self.plan = plan
        self.several = plan.parameters.get("method") == "exhaustive"
        self.broken += [f"query {_text(name)} is in set {at} but not in table queries" for name, at in self.rows
                        if name not in self.queries]  # fmt: skip
        self.broken += [f"set {at} has no piece" for at in self.members if at not in self.pieces]

    def _boxes(self, what: str, names: Sequence[Any], table: Any) -> Iterator[tuple[Any, Floats]]:
        """The box of each name, its sides in the order of the dimensions."""
        sides: dict[Any, dict[str, tuple[float, float]]] = {}
        rows = zip(names, _list(table, "dimension"), _list(table, "low"), _list(table, "high"), strict=True)
        for name, dimension, low, high in rows:
            held = sides.setdefault(name, {})
            if dimension in held:
                self.broken.append(f"{what} {_text(name)} has two ranges of {dimension}")
            if low is None or high is None or not low <= high:
                self.broken.append(f"{what} {_text(name)} must have low <= high in {dimension}, got {low} to {high}")
            held[str(dimension)] = (math.nan if low is None else low, math.nan if high is None else high)
        for name, held in sides.items():
            if sorted(held) == self.dimensions:
                yield name, np.array([held[d] for d in self.dimensions], np.float64)
            else:
                self.broken.append(f"{what} {_text(name)} must have a range of each of {', '.join(self.dimensions)}")


def _list(table: Any, column: str) -> list[Any]:
    found: list[Any] = table[column].to_pylist()
    return found


def _names(table: Any) -> list[Name]:
    columns = [c for c in ("query", "client") if c in table.column_names]
    return list(zip(*(_list(table, c) for c in columns), strict=True))


def _text(name: Any) -> str:
    return " of ".join(map(str, name))


def _faults(read: QueryTables) -> Iterator[str]:
    yield from read.broken
    homes: Mapping[Name, list[Any]] = {name: [] for name in read.queries}
    for name, at in read.rows:
        homes.get(name, []).append(at)
    for name, sets in homes.items():
        if not sets:
            yield f"query {_text(name)} is in no set and gets no answer"
        if len(set(sets)) < len(sets):
            yield f"query {_text(name)} appears twice in a set"
        elif len(sets) > 1 and not read.several:
            yield f"query {_text(name)} is in {len(sets)} sets"
    for at in read.pieces:
        if at not in read.members:
            yield f"set {at} has a channel but no query"
    for at, members in read.members.items():
        pieces = np.array(list(read.pieces.get(at, {}).values()))
        for name in members:
            box = read.queries.get(name)
            if box is not None and len(pieces) and not _inside_one(box, pieces):
                yield f"query {_text(name)} is not inside the merged query of set {at}: rows would be lost"
        yield from _too_wide(at, pieces, np.array([read.queries[name] for name in members if name in read.queries]))
    yield from _baseline(read)


def _too_wide(at: Any, pieces: Floats, boxes: Floats) -> Iterator[str]:
    """Each side of a piece is a side of a query inside it: every procedure draws them around queries."""
    for piece in pieces if len(boxes) else ():
        inside = boxes[((boxes[:, :, 0] >= piece[:, 0]) & (boxes[:, :, 1] <= piece[:, 1])).all(axis=1)]
        if not len(inside):
            yield f"a piece of set {at} holds no whole query"
        elif (inside[:, :, 0].min(axis=0) > piece[:, 0]).any() or (inside[:, :, 1].max(axis=0) < piece[:, 1]).any():
            yield f"a piece of set {at} is wider than its queries need"


def _baseline(read: QueryTables) -> Iterator[str]:
    """Every query apart, where sizes are areas."""
    known = read.plan.parameters
    said = read.plan.baselines.get("apart")
    if read.broken or said is None or known.get("size") != "area":
        return
    size = sum(float(np.prod(box[:, 1] - box[:, 0])) for box in read.queries.values())
    k = constants(read.plan)
    found = (k["km"] + k["ka"] * k["per_query"]) * len(read.queries) + (k["kt"] + k["ka"] * k["per_object"]) * size
    if not same(said, found):
        yield f"every query apart costs {found}, the plan says {said}"


def constants(plan: Tables) -> dict[str, float]:
    """The constants of the cost model, as the plan has them."""
    return {name: constant(plan, name, float("nan")) for name in ("km", "kt", "ku", "ka", "per_query", "per_object")}


def _inside_one(box: Floats, pieces: Floats) -> bool:
    within = (pieces[:, :, 0] <= box[:, 0]) & (pieces[:, :, 1] >= box[:, 1])
    return bool(within.all(axis=1).any())


def union_area(boxes: Floats) -> float:
    """The area that finite boxes cover together: of the grid that their sides cut, the cells that one holds."""
    cuts = [np.unique(boxes[:, j]) for j in range(boxes.shape[1])]
    covered = np.zeros([len(cut) - 1 for cut in cuts], np.bool_)
    for box in boxes:
        covered[tuple(slice(*np.searchsorted(cut, side)) for cut, side in zip(cuts, box, strict=True))] = True
    area = reduce(np.multiply.outer, [np.diff(cut) for cut in cuts])
    return float(area[covered].sum())


def combinations(boxes: Floats) -> int:
    """How many different sets of these finite boxes a point can lie in, borders and corners included."""
    places = []
    for j in range(boxes.shape[1]):
        cuts = np.unique(boxes[:, j])
        points = np.concatenate([cuts, (cuts[:-1] + cuts[1:]) / 2])
        places.append((points[:, None] >= boxes[:, j, 0]) & (points[:, None] <= boxes[:, j, 1]))
    found = reduce(lambda a, b: (a[:, None] & b[None]).reshape(-1, len(boxes)), places)
    return len(np.unique(found[found.any(axis=1)], axis=0))
