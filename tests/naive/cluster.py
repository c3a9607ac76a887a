"""Clusters by the paper's test on every pair, and union-find."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from naive.query_cost import area, bounding_box


def cluster(boxes: Any, km: float, kt: float, ku: float, metric: str = "heuristic") -> list[list[int]]:
    root = list(range(len(boxes)))
    for a, b in combinations(range(len(boxes)), 2):
        s1, s2, s12 = area(boxes[a]), area(boxes[b]), area(bounding_box([boxes[a], boxes[b]]))
        shared = min(s1, s2) if metric == "heuristic" else s1 + s2 - s12
        if not km + kt * shared - ku * (2 * s12 - s1 - s2) < 0:
            old, new = root[b], root[a]
            root = [new if r == old else r for r in root]
    return sorted([q for q in range(len(boxes)) if root[q] == r] for r in set(root))
