"""One step of the paper's heuristic (§6): importance flip, else parent-child flip.

Reads the state that `filter_cost.survey` builds. Gains are exact changes of the objective, never
the importance alone. All O(n).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit
from narrowcast.plans.filters.kernels.cost import objective

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

NOTHING, IMPORTANCE_FLIP, PARENT_CHILD_FLIP, ADD, REMOVE = range(5)


class FlipState(NamedTuple):
    """A tree in preorder, its flow, a placement, and what importance is made of."""

    order: Ints  # 0, 1, 2, …: parents first
    parent: Ints
    size: Ints  # of the subtree, which follows its vertex
    can: Bools
    flow: Floats
    weight: Floats
    price: Floats
    chosen: Bools
    tight: Ints  # A(v)
    z: Floats
    Z: Floats  # Σ z(ch)
    C: Floats  # Σ f(ch) · z(ch)


@jit
def importance(s: FlipState) -> Floats:
    """I(v): what a filter at v saves, given the others, less its price."""
    return s.flow[s.tight] * s.Z - s.C - s.price


@jit
def extremes(s: FlipState) -> tuple[int, int]:
    """(least important with a filter, most important able one without), −1 where there is none."""
    I = importance(s)
    least, most = -1, -1
    for v in range(I.size):
        if s.chosen[v]:
            if least < 0 or I[v] < I[least]:
                least = v
        elif s.can[v] and (most < 0 or I[v] > I[most]):
            most = v
    return least, most


@jit
def parent_child(s: FlipState) -> tuple[int, int, float]:
    """(from, to, gain) of the best move of one filter along one link, or (−1, −1, 0).

    Up, from x to its parent y: y's children get their own flow instead of f(A(y)), x's children
    f(x) instead of theirs. Down, from y to x: y's children get f(A(y)), of x's subtree only the
    link into x, and x's children their own flow.
    """
    best, source, target = 0.0, -1, -1
    for x in range(s.parent.size):
        y = s.parent[x]
        if y < 0 or s.chosen[x] == s.chosen[y] or not (s.can[x] and s.can[y]):
            continue
        arriving = s.flow[s.tight[y]]
        own = s.flow[x] * s.Z[x] - s.C[x]
        if s.chosen[x]:
            gain = arriving * s.Z[y] - s.C[y] - own + s.price[x] - s.price[y]
        else:
            gain = own - (arriving * s.Z[y] - s.C[y]) + (arriving - s.flow[x]) * s.Z[x] + s.price[y] - s.price[x]
        if gain > best:
            best = gain
            source, target = (x, y) if s.chosen[x] else (y, x)
    return source, target, best


@jit
def flip_gain(s: FlipState, u: int, v: int) -> float:
    """By how much the objective falls when the filter at u moves to v."""
    chosen = s.chosen.copy()
    before = objective(s.order, s.parent, s.flow, s.weight, s.price, chosen)
    chosen[u], chosen[v] = False, True
    return before - objective(s.order, s.parent, s.flow, s.weight, s.price, chosen)


@jit
def step(s: FlipState, least_gain: float, may_add: bool, may_remove: bool) -> tuple[int, int, int, float]:
    """(kind, from, to, gain) of the next move that gains more than `least_gain`.

    First the importance flip and, where allowed, adding the most or removing the least important;
    the best of these. Else the best parent-child flip. Else nothing.
    """
    I = importance(s)
    least, most = extremes(s)
    kind, source, target, best = NOTHING, -1, -1, least_gain
    if least >= 0 and most >= 0:
        gain = flip_gain(s, least, most)
        if gain > best:
            kind, source, target, best = IMPORTANCE_FLIP, least, most, gain
    if may_add and most >= 0 and I[most] > best:
        kind, source, target, best = ADD, -1, most, I[most]
    if may_remove and least >= 0 and -I[least] > best:
        kind, source, target, best = REMOVE, least, -1, -I[least]
    if kind == NOTHING:
        u, v, gain = parent_child(s)
        if gain > best:
            kind, source, target, best = PARENT_CHILD_FLIP, u, v, gain
    return kind, source, target, best if kind != NOTHING else 0.0
