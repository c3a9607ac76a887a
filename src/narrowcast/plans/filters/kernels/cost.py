"""What a placement of filters costs, and the state from which heuristics read it.

Letters as in the paper (content-based multicast, §3-6): f flow, A(v) lowest tight ancestor, z the
weight of the links that a filter above would relieve. One form serves traffic and delay:
`weight[v]` is what one unit of flow on the link into v costs, `price[v]` what a filter at v costs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@jit
def tight_ancestors(order: Ints, parent: Ints, chosen: Bools) -> Ints:
    """A(v) for every vertex: itself under a filter or at the root, else its parent's."""
    tight = np.empty(order.size, np.int64)
    tight[order[0]] = order[0]
    for i in range(1, order.size):
        v = order[i]
        u = parent[v]
        tight[v] = v if chosen[u] else tight[u]
    return tight


@jit
def objective(order: Ints, parent: Ints, flow: Floats, weight: Floats, price: Floats, chosen: Bools) -> float:
    """Sum of weight · f(A(v)) over the links, plus the price of each filter. O(n)."""
    tight = tight_ancestors(order, parent, chosen)
    total = 0.0
    for i in range(order.size):
        v = order[i]
        if i > 0:
            total += weight[v] * flow[tight[v]]
        if chosen[v]:
            total += price[v]
    return total


@jit
def below(order: Ints, parent: Ints, amount: Floats) -> Floats:
    """The sum of an amount over each subtree, e.g. s(v), the users below v."""
    total = amount.copy()
    for i in range(order.size - 1, 0, -1):
        total[parent[order[i]]] += total[order[i]]
    return total


@jit
def first_rise(parent: Ints, flow: Floats, slack: float) -> int:
    """The first vertex that wants more than its parent (by more than a relative slack), or −1."""
    for v in range(parent.size):
        if parent[v] >= 0 and flow[v] > flow[parent[v]] * (1.0 + slack):
            return v
    return -1


@jit
def survey(
    order: Ints, parent: Ints, flow: Floats, weight: Floats, chosen: Bools
) -> tuple[Ints, Floats, Floats, Floats]:
    """(A, z, Z, C) with z(x) = weight(x), plus Σ z(ch) without a filter at x; Z = Σ z(ch); C = Σ f(ch)·z(ch).

    The importance of v is then f(A(v))·Z(v) − C(v) − price(v): exactly what a filter there saves.
    """
    n = order.size
    tight = tight_ancestors(order, parent, chosen)
    z = np.zeros(n)
    Z = np.zeros(n)
    C = np.zeros(n)
    for i in range(n - 1, -1, -1):
        v = order[i]
        z[v] = (weight[v] if i > 0 else 0.0) + (0.0 if chosen[v] else Z[v])
        if i > 0:
            u = parent[v]
            Z[u] += z[v]
            C[u] += flow[v] * z[v]
    return tight, z, Z, C
