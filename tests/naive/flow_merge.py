"""Flow-based merging with sets: what the cheapest merge of any two clusters would add."""

from __future__ import annotations

from itertools import combinations
from typing import Any


def cheapest_merge(audiences: list[set[int]], rates: Any, cluster_of: list[int]) -> float:
    """By how much Σ θ|C| grows with the best merge, every pair of clusters priced."""
    parts: dict[int, tuple[float, set[int]]] = {}
    for audience, rate, cluster in zip(audiences, rates, cluster_of, strict=True):
        theta, users = parts.get(cluster, (0.0, set()))
        parts[cluster] = theta + float(rate), users | audience
    return min(_added(one, two) for one, two in combinations(parts.values(), 2))


def _added(one: tuple[float, set[int]], two: tuple[float, set[int]]) -> float:
    return one[0] * len(two[1] - one[1]) + two[0] * len(one[1] - two[1])
