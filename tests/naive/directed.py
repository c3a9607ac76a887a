"""One descent of directed search as described: every merge and every single-query split, the best of all."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from naive.query_cost import plan_cost


def neighbours(sets: list[list[int]]) -> list[list[list[int]]]:
    found = []
    for a, b in combinations(range(len(sets)), 2):
        rest = [s for i, s in enumerate(sets) if i not in (a, b)]
        found.append([*rest, sets[a] + sets[b]])
    for at, members in enumerate(sets):
        if len(members) > 1:
            rest = [s for i, s in enumerate(sets) if i != at]
            found.extend([*rest, [q], [p for p in members if p != q]] for q in members)
    return found


def descend(boxes: Any, sets: list[list[int]], km: float, kt: float, ku: float) -> list[list[int]]:
    cost = plan_cost(boxes, sets, km, kt, ku)
    while True:
        best = min(neighbours(sets), key=lambda s: plan_cost(boxes, s, km, kt, ku), default=sets)
        least = plan_cost(boxes, best, km, kt, ku)
        if least >= cost - 1e-11 * cost:
            return sorted(sorted(s) for s in sets)
        sets, cost = best, least
