"""The best cover by trying every collection of sets."""

from __future__ import annotations

from itertools import chain, combinations
from typing import Any

from naive.query_cost import plan_cost


def exhaustive(boxes: Any, km: float, kt: float, ku: float) -> float:
    queries = range(len(boxes))
    sets = [s for k in range(1, len(boxes) + 1) for s in combinations(queries, k)]
    collections = chain.from_iterable(combinations(sets, k) for k in range(1, len(sets) + 1))
    covers = (c for c in collections if set(chain.from_iterable(c)) == set(queries))
    return min(plan_cost(boxes, cover, km, kt, ku) for cover in covers)
