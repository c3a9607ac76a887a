"""The cost of a merge plan, word for word: bounding boxes, unit density, counted slowly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any


def area(box: Any) -> float:
    product = 1.0
    for low, high in box:
        product *= float(high) - float(low)
    return product


def bounding_box(boxes: Any) -> list[tuple[float, float]]:
    return [(min(box[j][0] for box in boxes), max(box[j][1] for box in boxes)) for j in range(len(boxes[0]))]


def plan_cost(boxes: Any, sets: Sequence[Sequence[int]], km: float, kt: float, ku: float, size: Any = area) -> float:
    """K_M·|M| + K_T·Σ size(mrg(M_i)) + K_U·Σ_q (size(mrg of its set) − size(q))."""
    total = 0.0
    for members in sets:
        merged = size(bounding_box([boxes[q] for q in members]))
        total += km + kt * merged
        for q in members:
            total += ku * (merged - size(boxes[q]))
    return total


def partitions(items: list[int]) -> Iterator[list[list[int]]]:
    """Every partition, each once."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for smaller in partitions(rest):
        yield [[first], *smaller]
        for at in range(len(smaller)):
            yield [*smaller[:at], [first, *smaller[at]], *smaller[at + 1 :]]
