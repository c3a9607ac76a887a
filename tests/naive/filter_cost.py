"""Traffic, delay and importance by definition, one vertex at a time."""

from __future__ import annotations

import narrowcast as nc


def tight_ancestor(tree: nc.Tree, P: set[int], v: int) -> int:
    """A(v): v itself if its parent has a filter or v is the root, else its parent's."""
    while tree.parents[v] >= 0 and int(tree.parents[v]) not in P:
        v = int(tree.parents[v])
    return v


def traffic(tree: nc.Tree, f, P: set[int]) -> float:
    return sum(tree.link_cost[v] * f[tight_ancestor(tree, P, v)] for v in range(tree.n) if tree.parents[v] >= 0)


def delay(tree: nc.Tree, f, P: set[int], F: float, c: float) -> float:
    """Link by link and filter by filter on the way to every leaf."""
    total = 0.0
    for leaf in tree.leaves.tolist():
        one, v = 0.0, leaf
        while tree.parents[v] >= 0:
            one += c * f[tight_ancestor(tree, P, v)]
            v = int(tree.parents[v])
            one += F if v in P else 0.0
        total += tree.users[leaf] * one
    return total


def importance(tree: nc.Tree, f, P: set[int]) -> list[float]:
    """The paper's I(v) with z by its recurrence (link cost 1 there)."""
    offsets, below = tree.children

    def children(v: int) -> list[int]:
        return below[offsets[v] : offsets[v + 1]].tolist()

    def z(x: int) -> float:
        return tree.link_cost[x] + (0 if x in P else sum(z(c) for c in children(x)))

    return [sum((f[tight_ancestor(tree, P, v)] - f[c]) * z(c) for c in children(v)) for v in range(tree.n)]
