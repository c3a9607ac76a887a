"""The Exhaustive Algorithm: the best of all covers (Crespo et al., §6.1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from narrowcast.errors import UnsupportedError
from narrowcast.plans.queries.methods.partition import MAX_QUERIES_PRICED_ONE_BY_ONE
from narrowcast.plans.queries.problem import MergeProblem, Set

MAX_QUERIES = 4


@dataclass(frozen=True, slots=True)
class Exhaustive:
    """Every collection of sets that covers the queries, also those that answer a query twice.

    A query in several sets is heard in each. With sizes that grow with the box no cover beats the best
    partition; with sizes of your own one may. There are 2^(2^n − 1) collections: at most 4 queries.
    """

    def __call__(self, problem: MergeProblem, *, seed: int = 0) -> tuple[Set, ...]:
        n = problem.n
        if n > MAX_QUERIES:
            works: tuple[str, ...] = ("directed", "pair", "cluster")
            if n <= MAX_QUERIES_PRICED_ONE_BY_ONE:
                works = ("partition", *works)
            asked = f"exhaustive takes at most {MAX_QUERIES} queries, got {n}; use method {works[0]!r}"
            raise UnsupportedError(asked, works=works)
        if n == 0:
            return ()
        sets = [tuple(i for i in range(n) if mask >> i & 1) for mask in range(1, 1 << n)]
        cost, covered, used = np.zeros(1), np.zeros(1, np.int64), np.zeros(1, np.int64)
        for at, members in enumerate(sets):  # every collection without this set, then with it
            cost = np.concatenate([cost, cost + problem.cost(members)])
            covered = np.concatenate([covered, covered | (at + 1)])
            used = np.concatenate([used, used + 1])
        cost[covered != (1 << n) - 1] = np.inf
        # Of equal costs the one with the fewest sets.
        best = int(np.lexsort((used, cost))[0])
        return tuple(sorted(members for at, members in enumerate(sets) if best >> at & 1))
