"""A queries plan: which range queries are answered together, and by which merged query; also as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from narrowcast.errors import InputError, UnsupportedError
from narrowcast.model.cost import Compared, Cost
from narrowcast.model.plan import Plan, Tables
from narrowcast.model.quantity import quantity
from narrowcast.plans.queries.boxes import Floats, as_boxes, bounding_each
from narrowcast.plans.queries.constants import Constants
from narrowcast.plans.queries.problem import (
    BoxProblem,
    CostTerms,
    MergeAmounts,
    Set,
    check_cover,
    cost_apart,
    set_sizes,
    total_terms,
)
from narrowcast.plans.queries.procedures import Rectangle, as_procedure
from narrowcast.plans.queries.sizes import Area, GridHistogram, PointCounts, Sizes

CONSTANTS = tuple(each.name for each in fields(Constants))
MOST_POINTS = 200_000  # rows that a plan keeps to count sizes in again


@dataclass(frozen=True, eq=False)
class QueryDemand:
    """Range queries as closed boxes over attributes: `boxes` is (queries, attributes, 2), lows and highs.

    `names` are the queries' own, by default their numbers; where clients use the same names, `clients` tells their
    queries apart. `key` names the attributes that make a flow; queries need none.

    >>> demand = QueryDemand([[[0, 2]], [[1, 3]]], ("price",), names=("q", "q"), clients=("ann", "bob"))
    >>> demand, demand.labels
    (QueryDemand(2 queries over price), ('q of ann', 'q of bob'))
    """

    boxes: Floats
    attributes: tuple[str, ...]
    names: tuple[str, ...] | None = None
    clients: tuple[str, ...] | None = None
    key: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        boxes, attributes = as_boxes(self.boxes, finite=False), tuple(self.attributes)
        if len(boxes) and len(attributes) != boxes.shape[1]:
            raise InputError(
                f"attributes must have {boxes.shape[1]} names, one per dimension, got {len(attributes)}",
                name="attributes",
            )
        object.__setattr__(self, "boxes", boxes if len(boxes) else np.zeros((0, len(attributes), 2)))
        object.__setattr__(self, "attributes", attributes)
        for name in ("names", "clients"):
            given = getattr(self, name)
            if given is None:
                continue
            if len(given) != len(boxes):
                raise InputError(f"{name} must have {len(boxes)} entries, got {len(given)}", name=name, got=len(given))
            object.__setattr__(self, name, tuple(given))

    @cached_property
    def query_names(self) -> tuple[str, ...]:
        """The names of the queries, by default their numbers."""
        return self.names or tuple(map(str, range(len(self.boxes))))

    @cached_property
    def full_names(self) -> tuple[str, ...]:
        """The names of the queries, with whose they are where there are clients."""
        if self.clients is None:
            return self.query_names
        return tuple(f"{name} of {client}" for name, client in zip(self.query_names, self.clients, strict=True))

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each query that no other has: its own where none shares it, else with its client."""
        return self.query_names if len(set(self.query_names)) == len(self.boxes) else self.full_names

    def __repr__(self) -> str:
        return f"QueryDemand({len(self.boxes):,} queries over {', '.join(self.attributes)})"


