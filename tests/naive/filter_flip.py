"""One batch of the heuristic, every gain by computing the objective twice."""

from __future__ import annotations

from collections.abc import Callable

import narrowcast as nc


def improve_once(
    tree: nc.Tree,
    P: set[int],
    value: Callable[[set[int]], float],
    I: Callable[[set[int]], list[float]],
    fee: float,
    free: bool,
) -> set[int]:
    """The placement after at most one move. `free`: filters may be added and removed (delay)."""
    now, importance = value(P), I(P)
    without = [v for v in range(tree.n) if tree.can_filter[v] and v not in P]
    with_filter = sorted(P)
    least = min(with_filter, key=lambda v: importance[v], default=None)
    most = max(without, key=lambda v: importance[v], default=None)
    first = []
    if least is not None and most is not None:
        first.append((P - {least}) | {most})
    if free and most is not None:
        first.append(P | {most})
    if free and least is not None:
        first.append(P - {least})
    second = []
    for x in range(tree.n):
        y = int(tree.parents[x])
        if y >= 0 and (x in P) != (y in P) and tree.can_filter[x] and tree.can_filter[y]:
            second.append((P - {x, y}) | ({y} if x in P else {x}))
    for candidates in (first, second):
        best = min(candidates, key=value, default=P)
        if now - value(best) > max(fee, 1e-12 * now):
            return best
    return P
