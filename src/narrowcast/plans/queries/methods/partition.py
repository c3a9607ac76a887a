"""The Partition Algorithm: the best of all partitions (Crespo et al., §6.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from narrowcast.errors import UnsupportedError
from narrowcast.plans.queries.boxes import Floats, lows_highs
from narrowcast.plans.queries.kernels.partition import partition as best_partition
from narrowcast.plans.queries.kernels.partition import subset_boxes
from narrowcast.plans.queries.problem import BoxProblem, MergeProblem, Set
from narrowcast.plans.queries.procedures import Rectangle

MAX_QUERIES = 22
MAX_QUERIES_PRICED_ONE_BY_ONE = 14
CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Partition:
    """Exact: no plan that puts each query in one set is cheaper.

    Dynamic programming over subsets, O(3^n) where trying all partitions is O(n^n), and far less when few
    sets can pay: 22 queries of the paper's study in a second or two. At most 22 bounding boxes; 14 queries
    under other procedures, whose 2^n sets are priced one by one.
    """

    def __call__(self, problem: MergeProblem, *, seed: int = 0) -> tuple[Set, ...]:
        fast = isinstance(problem, BoxProblem) and isinstance(problem.procedure, Rectangle)
        limit = MAX_QUERIES if fast else MAX_QUERIES_PRICED_ONE_BY_ONE
        if problem.n > limit:
            raise UnsupportedError(
                f"partition is exact up to {limit} queries here, got {problem.n}; use method 'directed' or 'cluster'",
                works=("directed", "pair", "cluster"),
            )
        if problem.n == 0:
            return ()
        costs = _box_costs(problem) if isinstance(problem, BoxProblem) and fast else _all_costs(problem)
        _, masks = best_partition(costs, problem.n)
        return tuple(_members(int(mask), problem.n) for mask in masks)


def _members(mask: int, n: int) -> Set:
    return tuple(i for i in range(n) if mask >> i & 1)


def _all_costs(problem: MergeProblem) -> Floats:
    return np.array([0.0, *(problem.cost(_members(mask, problem.n)) for mask in range(1, 1 << problem.n))])


def _box_costs(problem: BoxProblem) -> Floats:
    """The cost of every subset by bit mask, its sizes in one go."""
    lows, highs = subset_boxes(*lows_highs(problem.boxes))
    sizes = np.zeros(len(lows))
    for start in range(1, len(lows), CHUNK):
        part = slice(start, start + CHUNK)
        sizes[part] = problem.size(np.stack([lows[part], highs[part]], axis=-1))
    counts, own = np.zeros(1), np.zeros(1)
    for alone in problem.alone:
        counts, own = np.concatenate([counts, counts + 1]), np.concatenate([own, own + alone])
    km, kt, ku = problem.constants.folded
    costs: Floats = km + kt * sizes + ku * (counts * sizes - own)
    return costs
