"""Keep the heuristic's state while flows and filters change: only what changed is touched.

z and Z depend on the filters alone, so a new flow at v changes C of its parent and, if v is
tight, the total. A filter that comes or goes changes z on the way up to the next filter, and A on
the links it relieves.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from narrowcast.kernels._jit import jit
from narrowcast.kernels.filter_flip import State

Ints = NDArray[np.int64]


@jit
def shift_flow(s: State, v: int, by: float) -> float:
    """Change f(v); returns the change of the objective. O(1)."""
    s.flow[v] += by
    if s.parent[v] >= 0:
        s.C[s.parent[v]] += by * s.z[v]
    return by * s.z[v] if s.tight[v] == v else 0.0


@jit
def toggle(s: State, offsets: Ints, children: Ints, v: int) -> float:
    """Put a filter at v or take it away; returns the change of the objective.

    O(vertices between v and the next filters, above and below).
    """
    saved: float = s.flow[s.tight[v]] * s.Z[v] - s.C[v] - s.price[v]
    adding = not s.chosen[v]
    s.chosen[v] = adding
    by = -s.Z[v] if adding else s.Z[v]
    x = v
    while True:
        s.z[x] += by
        u = s.parent[x]
        if u < 0:
            break
        s.Z[u] += by
        s.C[u] += s.flow[x] * by
        if s.chosen[u]:
            break
        x = u
    waiting = [v]
    while len(waiting) > 0:
        x = waiting.pop()
        for i in range(offsets[x], offsets[x + 1]):
            c = children[i]
            s.tight[c] = c if adding and x == v else s.tight[x]
            if not s.chosen[c]:
                waiting.append(c)
    return -saved if adding else saved
