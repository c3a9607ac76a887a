"""The Directed Search Algorithm: merges and splits from many starts (Crespo et al., §6.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from narrowcast.errors import InputError, UnsupportedError
from narrowcast.plans.queries.boxes import Ints
from narrowcast.plans.queries.kernels.directed import directed as descend_kernel
from narrowcast.plans.queries.methods.pair import Pair
from narrowcast.plans.queries.problem import BoxProblem, MergeProblem, Set, sets_of_labels, total_terms, united

MAX_QUERIES = 5_000


@dataclass(frozen=True, slots=True)
class Directed:
    """From each start take the best of all merges and single-query splits until none gains; keep the best end.

    The starts are pair merging's plan, all together, all apart, and random partitions, `starts` in all.
    Descending from pair merging's plan makes it never dearer than pair merging. A start takes O(n²)
    memory and O(n) or so a step; the paper uses 50 starts. At most 5,000 queries; cluster first for more.
    """

    starts: int = 50

    def __post_init__(self) -> None:
        if not isinstance(self.starts, (int, np.integer)) or self.starts < 1:
            raise InputError(f"starts must be a whole number, 1 or more, got {self.starts!r}", name="starts")

    def __call__(self, problem: MergeProblem, *, seed: int = 0) -> tuple[Set, ...]:
        if problem.n > MAX_QUERIES:
            raise UnsupportedError(
                f"directed takes at most {MAX_QUERIES} queries, got {problem.n}; use method 'cluster' with inner",
                works=("pair", "cluster"),
            )
        pair = Pair()(problem, seed=seed)
        best, least = pair, _total(problem, pair)
        for end, cost in ends(problem, pair, self.starts, seed):
            if cost < least * (1 - 1e-12):
                best, least = end, cost
        return best


def ends(
    problem: MergeProblem, pair: tuple[Set, ...], starts: int, seed: int
) -> Iterator[tuple[tuple[Set, ...], float]]:
    """Where the descent from each start ends, and its cost. Fewer starts are the first of more."""
    for start in _starts(problem.n, pair, starts, seed):
        yield _descend(problem, start)


def _total(problem: MergeProblem, sets: tuple[Set, ...]) -> float:
    return total_terms(problem, sets).priced(problem.constants)


def _starts(n: int, pair: tuple[Set, ...], starts: int, seed: int) -> Iterator[Ints]:
    """A label below n for each query, per start. The number of sets of a random start is itself random."""
    labels = np.zeros(n, np.int64)
    for at, members in enumerate(pair):
        labels[list(members)] = at
    fixed = [labels, np.zeros(n, np.int64), np.arange(n)]
    yield from fixed[:starts]
    rng = np.random.default_rng(seed)
    for _ in range(starts - len(fixed)):
        yield rng.integers(0, rng.integers(1, n, endpoint=True) if n else 1, n)


def _descend(problem: MergeProblem, start: Ints) -> tuple[tuple[Set, ...], float]:
    if isinstance(problem, BoxProblem) and problem.has_kernel:
        labels, cost = descend_kernel(*problem.kernel_arguments(), start)
        return sets_of_labels(labels.tolist()), cost
    end = descend(problem, sets_of_labels(start.tolist()))
    return end, _total(problem, end)


def descend(problem: MergeProblem, start: tuple[Set, ...]) -> tuple[Set, ...]:
    """The same descent for queries of any kind. Prices are remembered, so a step costs what is new."""
    sets = list(start)
    rounding = 1e-12 * _total(problem, start)
    merges: dict[tuple[Set, Set], float] = {}
    splits: dict[Set, tuple[float, int]] = {}
    while True:
        gain = rounding
        old: tuple[Set, ...] = ()
        new: tuple[Set, ...] = ()
        for at, a in enumerate(sets):
            rest = [b for b in sets[at + 1 :] if (a, b) not in merges]
            if rest:
                apart = problem.cost(a) + np.array([problem.cost(b) for b in rest])
                merges.update(zip([(a, b) for b in rest], (apart - problem.joined(a, rest)).tolist(), strict=True))
            for b in sets[at + 1 :]:
                if merges[a, b] > gain:
                    gain, old, new = merges[a, b], (a, b), (united(a, b),)
            if len(a) > 1:
                if a not in splits:
                    splits[a] = _best_split(problem, a)
                if splits[a][0] > gain:
                    q = splits[a][1]
                    gain, old, new = splits[a][0], (a,), (tuple(i for i in a if i != q), (q,))
        if not old:
            return tuple(sorted(sets))
        sets = sorted([members for members in sets if members not in old] + list(new))


def _best_split(problem: MergeProblem, members: Set) -> tuple[float, int]:
    """The most that taking one query out gains, and which."""
    best, query = -np.inf, -1
    for q in members:
        rest = tuple(i for i in members if i != q)
        gain = problem.cost(members) - problem.cost(rest) - problem.cost((q,))
        if gain > best:
            best, query = gain, q
    return best, query
