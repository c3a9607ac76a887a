"""Keep the heuristic's state while flows and filters change: only what changed is touched.

z and Z depend on the filters alone, so a new flow at v changes C of its parent and, if v is
tight, the total. A filter that comes or goes changes z on the way up to the next filter, and A on
the links it relieves.
"""

from __future__ import annotations

from narrowcast.jit import jit
from narrowcast.plans.filters.kernels.flip import FlipState


@jit
def shift_flow(s: FlipState, v: int, by: float) -> float:
    """Change f(v); returns the change of the objective. O(1)."""
    s.flow[v] += by
    if s.parent[v] >= 0:
        s.C[s.parent[v]] += by * s.z[v]
    return by * s.z[v] if s.tight[v] == v else 0.0


@jit
def toggle(s: FlipState, v: int) -> float:
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
    x = v + 1
    while x < v + s.size[v]:
        s.tight[x] = x if adding and s.parent[x] == v else s.tight[s.parent[x]]
        x += s.size[x] if s.chosen[x] else 1
    return -saved if adding else saved
