"""f(v) as the size of a union of sets."""

from __future__ import annotations

import narrowcast as nc


def flow_from_demand(tree: nc.Tree, wanted: list[set[int]], size) -> list[float]:
    union = [set(items) for items in wanted]
    for v in reversed(tree.order.tolist()):
        if tree.parents[v] >= 0:
            union[tree.parents[v]] |= union[v]
    return [sum(size[i] for i in sorted(items)) for items in union]
