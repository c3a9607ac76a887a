"""Sums along shortest paths, and trees grown over the matrices of all shortest paths.

Letters: `distance[u, v]` is the least cost from u to v, `next_hop[u, v]` the broker after u on that
path (−1 where there is none). A link on a shortest path is itself a shortest path, so
`distance[u, next_hop[u, v]]` is its cost. Trees are arrays of parents: −1 at the root, −2 outside.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit

Array = NDArray[Any]
OUTSIDE = -2


@jit
def sum_along(next_hop: Array, offsets: Array, neighbours: Array, amount: Array) -> Array:
    """For all pairs (u, v): the sum of a link amount along the path from u to v. O(n² · degree)."""
    n = next_hop.shape[0]
    total = np.full((n, n), np.inf)
    stack = np.empty(n, np.int64)
    for v in range(n):
        total[v, v] = 0.0
        for start in range(n):
            u, depth = start, 0
            while total[u, v] == np.inf and next_hop[u, v] >= 0:
                stack[depth] = u
                depth += 1
                u = next_hop[u, v]
            while depth > 0:
                depth -= 1
                x = stack[depth]
                for i in range(offsets[x], offsets[x + 1]):
                    if neighbours[i] == u:
                        total[x, v] = total[u, v] + amount[i]
                        break
                u = x
    return total


@jit
def join_in_order(distance: Array, next_hop: Array, root: int, members: Array, parent: Array) -> float:
    """The cost of the tree when members join in this order, each at its nearest member so far.

    The first joins by a shortest path to the root; a path ends at the first broker in the tree.
    Writes the tree into `parent` (all OUTSIDE before). O(members² + tree).
    """
    parent[root] = -1
    cost = 0.0
    for i in range(members.size):
        g = members[i]
        at = root
        nearest = distance[g, root] if i == 0 else np.inf
        for j in range(i):
            if distance[g, members[j]] < nearest:
                nearest, at = distance[g, members[j]], members[j]
        x = g
        while parent[x] == OUTSIDE:
            step = next_hop[x, at]
            parent[x] = step
            cost += distance[x, step]
            x = step
    return cost


@jit
def join_at_broker(distance: Array, next_hop: Array, root: int, members: Array, parent: Array) -> float:
    """The same, each member at its nearest broker of the tree, of equals the first by number. O(members · tree)."""
    inside = np.empty(distance.shape[0], np.int64)
    inside[0], n = root, 1
    parent[root] = -1
    cost = 0.0
    for g in members:
        at = root
        for j in range(n):
            x = inside[j]
            if distance[g, x] < distance[g, at] or (distance[g, x] == distance[g, at] and x < at):
                at = x
        x = g
        while parent[x] == OUTSIDE:
            step = next_hop[x, at]
            parent[x] = step
            cost += distance[x, step]
            inside[n] = x
            n += 1
            x = step
    return cost


@jit
def nearest_first(distance: Array, next_hop: Array, root: int, members: Array, parent: Array) -> float:
    """The tree that takes, again and again, the member nearest to any broker already in it.

    Takahashi and Matsuyama's Steiner heuristic: at most twice the least cost. O(tree · members).
    """
    k = members.size
    left = members.copy()  # those not in the tree yet, in the order given
    near = np.empty(k)
    at = np.empty(k, np.int64)
    for i in range(k):
        near[i], at[i] = distance[root, left[i]], root
    parent[root] = -1
    cost = 0.0
    while True:
        n, best = 0, -1
        for i in range(k):
            if parent[left[i]] == OUTSIDE:
                left[n], near[n], at[n] = left[i], near[i], at[i]
                if best < 0 or near[n] < near[best]:
                    best = n
                n += 1
        k = n
        if best < 0:
            break
        x, end = left[best], at[best]
        while parent[x] == OUTSIDE:
            step = next_hop[x, end]
            parent[x] = step
            cost += distance[x, step]
            for i in range(k):  # by row x: distances are the same both ways, and a row is quick to read
                if distance[x, left[i]] < near[i]:
                    near[i], at[i] = distance[x, left[i]], x
            x = step
    return cost


@jit
def shortest_path_tree(distance: Array, next_hop: Array, root: int, members: Array, parent: Array) -> float:
    """The union of the shortest paths from the root to the members. O(tree)."""
    parent[root] = -1
    cost = 0.0
    for g in members:
        x = g
        while parent[x] == OUTSIDE:
            step = next_hop[x, root]
            parent[x] = step
            cost += distance[x, step]
            x = step
    return cost


@jit
def clear(parent: Array, root: int, members: Array) -> None:
    """Put back OUTSIDE wherever a tree of these members wrote. O(tree)."""
    for g in members:
        x = g
        while x >= 0 and parent[x] != OUTSIDE:
            step = parent[x]
            parent[x] = OUTSIDE
            x = step
    parent[root] = OUTSIDE
