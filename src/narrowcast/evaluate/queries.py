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

from narrowcast.model.plan import Plan

Floats = NDArray[np.float64]
Name = tuple[object, ...]  # (query,) or (query, client)


def queries_faults(plan: Plan) -> list[str]:
    """Every way in which the plan is unsound; an empty list is a sound plan. O(members · pieces of a set).

    A query that only several pieces together would cover counts as cut short: no procedure makes that,
    and whatever is unknown is refused.
    """
    return list(_faults(_Read(plan)))


def queries_cost(plan: Plan) -> dict[str, float]:
    """The terms of the plan's cost, from K_A·work + K_M·|M| + K_T·size(M) + K_U·U.

    All of them where the plan says that sizes are areas (parameter `size`); where they were counted in data
    that the plan does not hold, only `channel`, which depends on no size.
    """
    read, known = _Read(plan), plan.parameters
    if read.broken:
        return {}
    exact = known.get("procedure") == "exact"
    area = known.get("size") == "area"
    if exact and not all(np.isfinite(box).all() for box in read.queries.values()):
        return {}
    channels, size, irrelevant = 0, 0.0, 0.0
    for at, members in read.members.items():
        boxes = np.array([read.queries[name] for name in members])
        channels += _combinations(boxes) if exact else 1
        if area:
            sent = _union(boxes if exact else np.array(list(read.pieces[at].values())))
            own = float(np.prod(boxes[:, :, 1] - boxes[:, :, 0], axis=1).sum())
            size += sent
            irrelevant += 0.0 if exact else len(members) * sent - own
    terms = {"channel": float(known["km"]) * channels}
    if not area:
        return terms
    work = float(known["per_query"]) * channels + float(known["per_object"]) * size
    terms |= {
        "server": float(known["ka"]) * work,
        "transfer": float(known["kt"]) * size,
        "client": float(known["ku"]) * irrelevant,
    }
    return {"total": sum(terms.values()), **terms}


class _Read:
    """The tables as boxes by name: of each query, and of each piece of each set; and what is wrong with them."""

    def __init__(self, plan: Plan) -> None:
        self.broken: list[str] = []
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
        self.several = plan.parameters.get("method") == "exhaustive"
        self.broken += [f"query {_text(name)} is in set {at} and is not there" for name, at in self.rows
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
                self.broken.append(f"{what} {_text(name)} has no range of {dimension}: {low} to {high}")
            held[str(dimension)] = (math.nan if low is None else low, math.nan if high is None else high)
        for name, held in sides.items():
            if sorted(held) == self.dimensions:
                yield name, np.array([held[d] for d in self.dimensions], np.float64)
            else:
                self.broken.append(f"{what} {_text(name)} is not over {', '.join(self.dimensions)}")


def _list(table: Any, column: str) -> list[Any]:
    found: list[Any] = table[column].to_pylist()
    return found


def _names(table: Any) -> list[Name]:
    columns = [c for c in ("query", "client") if c in table.column_names]
    return list(zip(*(_list(table, c) for c in columns), strict=True))


def _text(name: Any) -> str:
    return " of ".join(map(str, name))


def _faults(read: _Read) -> Iterator[str]:
    yield from read.broken
    homes: Mapping[Name, list[Any]] = {name: [] for name in read.queries}
    for name, at in read.rows:
        homes.get(name, []).append(at)
    for name, sets in homes.items():
        if not sets:
            yield f"query {_text(name)} is in no set and gets no answer"
        if len(set(sets)) < len(sets):
            yield f"query {_text(name)} stands twice in a set"
        elif len(sets) > 1 and not read.several:
            yield f"query {_text(name)} is in {len(sets)} sets"
    for at in read.pieces:
        if at not in read.members:
            yield f"set {at} has a channel and no query"
    for at, members in read.members.items():
        pieces = np.array(list(read.pieces.get(at, {}).values()))
        for name in members:
            box = read.queries.get(name)
            if box is not None and len(pieces) and not _inside_one(box, pieces):
                yield f"query {_text(name)} is not inside the merged query of set {at}: rows would be lost"


def _inside_one(box: Floats, pieces: Floats) -> bool:
    within = (pieces[:, :, 0] <= box[:, 0]) & (pieces[:, :, 1] >= box[:, 1])
    return bool(within.all(axis=1).any())


def _union(boxes: Floats) -> float:
    """The area that finite boxes cover together: of the grid that their sides cut, the cells that one holds."""
    cuts = [np.unique(boxes[:, j]) for j in range(boxes.shape[1])]
    covered = np.zeros([len(cut) - 1 for cut in cuts], np.bool_)
    for box in boxes:
        covered[tuple(slice(*np.searchsorted(cut, side)) for cut, side in zip(cuts, box, strict=True))] = True
    area = reduce(np.multiply.outer, [np.diff(cut) for cut in cuts])
    return float(area[covered].sum())


def _combinations(boxes: Floats) -> int:
    """How many different sets of these finite boxes a point can lie in, borders and corners included."""
    places = []
    for j in range(boxes.shape[1]):
        cuts = np.unique(boxes[:, j])
        points = np.concatenate([cuts, (cuts[:-1] + cuts[1:]) / 2])
        places.append((points[:, None] >= boxes[:, j, 0]) & (points[:, None] <= boxes[:, j, 1]))
    found = reduce(lambda a, b: (a[:, None] & b[None]).reshape(-1, len(boxes)), places)
    return len(np.unique(found[found.any(axis=1)], axis=0))