@dataclass(frozen=True, eq=False, kw_only=True)
class QueriesPlan(Plan):
    """Sets of queries, each answered by one merged query.

    `sets` hold the numbers of their queries; `pieces[i]` are the boxes whose union is the merged query of set i (one,
    its bounding box, under `rectangle`). `numbers` are what the sets are called in tables and on the wire.

    >>> from narrowcast.plans.queries.plan import make
    >>> plan = make(QueryDemand([[[0, 2]], [[1, 3]], [[9, 10]]], ("price",), names=("a", "b", "c")), km=1, kt=1, ku=0.1)
    >>> plan
    QueriesPlan(3 queries in 2 sets by pair, cost 6.20 instead of 8)
    >>> plan.to_tables().tables["merges"].to_pydict()
    {'query': ['a', 'b', 'c'], 'set': [0, 0, 1]}
    >>> plan.to_tables().tables["channels"].to_pylist()[0]
    {'set': 0, 'piece': 0, 'dimension': 'price', 'low': 0.0, 'high': 3.0}
    """

    kind: ClassVar[str] = "queries"
    demand: QueryDemand
    sets: tuple[Set, ...]
    pieces: tuple[Floats, ...]
    numbers: tuple[int, ...]
    size: Sizes | None = None
    """How much a box holds: the area, a grid of counts, or points; None where the plan does not hold it."""
    physical: tuple[int, ...] | None = None
    """The physical channel of each set, where there is a fixed number of them."""
    counted: tuple[MergeAmounts, Floats] | None = None
    """What is sent in all and for each set, as it was counted when planned; None in a plan that was read."""

    @cached_property
    def boxes(self) -> Floats:
        """The bounding box of each set."""
        return bounding_each(self.demand.boxes, self.sets)

    @property
    def method(self) -> str:
        """The method that chose the sets."""
        return str(self.parameters.get("method", "pair"))

    @property
    def procedure(self) -> str:
        """How the queries of a set become one: rectangle, polygon or exact."""
        return str(self.parameters.get("procedure", "rectangle"))

    @cached_property
    def constants(self) -> Constants:
        """The prices that the plan was made with."""
        return Constants(**{name: float(self.parameters[name]) for name in CONSTANTS if name in self.parameters})

    @property
    def baseline(self) -> float:
        """The cost of answering every query apart."""
        return float(self.cost.baselines.get("apart", 0.0))

    @property
    def saved(self) -> float:
        """The share of the baseline that merging saves."""
        return 1.0 - self.cost / self.baseline if self.baseline else 0.0

    @property
    def sizes(self) -> Floats:
        """Objects sent for each set."""
        return self._counts[1]

    @property
    def terms(self) -> CostTerms:
        """The cost part by part, and the amounts behind it: channels, objects sent, irrelevant objects heard."""
        return CostTerms(self.cost.total, **self.cost.terms, amounts=self._counts[0])

    @cached_property
    def _counts(self) -> tuple[MergeAmounts, Floats]:
        if self.counted is not None:
            return self.counted
        problem = self.problem()
        return total_terms(problem, self.sets), set_sizes(problem, self.sets)

    def problem(self) -> BoxProblem:
        """The problem that the plan solves; UnsupportedError where it does not hold what its sizes were counted in."""
        if self.size is None:
            raise UnsupportedError(
                "the plan does not hold the data its sizes were counted in; plan with --sizes histogram",
                works=("area", "histogram"),
            )
        return BoxProblem(self.demand.boxes, self.constants, as_procedure(self.procedure), self.size)

    def __repr__(self) -> str:
        return (
            f"QueriesPlan({len(self.demand.boxes):,} queries in {len(self.sets):,} sets by {self.method}, "
            f"cost {quantity(self.cost.total)} instead of {quantity(self.baseline)})"
        )

    def _to_tables(self) -> Tables:
        return Tables(
            kind=self.kind,
            tables=self._decisions(),
            cost={"total": self.cost.total, **self.cost.terms},
            parameters=self.parameters,
            baselines={name: float(found) for name, found in self.cost.baselines.items()},
            inputs=self.inputs,
            checks=self.checks,
            lower_bound=self.cost.lower_bound,
            gap=self.cost.gap,
            seed=self.seed,
            key=self.key,
        )

    def _decisions(self) -> dict[str, Any]:
        import pyarrow as pa

        demand, d = self.demand, len(self.demand.attributes)
        each = np.repeat(np.arange(len(demand.boxes)), d).tolist()
        pairs = sorted((q, at) for at, members in zip(self.numbers, self.sets, strict=True) for q in members)
        each_piece = [(at, k) for at, held in zip(self.numbers, self.pieces, strict=True) for k in range(len(held))]
        channels = {
            "set": pa.array([at for at, _ in each_piece for _ in range(d)], pa.int64()),
            "piece": pa.array([k for _, k in each_piece for _ in range(d)], pa.int64()),
            **_sides(np.concatenate([*self.pieces, np.zeros((0, d, 2))]), demand.attributes),
        }
        merges = {**_named(demand, [q for q, _ in pairs]), "set": pa.array([at for _, at in pairs], pa.int64())}
        found = {
            "queries": pa.table({**_named(demand, each), **_sides(demand.boxes, demand.attributes)}),
            "merges": pa.table(merges),
            "channels": pa.table(channels),
            **_size_tables(self.size, demand.attributes),
        }
        if self.physical is not None:
            found["physical"] = pa.table({"set": self.numbers, "channel": self.physical})
        return found

    @classmethod
    def from_tables(cls, tables: Tables) -> QueriesPlan:
        """The plan that these tables say, as `to_tables` wrote them."""
        demand, place = _demand_in(tables)
        members: dict[int, set[int]] = {}
        merges = tables.tables["merges"]
        for name, number in zip(_keys(merges, _who(tables)), merges["set"].to_pylist(), strict=True):
            members.setdefault(int(number), set()).add(place[name])
        pieces: dict[int, list[Floats]] = {number: [] for number in members}
        for (number, _), box in _boxes_in(tables.tables["channels"], ("set", "piece"), demand.attributes).items():
            pieces[int(number)].append(box)
        numbers = tuple(sorted(members))
        home = tables.tables.get("physical")
        on = None if home is None else dict(zip(home["set"].to_pylist(), home["channel"].to_pylist(), strict=True))
        terms = {name: float(value) for name, value in tables.cost.items() if name != "total"}
        baselines = {name: Cost(float(found)) for name, found in tables.baselines.items()}
        return cls(
            demand=demand,
            cost=Cost(float(tables.cost["total"]), terms, Compared(baselines, tables.lower_bound, tables.gap)),
            parameters=tables.parameters,
            seed=tables.seed,
            inputs=tables.inputs,
            checks=tables.checks,
            written=tables,
            sets=tuple(tuple(sorted(members[number])) for number in numbers),
            pieces=tuple(np.array(pieces[number]) for number in numbers),
            numbers=numbers,
            size=_sizes_in(tables, demand.attributes),
            physical=None if on is None else tuple(int(on[number]) for number in numbers),
        )


