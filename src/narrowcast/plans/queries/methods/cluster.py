"""The Clustering Algorithm: first who could ever gain together, then merge inside (Crespo et al., §6.4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from narrowcast.errors import InputError
from narrowcast.plans.queries.kernels.cluster import cluster as cluster_kernel
from narrowcast.plans.queries.methods.directed import Directed
from narrowcast.plans.queries.methods.exhaustive import Exhaustive
from narrowcast.plans.queries.methods.pair import Pair
from narrowcast.plans.queries.methods.partition import Partition
from narrowcast.plans.queries.problem import BoxProblem, MergeProblem, Set, sets_of_labels

METRICS = ("heuristic", "gain")
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
    loss. That test is the paper's `metric="heuristic"`; where K_U is small it puts nearly everything in
    one cluster. `metric="gain"` asks instead whether merging just these two gains, which makes more and
    smaller clusters. Either way a merge across clusters may be missed.
    """

    inner: Algorithm = PAIR
    metric: str = "heuristic"

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise InputError(
                f"metric must be one of {', '.join(METRICS)}, got {self.metric!r}", name="metric", allowed=METRICS
            )

    def __call__(self, problem: MergeProblem, *, seed: int = 0) -> tuple[Set, ...]:
        plan: list[Set] = []
        for members in clusters(problem, self.metric):
            if len(members) == 1:
                plan.append(members)
                continue
            inside = self.inner(problem.subset(members), seed=seed)
            plan.extend(tuple(members[i] for i in part) for part in inside)
        return tuple(sorted(plan))


def clusters(problem: MergeProblem, metric: str = "heuristic") -> tuple[Set, ...]:
    """The clusters themselves, by their first query."""
    if isinstance(problem, BoxProblem) and problem.has_kernel:
        return sets_of_labels(cluster_kernel(*problem.kernel_arguments(), metric == "gain").tolist())
    root = list(range(problem.n))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    for a in range(problem.n):
        for b in range(a):
            first, second = sorted((find(a), find(b)))
            if first != second and worth(problem, a, b, metric) >= 0:
                root[second] = first
    return sets_of_labels([find(i) for i in range(problem.n)])


def worth(problem: MergeProblem, a: int, b: int, metric: str) -> float:
    """What having queries a and b in one set could gain: at most, by the paper's heuristic, or on their own."""
    if metric == "gain":
        return problem.cost((a,)) + problem.cost((b,)) - problem.cost(tuple(sorted((a, b))))
    km, kt, ku = problem.constants.folded
    least = min(problem.terms((a,)).size, problem.terms((b,)).size)
    return km + kt * least - ku * problem.terms(tuple(sorted((a, b)))).irrelevant
