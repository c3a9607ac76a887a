"""What channels to given gateways cost, for many sets at once: from each source to the root, then down the tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit
from narrowcast.network.kernels.paths import OUTSIDE, clear, join_in_order, nearest_first, shortest_path_tree

Array = NDArray[Any]


@jit
def _least_way(distance: Array, sources: Array, weight: Array, x: int) -> Any:
    cost = 0.0
    for s in range(sources.size):
        if weight[s] > 0.0:
            cost += weight[s] * distance[sources[s], x]
    return cost


@jit
def _clear_rooted(distance: Array, sources: Array, weight: Array, root: int, members: Array, parent: Array) -> Any:
    """Take a tree off again; the least cost of the ways to any of its brokers."""
    best = _least_way(distance, sources, weight, root)
    for g in members:
        x = g
        while x >= 0 and parent[x] != OUTSIDE:
            step = parent[x]
            parent[x] = OUTSIDE
            if step >= 0:
                best = min(best, _least_way(distance, sources, weight, x))
            x = step
    parent[root] = OUTSIDE
    return best


@jit
def price(distance: Array, next_hop: Array, sources: Array, weight: Array, members: Array, parent: Array) -> Any:
    """What a channel costs on the cheaper tree from its heaviest source, rooted where the sources' ways cost least.

    A tree costs the same from any of its brokers. Of a channel without known source it is the tree alone.
    """
    total = weight.sum()
    if members.size == 0 or total == 0.0:
        return 0.0
    root = sources[np.argmax(weight)] if sources.size else members[0]
    tree = nearest_first(distance, next_hop, root, members, parent)
    best = total * tree + _clear_rooted(distance, sources, weight, root, members, parent)
    tree = shortest_path_tree(distance, next_hop, root, members, parent)
    return min(best, total * tree + _clear_rooted(distance, sources, weight, root, members, parent))


@jit
def union_prices(
    distance: Array,
    next_hop: Array,
    sources: Array,
    gateways: Array,
    reach: Array,
    weight: Array,
    first: Array,
    second: Array,
) -> Array:
    """`price` of the union of sets first[k] and second[k] (the same twice for one set alone).

    Set i reaches gateways[j] where reach[i, j], with weight[i, s] from sources[s].
    """
    parent = np.full(distance.shape[0], OUTSIDE, np.int32)
    members = np.empty(gateways.size, np.int64)
    result = np.empty(first.size)
    for k in range(first.size):
        i, j = first[k], second[k]
        n = 0
        for g in range(gateways.size):
            if reach[i, g] or reach[j, g]:
                members[n] = gateways[g]
                n += 1
        together = weight[i] + weight[j] if i != j else weight[i]
        result[k] = price(distance, next_hop, sources, together, members[:n], parent)
    return result


@jit
def union_estimates(
    distance: Array, next_hop: Array, roots: Array, order: Array, reach: Array, first: Array, second: Array
) -> Array:
    """The published tree estimate of the union of sets first[k] and second[k], from roots[first[k]].

    `order` holds the gateways in a random joining order; reach[:, j] belongs to order[j].
    """
    parent = np.full(distance.shape[0], OUTSIDE, np.int32)
    members = np.empty(order.size, np.int64)
    result = np.empty(first.size)
    for k in range(first.size):
        i, j = first[k], second[k]
        n = 0
        for g in range(order.size):
            if reach[i, g] or reach[j, g]:
                members[n] = order[g]
                n += 1
        result[k] = join_in_order(distance, next_hop, roots[i], members[:n], parent)
        clear(parent, roots[i], members[:n])
    return result


@jit
def audience_costs(
    distance: Array, next_hop: Array, roots: Array, gateways: Array, audience: Array, unicast: bool
) -> Array:
    """Per message what shortest paths from its root to its audience cost, shared (a tree) or one each (unicast)."""
    parent = np.full(distance.shape[0], OUTSIDE, np.int32)
    members = np.empty(gateways.size, np.int64)
    cost = np.zeros(roots.size)
    for i in range(roots.size):
        n = 0
        for g in range(gateways.size):
            if audience[i, g]:
                members[n] = gateways[g]
                n += 1
                cost[i] += distance[roots[i], gateways[g]]
        if not unicast:
            cost[i] = shortest_path_tree(distance, next_hop, roots[i], members[:n], parent)
            clear(parent, roots[i], members[:n])
    return cost


@jit
def first_interval(audience: Array, source: Array, order: Array, core: Array, reach: Array) -> Array:
    """Per message the first channel in its source's order whose core ⊆ audience ⊆ reach; −1 if none.

    Sets are rows of 64-bit words. `order[s]` lists channels and ends early with −1.
    """
    words = audience.shape[1]
    found = np.full(source.size, -1, np.int64)
    for i in range(source.size):
        for c in order[source[i]]:
            if c < 0:
                break
            inside = True
            for w in range(words):
                a = audience[i, w]
                if core[c, w] & ~a or a & ~reach[c, w]:
                    inside = False
                    break
            if inside:
                found[i] = c
                break
    return found
