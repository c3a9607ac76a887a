"""Query merging plans judged from their tables alone: whose answer a channel cuts short, and what it all costs.

Nothing here comes from the planner. A set's channel carries what lies in its pieces; a query is answered
if each set it is in has a piece around the query's whole box, so that no row it wants stays behind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
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
    "physical": ("set", "channel"),
    "grid": ("cell", "count"),
    "grid_edges": ("dimension", "edge"),
    "points": ("point", "dimension", "value"),
}
OPTIONAL: Sequence[str] = ("physical", "grid", "grid_edges", "points")
BOUNDED = "total"


def faults(plan: Tables) -> list[str]:
    """Every way in which the plan is unsound; an empty list is a sound plan. O(members · pieces of a set).

    A query that only several pieces together would cover counts as cut short: no procedure makes that,
    and whatever is unknown is refused.
    """
    return list(_faults(QueryTables(plan)))


def cost(plan: Tables) -> dict[str, float]:
    """The terms of the plan's cost, from K_A·work + K_M·|M| + K_T·size(M) + K_U·U.

    All of them where the plan says that sizes are areas (parameter `size`), or holds the grid or the points that they
    were counted in; where it does not, only `channel`, which depends on no size.
    """
    read, known = QueryTables(plan), plan.parameters
    if read.broken:
        return {}
    exact = known.get("procedure") == "exact"
    if exact and not all(np.isfinite(box).all() for box in read.queries.values()):
        return {}
    channels, size, irrelevant = 0, 0.0, 0.0
    for at, members in read.members.items():
        boxes = np.array([read.queries[name] for name in members])
        channels += combinations(boxes) if exact else 1
        if read.sized:
            sent = read.union(boxes if exact else np.array(list(read.pieces[at].values())))
            own = sum(read.union(box[None]) for box in boxes)
            size += sent
            irrelevant += 0.0 if exact else len(members) * sent - own
    k = constants(plan)
    terms = {"channel": k["km"] * channels}
    if not read.sized:
        return terms
    work = k["per_query"] * channels + k["per_object"] * size
    terms |= {"server": k["ka"] * work, "transfer": k["kt"] * size, "client": k["ku"] * irrelevant}
    if read.home:
        terms["overheard"] = k["ku"] * _overheard(read)
    return {"total": sum(terms.values()), **terms}


def checked(plan: Tables) -> Sequence[str]:
    """What was looked at, in words."""
    told = ["every query lies inside the merged query that answers it"]
    told.append("no merged query is wider than its queries need")
    return [*told, "every merged query has one physical channel"] if "physical" in plan.tables else told


def message_faults(
    plan: Tables, messages: Any, pairs: Sequence[tuple[str, str]], *, sample: int = 100_000
) -> tuple[list[str], int]:
    """Send messages through the plan: whoever a query's profile wants something for finds it in the answer of its set.

    `pairs` are (subscriber, profile); a subscriber is a query of the plan, a client, or `query of client`. Of more
    messages than `sample` some are drawn evenly. The faults found, and how many wanted messages were looked at.
    """
    from narrowcast.profiles import Matcher

    read = QueryTables(plan)
    if read.broken:
        return [], 0
    homes: dict[str, list[Any]] = {}
    for name, at in read.rows:
        for known in {str(name[0]), str(name[-1]), _text(name)}:
            homes.setdefault(known, []).append(at)
    step = max(1, -(-messages.num_rows // sample))
    table = messages.take(list(range(0, messages.num_rows, step)))
    absent = [d for d in read.dimensions if d not in table.column_names]
    if absent:
        return [f"messages have no attribute {absent[0]!r}, which the plan goes by"], 0
    values = np.array([[math.nan if v is None else float(v) for v in _list(table, d)] for d in read.dimensions]).T
    rows, found = Matcher([text for _, text in pairs]).match(table)
    faults, looked = [], 0
    for at in range(len(pairs)):
        who, mine = pairs[at][0], rows[found == at]
        looked += len(mine)
        pieces = [box for home in homes.get(who, ()) for box in read.pieces[home].values()]
        if not pieces and len(mine):
            faults.append(f"{who} is no query or client of the plan and gets none of {len(mine):,} messages it wants")
            continue
        boxes = np.array(pieces).reshape(-1, len(read.dimensions), 2)
        points = values[mine]
        inside = [np.any([_holds(box, point) for box in boxes]) for point in points]
        if not all(inside):
            lost = len(inside) - int(np.sum(inside))
            faults.append(f"{who} misses {lost:,} of {len(mine):,} messages it wants")
    return faults, looked


def _holds(box: Floats, point: Floats) -> bool:
    """Whether a closed box holds a point; a side without any bound asks for no value."""
    free = np.isneginf(box[:, 0]) & np.isposinf(box[:, 1])
    return bool((free | ((box[:, 0] <= point) & (point <= box[:, 1]))).all())


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
        self._read_sizes()
        self.home: dict[Any, Any] = {}
        if "physical" in plan.tables:
            held = plan.tables["physical"]
            self.home = dict(zip(_list(held, "set"), _list(held, "channel"), strict=True))
            self.broken += [f"set {at} has no physical channel" for at in self.members if self.home.get(at) is None]
            if len(self.home) != held.num_rows:
                self.broken.append("a set has two physical channels")
            most, used = plan.parameters.get("channels"), len(set(self.home.values()))
            if most is not None and used > int(most):
                self.broken.append(f"{used} physical channels are used, the plan may have {most}")
        self.several = plan.parameters.get("method") == "exhaustive"
        self.broken += [f"query {_text(name)} is in set {at} but not in table queries" for name, at in self.rows
                        if name not in self.queries]  # fmt: skip
        self.broken += [f"set {at} has no piece" for at in self.members if at not in self.pieces]

    def _read_sizes(self) -> None:
        """What boxes hold: by area, by a grid, by points, or unknown where the plan does not keep it."""
        tables, by = self.plan.tables, self.plan.parameters.get("size")
        self.points: Floats | None = None
        self.grid: tuple[list[Floats], Floats] | None = None
        if by == "counts" and "points" in tables:
            held = tables["points"]
            values: dict[Any, dict[Any, float]] = {}
            for at, name, value in zip(*(_list(held, c) for c in ("point", "dimension", "value")), strict=True):
                values.setdefault(at, {})[name] = value
            if all(sorted(each) == self.dimensions for each in values.values()):
                rows = [[each[d] for d in self.dimensions] for each in values.values()]
                self.points = np.array(rows, np.float64).reshape(len(rows), len(self.dimensions))
            else:
                self.broken.append("a point of table points lacks a dimension")
        elif by == "histogram" and "grid" in tables and "grid_edges" in tables:
            self._read_grid(tables["grid"], tables["grid_edges"])
        self.sized = by == "area" or self.points is not None or self.grid is not None

    def _read_grid(self, cells: Any, edges: Any) -> None:
        order = list(dict.fromkeys(map(str, _list(edges, "dimension"))))
        cuts: dict[str, list[float]] = {name: [] for name in order}
        for name, edge in zip(_list(edges, "dimension"), _list(edges, "edge"), strict=True):
            cuts[name].append(edge)
        axes = [np.array(cuts[name], np.float64) for name in order]
        at, count = np.array(_list(cells, "cell"), np.int64), np.array(_list(cells, "count"), np.float64)
        counts = np.zeros([max(len(axis) - 1, 0) for axis in axes])
        ascending = all(len(axis) > 1 and (np.diff(axis) > 0).all() for axis in axes)
        if sorted(order) != self.dimensions or not ascending or (at < 0).any() or (at >= counts.size).any():
            self.broken.append("the grid of sizes is damaged")
        elif not (count >= 0).all():
            self.broken.append("the grid of sizes has a count below zero")
        else:
            counts.ravel()[at] = count
            turned = [order.index(name) for name in self.dimensions]
            self.grid = [axes[j] for j in turned], counts.transpose(turned)

    def union(self, boxes: Floats) -> float:
        """How much boxes hold together."""
        if self.points is not None:
            low, high = boxes[None, :, :, 0], boxes[None, :, :, 1]
            inside = (self.points[:, None] >= low) & (self.points[:, None] <= high)
            return float(np.any(np.all(inside, axis=2), axis=1).sum())
        if self.grid is not None:
            axes, counts = self.grid
            clipped = np.stack([np.clip(boxes[:, j], axis[0], axis[-1]) for j, axis in enumerate(axes)], axis=1)
            return _union(clipped, lambda cuts: _cells(cuts, axes, counts))
        return union_area(boxes)

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
    """Every query apart, where sizes are known."""
    said = read.plan.baselines.get("apart")
    if read.broken or said is None or not read.sized:
        return
    size = sum(read.union(box[None]) for box in read.queries.values())
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
    return _union(boxes, lambda cuts: reduce(np.multiply.outer, [np.diff(cut) for cut in cuts]))


def _union(boxes: Floats, sizes: Callable[[list[Floats]], Floats]) -> float:
    cuts = [np.unique(boxes[:, j]) for j in range(boxes.shape[1])]
    covered = np.zeros([len(cut) - 1 for cut in cuts], np.bool_)
    for box in boxes:
        covered[tuple(slice(*np.searchsorted(cut, side)) for cut, side in zip(cuts, box, strict=True))] = True
    return float(sizes(cuts)[covered].sum())


def _cells(cuts: list[Floats], axes: list[Floats], counts: Floats) -> Floats:
    """What lies between each two cuts, the counts of a grid spread evenly inside its cells."""
    found = counts
    for cut, axis in zip(cuts, axes, strict=True):
        shared = np.minimum(cut[1:, None], axis[1:]) - np.maximum(cut[:-1, None], axis[:-1])
        part = np.maximum(shared, 0.0) / np.diff(axis)
        found = np.tensordot(found, part, axes=([0], [1]))
    return found


def _overheard(read: QueryTables) -> float:
    """What clients hear on their physical channels of merged queries in which they have no part."""
    load: dict[Any, float] = {}
    listeners: dict[Any, set[Any]] = {}
    wanted = 0.0
    for at, members in read.members.items():
        sent, clients = read.union(np.array(list(read.pieces[at].values()))), {name[-1] for name in members}
        load[read.home[at]] = load.get(read.home[at], 0.0) + sent
        listeners.setdefault(read.home[at], set()).update(clients)
        wanted += sent * len(clients)
    return max(0.0, sum(load[channel] * len(clients) for channel, clients in listeners.items()) - wanted)


def combinations(boxes: Floats) -> int:
    """How many different sets of these finite boxes a point can lie in, borders and corners included."""
    places = []
    for j in range(boxes.shape[1]):
        cuts = np.unique(boxes[:, j])
        points = np.concatenate([cuts, (cuts[:-1] + cuts[1:]) / 2])
        places.append((points[:, None] >= boxes[:, j, 0]) & (points[:, None] <= boxes[:, j, 1]))
    found = reduce(lambda a, b: (a[:, None] & b[None]).reshape(-1, len(boxes)), places)
    return len(np.unique(found[found.any(axis=1)], axis=0))
