"""The market workload by its definition: one user, one market, one symbol at a time."""

from __future__ import annotations

import math
import random


def market(symbols: int, markets: int, users: int, markets_per_user: int, share: float, seed: int) -> dict[str, object]:
    """Sizes, rates and the symbols (market, rank) of each user."""
    rng = random.Random(seed)
    total = sum(1 / m for m in range(1, markets + 1))
    p = [1 / m / total for m in range(1, markets + 1)]
    sizes = [round(symbols * q) for q in p]
    rates = [[p[m] * math.exp(-8 * i / sizes[m]) for i in range(sizes[m])] for m in range(markets)]
    chosen = []
    for _ in range(users):
        mine: set[tuple[int, int]] = set()
        for m in one_after_another(rng, p, markets_per_user):
            weights = [math.exp(-8 * i / sizes[m]) for i in range(sizes[m])]
            mine |= {(m, i) for i in one_after_another(rng, weights, math.floor(share * sizes[m] + 0.5))}
        chosen.append(mine)
    return {"sizes": sizes, "rates": rates, "chosen": chosen}


def one_after_another(rng: random.Random, weights: list[float], m: int) -> list[int]:
    """m distinct indices: each drawn by weight from those that are left."""
    left = dict(enumerate(weights))
    drawn = []
    for _ in range(m):
        (index,) = rng.choices(list(left), list(left.values()))
        drawn.append(index)
        del left[index]
    return drawn