RESULT = QueriesPlan


def merged_plan(
    demand: QueryDemand,
    problem: BoxProblem,
    sets: Sequence[Sequence[int]],
    method: str,
    seed: int = 0,
    choices: Mapping[str, Any] | None = None,
) -> QueriesPlan:
    """The plan of an algorithm's sets, priced anew from the definition, every query answered.

    `problem` is that of the demand's boxes; `method` says who chose the sets, `choices` with what parameters.
    """
    found = check_cover(sets, problem.n)
    terms = CostTerms.of(total_terms(problem, found), problem.constants)
    return QueriesPlan(
        demand=demand,
        cost=Cost(terms.total, terms.by_name, lambda: Compared({"apart": Cost(cost_apart(problem))})),
        parameters={
            "method": method,
            "procedure": problem.procedure.name,
            **{name: getattr(problem.constants, name) for name in CONSTANTS},
            "size": problem.size.name,
            "attributes": list(demand.attributes),
            **(choices or {}),
        },
        seed=seed,
        sets=found,
        pieces=_pieces(problem, found),
        numbers=tuple(range(len(found))),
        size=_kept(problem.size),
        counted=(terms.amounts, set_sizes(problem, found)),
    )


def _pieces(problem: BoxProblem, sets: Sequence[Set]) -> tuple[Floats, ...]:
    if isinstance(problem.procedure, Rectangle):
        return tuple(bounding_each(problem.boxes, sets)[:, None])
    return tuple(problem.procedure.pieces(problem.boxes[list(members)], problem.size) for members in sets)


def _kept(size: Sizes) -> Sizes | None:
    """What a plan keeps of how it was sized: nothing of a function, nor of more points than a plan should hold."""
    if isinstance(size, PointCounts):
        return size if len(size.points) <= MOST_POINTS else None
    return size if isinstance(size, Area | GridHistogram) else None


