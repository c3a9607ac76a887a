"""The Pair Merging Algorithm: greedy, best gain first (Crespo et al., §6.2)."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from narrowcast.errors import InputError
from narrowcast.plans.queries.kernels.pair import pair as pair_kernel
from narrowcast.plans.queries.problem import BoxProblem, MergeProblem, Set, sets_of_labels, united

CANDIDATES = ("near", "all")


@dataclass(frozen=True, slots=True)
class Pair:
    """Merge the two sets that gain most, until no two gain.

    Fast and close to the best plan, but misses sets of three that gain only together. With bounding
    boxes and sizes that grow with the box, `candidates="near"` finds the best partner of a set by branch
    and bound over a tree: the same plan as `"all"`, in near-linear time when queries are spatially local.
    Under other procedures or sizes of your own all pairs are priced, O(n²).
    """

    candidates: str = "near"

    def __post_init__(self) -> None:
        if self.candidates not in CANDIDATES:
            raise InputError(
                f"candidates must be one of near, all, got {self.candidates!r}", name="candidates", allowed=CANDIDATES
            )

    def __call__(self, problem: MergeProblem, *, seed: int = 0) -> tuple[Set, ...]:
        if isinstance(problem, BoxProblem) and problem.has_kernel:
            return sets_of_labels(pair_kernel(*problem.kernel_arguments(), self.candidates == "near").tolist())
        return greedy(problem, [(i,) for i in range(problem.n)])


def greedy(problem: MergeProblem, start: Sequence[Set]) -> tuple[Set, ...]:
    """Pair merging from any plan, whatever the queries are. The heap is the paper's profit table."""
    sets = dict(enumerate(start))
    heap: list[tuple[float, int, int]] = []
    for name in list(sets)[1:]:
        _offer(problem, sets, name, [other for other in sets if other < name], heap)
    heapq.heapify(heap)
    fresh = len(sets)
    while heap:
        _, a, b = heapq.heappop(heap)
        if a not in sets or b not in sets:
            continue
        merged = united(sets.pop(a), sets.pop(b))
        others = list(sets)
        sets[fresh] = merged
        added: list[tuple[float, int, int]] = []
        _offer(problem, sets, fresh, others, added)
        for entry in added:
            heapq.heappush(heap, entry)
        fresh += 1
    return tuple(sorted(sets.values()))


def _offer(
    problem: MergeProblem, sets: dict[int, Set], name: int, others: list[int], heap: list[tuple[float, int, int]]
) -> None:
    """Put every pair of set `name` that gains on the heap."""
    if not others:
        return
    apart = problem.cost(sets[name]) + np.array([problem.cost(sets[other]) for other in others])
    gains = apart - problem.joined(sets[name], [sets[other] for other in others])
    heap.extend((-float(gains[at]), others[at], name) for at in np.flatnonzero(gains > 1e-12 * apart))
