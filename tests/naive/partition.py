"""The best partition by trying every one."""

from __future__ import annotations

from typing import Any

from naive.query_cost import partitions, plan_cost


def partition(boxes: Any, km: float, kt: float, ku: float) -> float:
    return min(plan_cost(boxes, sets, km, kt, ku) for sets in partitions(list(range(len(boxes)))))
