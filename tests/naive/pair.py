"""Pair merging as printed: price every pair of sets anew in each round, take the best."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from naive.query_cost import plan_cost


def pair(boxes: Any, km: float, kt: float, ku: float) -> list[list[int]]:
    sets = [[q] for q in range(len(boxes))]
    while True:
        gains = {
            (a, b): plan_cost(boxes, [sets[a], sets[b]], km, kt, ku) - plan_cost(boxes, [sets[a] + sets[b]], km, kt, ku)
            for a, b in combinations(range(len(sets)), 2)
        }
        if not gains or max(gains.values()) <= 1e-12:
            return sorted(sorted(s) for s in sets)
        a, b = max(gains, key=lambda ab: (gains[ab], -ab[0], -ab[1]))
        sets[a] += sets.pop(b)
