"""The entry points: merge queries, and the cost of any plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from narrowcast.errors import InputError
from narrowcast.plans.queries.arrangement import too_many_cells
from narrowcast.plans.queries.boxes import as_boxes
from narrowcast.plans.queries.constants import KM, KT, KU, Constants
from narrowcast.plans.queries.methods.cluster import INNER, Algorithm, Cluster
from narrowcast.plans.queries.methods.directed import Directed
from narrowcast.plans.queries.methods.exhaustive import Exhaustive
from narrowcast.plans.queries.methods.pair import Pair
from narrowcast.plans.queries.methods.partition import Partition
from narrowcast.plans.queries.methods.physical import on_channels
from narrowcast.plans.queries.problem import BoxProblem, CostTerms, check_cover, total_terms
from narrowcast.plans.queries.procedures import MergeProcedure, as_procedure
from narrowcast.plans.queries.result import QueriesPlan, QueryDemand, merged_plan
from narrowcast.plans.queries.sizes import Area, GridHistogram, PointCounts, SizeFunction, as_sizes
from narrowcast.plans.unused import refuse_unused

METHODS: dict[str, type] = {
    "partition": Partition,
    "exhaustive": Exhaustive,
    "pair": Pair,
    "directed": Directed,
    "cluster": Cluster,
}

CHOICES = ("starts", "inner", "metric", "channels")  # what a plan remembers of how it was chosen
Size = GridHistogram | PointCounts | SizeFunction | None


def merge(
    boxes: ArrayLike,
    method: str = "pair",
    *,
    km: float = KM,
    kt: float = KT,
    ku: float = KU,
    ka: float = 0.0,
    procedure: str | MergeProcedure = "rectangle",
    size: Size = None,
    seed: int = 0,
    starts: int = 50,
    inner: str = "pair",
    metric: str = "heuristic",
    constants: Constants | None = None,
) -> QueriesPlan:
    """Answer many overlapping range queries by few merged ones (Crespo et al.).

    `boxes` is (n, d, 2), closed lows and highs. Methods: `partition` (exact, at most 22), `exhaustive`
    (all covers, at most 4), `pair` (greedy; 100,000 queries), `directed` (local search from `starts`
    starts, never dearer than pair) and `cluster` (`inner` inside each cluster by `metric`). `size` is None for the
    area, a GridHistogram, a PointCounts, or a function of (m, d, 2) boxes. `constants` replaces the k's.

    >>> plan = merge([[[0, 2], [0, 1]], [[0, 1], [0, 2]], [[1, 2], [1, 2]]], "partition", km=10, kt=9, ku=4)
    >>> plan.sets, plan.cost, plan.baseline
    (((0, 1, 2),), 74.0, 75.0)
    """
    chosen = algorithm(method, starts, inner, metric)
    given = as_boxes(boxes, finite=False)
    demand = QueryDemand(given, tuple(f"x{j}" for j in range(given.shape[1])))
    problem = _problem(given, constants or Constants(km, kt, ku, ka), procedure, size)
    _check_exact(problem, method, inner)
    return merged_plan(demand, problem, chosen(problem, seed=seed), method, seed)


def make(
    demand: QueryDemand,
    method: str = "pair",
    procedure: str | MergeProcedure = "rectangle",
    km: float = KM,
    kt: float = KT,
    ku: float = KU,
    ka: float = 0.0,
    per_query: float = 1.0,
    per_object: float = 0.01,
    size: Size = None,
    seed: int = 0,
    starts: int | None = None,
    inner: str | None = None,
    metric: str | None = None,
    channels: int | None = None,
    time_limit: float | None = None,
    progress: object = None,
    previous: object = None,
) -> QueriesPlan:
    """Answer range queries that have names by few merged ones: `merge`, for a demand.

    Parameters
    ----------
    demand : the queries as boxes, with the names of their attributes
    method : "pair", "directed", "cluster", "partition" or "exhaustive"
    procedure : how a set is answered: "rectangle", "polygon" or "exact"
    km, kt, ku, ka, per_query, per_object : the constants of the cost; see `Constants`
    size : None for areas, a GridHistogram, a PointCounts, or a function of (m, d, 2) boxes
    seed : for `directed`
    starts : directed, or cluster with inner="directed": how many starts; 50 by default
    inner, metric : cluster: the method inside each cluster, "pair" by default; "heuristic" or "gain"
    channels : how many physical channels there are; the merged queries are put on them so that clients, who hear all
        that is on a channel they listen to, overhear little. None: as many as merged queries

    Returns
    -------
    QueriesPlan : the sets, their merged queries, and the cost

    Raises
    ------
    InputError : an unknown name, or a parameter that the method does not use

    >>> two = QueryDemand([[[0, 2]], [[1, 3]]], ("price",), names=("a", "b"))
    >>> make(two, km=1, kt=1, ku=0.1).sets
    ((0, 1),)
    >>> make(two, starts=3)
    Traceback (most recent call last):
    narrowcast.errors.InputError: starts must be left out for method 'pair', got 3
    """
    _check_demand(demand)
    refuse_unused("queries", time_limit=time_limit, progress=progress, previous=previous)
    _refuse_unused(method, {"starts": starts, "inner": inner, "metric": metric})
    chosen = algorithm(method, 50 if starts is None else starts, inner or "pair", metric or "heuristic")
    problem = _problem(demand.boxes, Constants(km, kt, ku, ka, per_query, per_object), procedure, size)
    _check_exact(problem, method, inner or "pair")
    given = {"starts": starts, "inner": inner, "metric": metric}
    choices = {name: value for name, value in given.items() if value is not None}
    found = merged_plan(demand, problem, chosen(problem, seed=seed), method, seed, choices)
    return found if channels is None else on_channels(found, channels, seed)


def _check_demand(demand: object) -> None:
    if not isinstance(demand, QueryDemand):
        got = type(demand).__name__
        hint = "It holds boxes and the names of their attributes"
        raise InputError(f"demand must be a QueryDemand, got {got}. {hint}", name="demand", got=got)


def _refuse_unused(method: str, given: Mapping[str, object]) -> None:
    _known("method", method, METHODS)
    uses = {"directed": ("starts",), "cluster": ("inner", "metric")}.get(method, ())
    if method == "cluster" and given["inner"] == "directed":
        uses = (*uses, "starts")
    for name, value in given.items():
        if value is not None and name not in uses:
            raise InputError(f"{name} must be left out for method {method!r}, got {value!r}", name=name, got=value)


def cost(
    boxes: ArrayLike,
    sets: Sequence[Sequence[int]],
    *,
    km: float = KM,
    kt: float = KT,
    ku: float = KU,
    ka: float = 0.0,
    procedure: str | MergeProcedure = "rectangle",
    size: Size = None,
    constants: Constants | None = None,
) -> CostTerms:
    """The cost of any plan, from the definition; a query in several sets is heard in each.

    >>> three = [[[0, 2], [0, 1]], [[0, 1], [0, 2]], [[1, 2], [1, 2]]]
    >>> cost(three, [[0, 1], [2]], km=10, kt=9, ku=4).total
    81.0
    """
    problem = _problem(boxes, constants or Constants(km, kt, ku, ka), procedure, size)
    return CostTerms.of(total_terms(problem, check_cover(sets, problem.n)), problem.constants)


def _check_exact(problem: BoxProblem, method: str, inner: str) -> None:
    """Refuse at once what would end in a set too large for an exact cover: methods that try all queries together."""
    chosen = inner if method == "cluster" else method
    if problem.procedure.name == "exact" and chosen != "pair" and problem.n and too_many_cells(problem.boxes):
        raise InputError(
            f"method {chosen} tries all {problem.n:,} queries in one set, whose exact cover has too many cells",
            name="procedure",
            got="exact",
            hint="use method 'pair', or procedure 'polygon'",
        )


def _problem(boxes: ArrayLike, constants: Constants, procedure: str | MergeProcedure, size: Size) -> BoxProblem:
    sizes = as_sizes(size)
    return BoxProblem(as_boxes(boxes, finite=isinstance(sizes, Area)), constants, as_procedure(procedure), sizes)


def algorithm(method: str, starts: int, inner: str, metric: str) -> Algorithm:
    """The algorithm of a name, with the parameters that are its own."""
    if method == "directed":
        return Directed(starts)
    if method == "cluster":
        _known("inner", inner, INNER)
        return Cluster(Directed(starts) if inner == "directed" else INNER[inner], metric)
    _known("method", method, METHODS)
    return METHODS[method]()  # type: ignore[no-any-return]


def _known(name: str, value: str, allowed: dict[str, object] | dict[str, type] | dict[str, Algorithm]) -> None:
    if value not in allowed:
        raise InputError(
            f"{name} must be one of {', '.join(allowed)}, got {value!r}", name=name, allowed=tuple(allowed), got=value
        )
