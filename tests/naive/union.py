"""f(v) by its definition: collect the leaves below a vertex, unite what they want, add up the sizes."""

from __future__ import annotations

from collections.abc import Sequence


def flow(parents: Sequence[int], wants: dict[int, set[int]], sizes: Sequence[float]) -> list[float]:
    """`wants` holds the items of each leaf."""
    result = []
    for v in range(len(parents)):
        below = {item for leaf, items in wants.items() if _is_below(parents, leaf, v) for item in items}
        result.append(sum(sizes[item] for item in below))
    return result


def _is_below(parents: Sequence[int], leaf: int, v: int) -> bool:
    while leaf != v and leaf >= 0:
        leaf = parents[leaf]
    return leaf == v
