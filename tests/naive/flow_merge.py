"""Flow-based merging with sets: every pair priced before every merge."""

from __future__ import annotations

from itertools import combinations
from typing import Any


def flow_merge(audiences: list[set[int]], rates: Any, clusters: int) -> float:
    """Σ θ|C| where it ends."""
    parts = [(float(rate), set(audience)) for rate, audience in zip(rates, audiences, strict=True)]
    while len(parts) > clusters:
        a, b = min(combinations(range(len(parts)), 2), key=lambda ab: _added(parts[ab[0]], parts[ab[1]]))
        joined = (parts[a][0] + parts[b][0], parts[a][1] | parts[b][1])
        parts = [part for i, part in enumerate(parts) if i not in (a, b)] + [joined]
    return sum(theta * len(users) for theta, users in parts)


def _added(one: tuple[float, set[int]], two: tuple[float, set[int]]) -> float:
    return one[0] * len(two[1] - one[1]) + two[0] * len(one[1] - two[1])