def _size_tables(size: Sizes | None, attributes: Sequence[str]) -> dict[str, Any]:
    """A grid as its edges and the cells that hold something; points as they are."""
    import pyarrow as pa

    if isinstance(size, GridHistogram):
        flat = size.counts.ravel()
        held = np.flatnonzero(flat)
        names = [name for name, cuts in zip(attributes, size.edges, strict=True) for _ in cuts]
        return {
            "grid": pa.table({"cell": held, "count": flat[held]}),
            "grid_edges": pa.table({"dimension": pa.array(names, pa.string()), "edge": np.concatenate(size.edges)}),
        }
    if isinstance(size, PointCounts):
        n, d = size.points.shape
        names = pa.array(list(attributes) * n, pa.string())
        at = np.repeat(np.arange(n), d)
        return {"points": pa.table({"point": at, "dimension": names, "value": size.points.ravel()})}
    return {}


def _sizes_in(tables: Tables, attributes: Sequence[str]) -> Sizes | None:
    """The sizes that a folder holds."""
    if "grid" in tables.tables and "grid_edges" in tables.tables:
        cells, edges = tables.tables["grid"], tables.tables["grid_edges"]
        cuts: dict[str, list[float]] = {name: [] for name in attributes}
        for name, edge in zip(edges["dimension"].to_pylist(), edges["edge"].to_pylist(), strict=True):
            cuts[name].append(edge)
        counts = np.zeros([len(cuts[name]) - 1 for name in attributes])
        counts.ravel()[cells["cell"].to_numpy()] = cells["count"].to_numpy()
        return GridHistogram(counts, [cuts[name] for name in attributes])
    if "points" in tables.tables:
        held = tables.tables["points"]
        return PointCounts(held["value"].to_numpy().reshape(-1, len(attributes)))
    return Area() if tables.parameters.get("size") == "area" else None


def _named(demand: QueryDemand, queries: Sequence[int]) -> dict[str, Any]:
    """The columns that say which query a row is about."""
    import pyarrow as pa

    names, clients = demand.query_names, demand.clients
    found = {"query": pa.array([names[q] for q in queries], pa.string())}
    return found if clients is None else found | {"client": pa.array([clients[q] for q in queries], pa.string())}


def _sides(boxes: Floats, attributes: Sequence[str]) -> dict[str, Any]:
    """The columns with a row for each box and dimension."""
    import pyarrow as pa

    return {
        "dimension": pa.array(list(attributes) * len(boxes), pa.string()),
        "low": boxes[:, :, 0].ravel(),
        "high": boxes[:, :, 1].ravel(),
    }


def _who(tables: Tables) -> tuple[str, ...]:
    """The columns that name a query."""
    return ("query", "client") if "client" in tables.tables["queries"].column_names else ("query",)


def _demand_in(tables: Tables) -> tuple[QueryDemand, Mapping[tuple[Any, ...], int]]:
    """The queries of a folder, and the place of each by its name."""
    asked, who = tables.tables["queries"], _who(tables)
    attributes = dict.fromkeys(asked["dimension"].to_pylist()) or tables.parameters.get("attributes", ("x0",))
    found = _boxes_in(asked, who, tuple(attributes))
    names = [tuple(map(str, column)) for column in zip(*found, strict=True)] or [() for _ in who]
    boxes = np.array(list(found.values())).reshape(len(found), len(tuple(attributes)), 2)
    demand = QueryDemand(boxes, tuple(attributes), names[0], names[1] if len(who) > 1 else None, tables.key)
    return demand, {name: at for at, name in enumerate(found)}


def _keys(table: Any, columns: Sequence[str]) -> list[tuple[Any, ...]]:
    return list(zip(*(table[name].to_pylist() for name in columns), strict=True))


def _boxes_in(table: Any, key: Sequence[str], attributes: Sequence[str]) -> dict[tuple[Any, ...], Floats]:
    """Boxes by key, from a table with a row for each key and dimension."""
    found: dict[tuple[Any, ...], Floats] = {}
    place = {name: j for j, name in enumerate(attributes)}
    rows = zip(_keys(table, key), *(table[c].to_pylist() for c in ("dimension", "low", "high")), strict=True)
    for name, dimension, low, high in rows:
        box = found.setdefault(name, np.full((len(attributes), 2), np.nan))
        box[place[dimension]] = low, high
    return found
