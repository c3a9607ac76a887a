"""The Clustering Algorithm: first who could ever gain together, then merge inside (Crespo et al., §6.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from narrowcast.kernels.cluster import cluster as cluster_kernel
from narrowcast.queries.directed import Directed
from narrowcast.queries.exhaustive import Exhaustive
from narrowcast.queries.pair import Pair
from narrowcast.queries.partition import Partition
from narrowcast.queries.problem import BoxProblem, Problem, Set, sets_of_labels

Algorithm = Callable[..., tuple[Set, ...]]
PAIR = Pair()
INNER: dict[str, Algorithm] = {
    "pair": PAIR,
    "directed": Directed(),
    "partition": Partition(),
    "exhaustive": Exhaustive(),
}


@dataclass(frozen=True, slots=True)
class Cluster:
    """Two queries share a cluster unless K_M + K_T·min(S_1, S_2) − K_U·(2·S_12 − S_1 − S_2) < 0.

    Clusters are the components of that relation, found through a tree without trying all pairs; `inner`
    then merges each on its own. Good for many queries: much faster where clusters are small, at little
    loss. The test is the paper's heuristic one, so a merge across clusters may be missed.
    """

    inner: Algorithm = PAIR

    def __call__(self, problem: Problem, *, seed: int = 0) -> tuple[Set, ...]:
        plan: list[Set] = []
        for members in clusters(problem):
            if len(members) == 1:
                plan.append(members)
                continue
            inside = self.inner(problem.subset(members), seed=seed)
            plan.extend(tuple(members[i] for i in part) for part in inside)
        return tuple(sorted(plan))


def clusters(problem: Problem) -> tuple[Set, ...]:
    """The clusters themselves, by their first query."""
    if isinstance(problem, BoxProblem) and problem.has_kernel:
        return sets_of_labels(cluster_kernel(*problem.kernel_arguments()).tolist())
    root = list(range(problem.n))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    for a in range(problem.n):
        for b in range(a):
            first, second = sorted((find(a), find(b)))
            if first != second and worth(problem, a, b) >= 0:
                root[second] = first
    return sets_of_labels([find(i) for i in range(problem.n)])


def worth(problem: Problem, a: int, b: int) -> float:
    """The most that having queries a and b in one set could gain, by the paper's heuristic."""
    km, kt, ku = problem.constants.folded
    least = min(problem.terms((a,)).size, problem.terms((b,)).size)
    return km + kt * least - ku * problem.terms(tuple(sorted((a, b)))).irrelevant
