"""The entry points: merge queries, and the cost of any plan."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from narrowcast.errors import InputError
from narrowcast.plans.queries.boxes import as_boxes
from narrowcast.plans.queries.constants import KM, KT, KU, Constants
from narrowcast.plans.queries.merged import CostTerms, MergePlan, box_plan, check_cover
from narrowcast.plans.queries.methods.cluster import INNER, Algorithm, Cluster
from narrowcast.plans.queries.methods.directed import Directed
from narrowcast.plans.queries.methods.exhaustive import Exhaustive
from narrowcast.plans.queries.methods.pair import Pair
from narrowcast.plans.queries.methods.partition import Partition
from narrowcast.plans.queries.problem import BoxProblem, total_terms
from narrowcast.plans.queries.procedures import Procedure, as_procedure
from narrowcast.plans.queries.sizes import Area, GridHistogram, PointCounts, SizeFunction, as_sizes

METHODS: dict[str, type] = {
    "partition": Partition,
    "exhaustive": Exhaustive,
    "pair": Pair,
    "directed": Directed,
    "cluster": Cluster,
}

Size = GridHistogram | PointCounts | SizeFunction | None


def merge(
    boxes: ArrayLike,
    method: str = "pair",
    *,
    km: float = KM,
    kt: float = KT,
    ku: float = KU,
    ka: float = 0.0,
    procedure: str | Procedure = "rectangle",
    size: Size = None,
    seed: int = 0,
    starts: int = 50,
    inner: str = "pair",
    metric: str = "heuristic",
    constants: Constants | None = None,
) -> MergePlan:
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
    problem = _problem(boxes, constants or Constants(km, kt, ku, ka), procedure, size)
    return box_plan(problem, chosen(problem, seed=seed), method, seed)


def cost(
    boxes: ArrayLike,
    sets: Sequence[Sequence[int]],
    *,
    km: float = KM,
    kt: float = KT,
    ku: float = KU,
    ka: float = 0.0,
    procedure: str | Procedure = "rectangle",
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


def _problem(boxes: ArrayLike, constants: Constants, procedure: str | Procedure, size: Size) -> BoxProblem:
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
            f"{name} is {value!r}; allowed: {', '.join(allowed)}", name=name, allowed=tuple(allowed), got=value
        )
