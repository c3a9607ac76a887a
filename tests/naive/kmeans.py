"""K-means of the paper, point by point, with sets: the union of a cluster is made anew each time."""

from __future__ import annotations

from typing import Any


def distance(k: int, c: int, audiences: list[set[int]], rates: Any, cluster_of: list[int]) -> float:
    """d(F_k, S_c) with k taken out of c."""
    others = [j for j, other in enumerate(cluster_of) if other == c and j != k]
    C = set().union(*(audiences[j] for j in others))
    theta = sum(rates[j] for j in others)
    return float(rates[k] * len(C - audiences[k]) + theta * len(audiences[k] - C))


def kmeans(audiences: list[set[int]], rates: Any, clusters: int, start: list[int], order: list[int]) -> list[list[int]]:
    """The state after every move, the start first."""
    cluster_of = list(start)
    states = [list(cluster_of)]
    moved = True
    while moved:
        moved = False
        for k in order:
            here = distance(k, cluster_of[k], audiences, rates, cluster_of)
            found = [distance(k, c, audiences, rates, cluster_of) for c in range(clusters)]
            best = found.index(min(found))
            if found[best] < here:
                cluster_of[k] = best
                states.append(list(cluster_of))
                moved = True
    return states
