"""What merged channels cost, and moves of classes between them, by definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from naive import paths as naive_paths


def least_waste(sets: list[set[int]], weight: list[float], among: list[int], i: int, k: int) -> list[int]:
    """The k with the least deliveries in vain, of equals the first."""
    waste = {j: weight[i] * len(sets[j] - sets[i]) + weight[j] * len(sets[i] - sets[j]) for j in among if j != i}
    return sorted(waste, key=lambda j: (waste[j], among.index(j)))[:k]


def price(paths: Any, sources: list[int], weight: list[float], members: list[int]) -> float:
    """The better of two trees from the heaviest source, rooted at whichever of its brokers is best for all."""
    total = sum(weight)
    if not members or not total:
        return 0.0
    heaviest = sources[int(np.argmax(weight))] if sources else members[0]
    hop, d = paths.next_hop, paths.distance
    found = []
    for edges in (
        naive_paths.nearest_first(d, hop, heaviest, members),
        naive_paths.shortest_path_tree(hop, heaviest, members),
    ):
        tree = sum(float(d[u][v]) for u, v in edges)
        brokers = {heaviest, *(x for edge in edges for x in edge)}
        way = min(sum(w * float(d[s][x]) for s, w in zip(sources, weight, strict=False)) for x in brokers)
        found.append(total * tree + way)
    return min(found)


def total(paths: Any, sources: list[int], gateways: list[int], classes: Any, channel: list[int], lost: Any) -> float:
    """What all channels cost, and what was given up."""
    cost = sum(float(lost[i]) for i, c in enumerate(channel) if c < 0)
    for c in {c for c in channel if c >= 0}:
        mine = [i for i, at in enumerate(channel) if at == c]
        members = [gateways[g] for g in np.flatnonzero(classes.reach[mine].any(axis=0))]
        weight = [0.0] * max(1, len(sources))
        for i in mine:
            weight[classes.source[i]] += float(classes.weight[i])
        cost += price(paths, sources, weight, members)
    return cost
