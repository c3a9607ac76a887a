"""The Directed Search Algorithm: merges and splits from many starts (Crespo et al., §6.3)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from narrowcast.errors import InputError, UnsupportedError
from narrowcast.plans.queries.boxes import Floats, Ints
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
    """The same descent for queries of any kind. What each two sets gain is kept, so a step prices what is new."""
    sets = sorted(start)
    rounding = 1e-12 * _total(problem, start)
    apart = np.array([problem.cost(members) for members in sets])
    merges = np.full((len(sets), len(sets)), -np.inf)  # of each set with those after it
    for at in range(len(sets)):
        merges[at, at + 1 :] = _merge_gains(problem, sets[at], sets[at + 1 :], apart[at], apart[at + 1 :])
    splits = [_best_split(problem, members) for members in sets]
    while True:
        # In the order of the sets, a set's merges before its split; of equal gains the first.
        rows = merges.max(axis=1, initial=-np.inf)
        gains = np.stack([rows, np.array([gain for gain, _ in splits])], axis=1).ravel()
        best = int(gains.argmax()) if len(sets) else 0
        if not len(sets) or gains[best] <= rounding:
            return tuple(sets)
        at, split = divmod(best, 2)
        if split:
            query = splits[at][1]
            old, new = [at], [tuple(i for i in sets[at] if i != query), (query,)]
        else:
            other = int(merges[at].argmax())
            old, new = [at, other], [united(sets[at], sets[other])]
        stay = np.ones(len(sets), np.bool_)
        stay[old] = False
        sets, splits = (
            [s for s, k in zip(sets, stay, strict=True) if k],
            [s for s, k in zip(splits, stay, strict=True) if k],
        )
        apart, merges = apart[stay], merges[np.ix_(stay, stay)]
        for members in new:
            sets, apart, merges, splits = _with_set(problem, members, sets, apart, merges, splits)


def _with_set(
    problem: MergeProblem, members: Set, sets: list[Set], apart: Floats, merges: Floats, splits: list[tuple[float, int]]
) -> tuple[list[Set], Floats, Floats, list[tuple[float, int]]]:
    """One set more, in its place among the sorted ones, and what merging it with each gains."""
    at, own = bisect_left(sets, members), problem.cost(members)
    gains = _merge_gains(problem, members, sets, own, apart)
    merges = np.insert(np.insert(merges, at, -np.inf, axis=0), at, -np.inf, axis=1)
    merges[:at, at], merges[at, at + 1 :] = gains[:at], gains[at:]
    splits = [*splits[:at], _best_split(problem, members), *splits[at:]]
    return [*sets[:at], members, *sets[at:]], np.insert(apart, at, own), merges, splits


def _merge_gains(problem: MergeProblem, members: Set, others: list[Set], own: float, apart: Floats) -> Floats:
    if not others:
        return np.zeros(0)
    gains: Floats = own + apart - problem.joined(members, others)
    return gains


def _best_split(problem: MergeProblem, members: Set) -> tuple[float, int]:
    """The most that taking one query out gains, and which."""
    best, query = -np.inf, -1
    if len(members) == 1:
        return best, query
    for q in members:
        rest = tuple(i for i in members if i != q)
        gain = problem.cost(members) - problem.cost(rest) - problem.cost((q,))
        if gain > best:
            best, query = gain, q
    return best, query
