"""Merging queries of any kind: profiles, whose merged query is their disjunction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from narrowcast.errors import InputError
from narrowcast.plans.queries.constants import KM, KT, KU, Constants
from narrowcast.plans.queries.plan import algorithm
from narrowcast.plans.queries.problem import CostTerms, Set, SizedProblem, cost_apart, total_terms
from narrowcast.profiles import Matcher, Profile

ProfileSize = Callable[[Profile], float]


@dataclass(frozen=True, slots=True)
class ProfilePlan:
    """Sets of queries and the merged query of each, which covers every member."""

    sets: tuple[Set, ...]
    profiles: tuple[Profile, ...]
    cost: float
    terms: CostTerms
    baseline: float
    method: str


def merge_profiles(
    profiles: Sequence[Profile | str],
    method: str = "pair",
    *,
    size: ProfileSize | pa.Table,
    km: float = KM,
    kt: float = KT,
    ku: float = KU,
    ka: float = 0.0,
    seed: int = 0,
    starts: int = 50,
    inner: str = "pair",
    metric: str = "heuristic",
    constants: Constants | None = None,
) -> ProfilePlan:
    """Answer many overlapping queries by few; any profile is a query, not only a range.

    The merged query of a set is the disjunction of its members, so nothing is sent that nobody wants, and
    the methods are those of `merge`. `size` is a function of a profile, or a table of which every profile
    wants some rows: its size is then how many. O(n²) sizes for `pair`; at most some hundreds of queries.

    >>> table = pa.table({"symbol": ["IBM", "IBM", "GE", "GE", "X"], "price": [1, 2, 3, 4, 5]})
    >>> plan = merge_profiles(["symbol = 'IBM'", "price < 3", "price = 5"], size=table, km=1, kt=1, ku=1)
    >>> plan.sets, [str(p) for p in plan.profiles]
    (((0, 1), (2,)), ["symbol = 'IBM' OR price < 3", 'price = 5'])
    """
    parsed = [Profile.parse(profile) if isinstance(profile, str) else profile for profile in profiles]
    union = _by_table(parsed, size) if isinstance(size, pa.Table) else _by_function(parsed, size)
    alone = np.array([union((i,)) for i in range(len(parsed))], np.float64)
    problem = SizedProblem(alone, constants or Constants(km, kt, ku, ka), union)
    sets = algorithm(method, starts, inner, metric)(problem, seed=seed)
    terms = CostTerms.of(total_terms(problem, sets), problem.constants)
    merged = tuple(Profile.any_of(parsed[i] for i in members) for members in sets)
    return ProfilePlan(sets, merged, terms.total, terms, cost_apart(problem), method)


def _by_function(profiles: Sequence[Profile], size: ProfileSize) -> Callable[[Set], float]:
    if not callable(size):
        raise InputError(f"size must be a function of a profile or a table, got {type(size).__name__}", name="size")

    def union(members: Set) -> float:
        value = float(size(Profile.any_of(profiles[i] for i in members)))
        if not (np.isfinite(value) and value >= 0):
            raise InputError(f"size must return a finite number, zero or more, got {value}", name="size", got=value)
        return value

    return union


def _by_table(profiles: Sequence[Profile], table: pa.Table) -> Callable[[Set], float]:
    """Rows wanted by any of the members: one bit per row and profile, matched once."""
    rows, at = Matcher(profiles).match(table)
    wanted = np.zeros((len(profiles), table.num_rows), np.bool_)
    wanted[at, rows] = True
    bits: NDArray[np.uint8] = np.packbits(wanted, axis=1)

    def union(members: Set) -> float:
        return float(np.bitwise_count(np.bitwise_or.reduce(bits[list(members)], axis=0)).sum())

    return union
