"""Greedy unicast by recounting C' for every candidate, every time."""

from __future__ import annotations

from typing import Any

import numpy as np

from naive.channels_cost import hybrid_cost
from narrowcast.model import Interest


def candidates(interest: Interest, kind: str, alone: set[tuple[int, int]]) -> list[set[tuple[int, int]]]:
    """The pairs each move would send to unicast."""
    pairs = {(k, int(u)) for k in range(interest.n_flows) for u in interest.users_of(k)} - alone
    if kind == "pair":
        return [{pair} for pair in sorted(pairs)]
    place = 0 if kind == "flow" else 1
    return [{p for p in pairs if p[place] == i} for i in sorted({p[place] for p in pairs})]


def settled(interest: Interest, group_of: Any, alone: set[tuple[int, int]]) -> list[int]:
    """A flow all of whose users are unicast leaves its group."""
    return [
        int(group_of[k]) if any((k, int(u)) not in alone for u in interest.users_of(k)) else -1
        for k in range(interest.n_flows)
    ]


def price(interest: Interest, group_of: Any, alone: set[tuple[int, int]], weights: Any) -> float:
    arrays = np.array(sorted(alone)).reshape(-1, 2)
    return hybrid_cost(interest, settled(interest, group_of, alone), (arrays[:, 0], arrays[:, 1]), weights)


def greedy(
    interest: Interest, group_of: Any, kind: str, weights: tuple[float, float, float], cap: float
) -> float | None:
    """The cost where it stops; None where two moves are equally good, so that either may be made."""
    alone: set[tuple[int, int]] = set()
    cost = price(interest, group_of, alone, weights)
    w = weights[2] * (weights[0] + weights[1])
    while True:
        moves = [(price(interest, group_of, alone | m, weights), m) for m in candidates(interest, kind, alone)]
        if not moves:
            return cost
        best, chosen = min(moves, key=lambda move: move[0])
        if best < cost - 1e-9 and sum(other < best + 1e-9 for other, _ in moves) > 1:
            return None
        unicast = w * sum(interest.rates[k] for k, _ in alone | chosen)
        if best >= cost - 1e-9 or unicast > cap * best + 1e-9:
            return cost
        cost, alone = best, alone | chosen
