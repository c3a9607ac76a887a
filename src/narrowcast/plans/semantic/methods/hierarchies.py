"""SemCast, first phase (§3.2.2): profiles under profiles that contain them, where sharing a channel pays.

Containment is taken from the window: all messages of the child matched the parent too. Containment by
syntax implies that for every profile the window has seen; a profile it has not seen stays alone,
which costs nothing in the window and is safe.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.network import Paths
from narrowcast.plans.semantic.kernels.price import union_estimates
from narrowcast.plans.semantic.methods.audiences import in_common
from narrowcast.plans.semantic.window import Window

#: Of a profile's candidate parents those with the least rate beyond it are priced.
MOST_PARENTS = 16


@dataclass(frozen=True, eq=False)
class Estimator:
    """The published tree estimate: gateways join in one random order, each at its nearest before it."""

    paths: Paths
    order: Ints

    def __call__(self, roots: Ints, reach: Bools, first: Ints, second: Ints) -> Floats:
        return union_estimates(self.paths.distance, self.paths.next_hop, roots, self.order, reach, first, second)


@dataclass(frozen=True, eq=False)
class Hierarchies:
    """`members[h]` are profiles (the root first); `reach[h, j]` by joining order; `tree[h]` estimated."""

    members: list[list[int]]
    reach: Bools
    roots: Ints
    tree: Floats


def hierarchies(window: Window, wants: Bools, roots: Ints, estimate: Estimator) -> Hierarchies:
    """Every profile that somebody holds, in exactly one hierarchy. `wants` is in joining order."""
    held = np.flatnonzero(wants.any(axis=1))
    matched = window.matched[:, held]
    rate = np.asarray(matched.T @ window.weight)
    parents = _candidate_parents(matched)
    reach, roots = wants[held].copy(), roots[held].copy()
    every = np.arange(held.size)
    alone = estimate(roots, reach, every, every)
    tree, top = alone.copy(), every.copy()
    members: dict[int, list[int]] = {}
    for i in np.lexsort((every, -rate)).tolist():
        above = np.unique(top[parents[i]])
        above = above[np.argsort(rate[above], kind="stable")][:MOST_PARENTS]
        if above.size:
            joined = estimate(roots, reach, above, np.full(above.size, i))
            # The parent already carries the child's messages, so only the tree grows.
            more = rate[above] * (joined - tree[above]) - rate[i] * alone[i]
            best = int(np.argmin(more))
            if more[best] < 0:
                h = int(above[best])
                top[i], tree[h] = h, joined[best]
                reach[h] |= reach[i]
                members[h].append(int(held[i]))
                continue
        members[i] = [int(held[i])]
    kept = np.array(sorted(members), np.int64)
    return Hierarchies([members[h] for h in kept.tolist()], reach[kept], roots[kept], tree[kept])


def _candidate_parents(matched: Any) -> list[Ints]:
    """Per profile those that matched all its messages; of equals the first comes above the others."""
    n = matched.shape[1]
    count = np.asarray(matched.sum(axis=0)).ravel()
    dense = matched.toarray().astype(np.float32).T
    found = []
    for start in range(0, n, 512):
        common = in_common(dense[start : start + 512], dense)
        mine = count[start : start + 512, None]
        wider = (count[None, :] > mine) | ((count[None, :] == mine) & (np.arange(n) < np.arange(start, n)[:512, None]))
        found += [np.flatnonzero(row) for row in (common == mine) & wider & (mine > 0)]
    return found
