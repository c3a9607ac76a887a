"""Remove filters one by one, each time the one whose loss is least."""

from __future__ import annotations

import narrowcast as nc
from naive.filter_cost import traffic


def trim(tree: nc.Tree, f, P: set[int], floor: int) -> list[float]:
    """The traffic after each removal."""
    values = []
    while len(P) > floor:
        P = min((P - {v} for v in sorted(P)), key=lambda Q: traffic(tree, f, Q))
        values.append(traffic(tree, f, P))
    return values
