"""Random conditions with IN lists of many values, in three dialects, and messages that hit and miss them."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

from naive.random_profiles import TIMES, RandomProfile, constant, random_profile

KINDS = {"symbol": "string", "size": "int", "price": "float", "ts": "timestamp", "active": "bool"}
POOLS: dict[str, list[Any]] = {
    "symbol": [f"S{k}" for k in range(400)] + ["", "it's", "a", "é", "a,b", "(a)", "NULL", "S1\\"],
    "size": list(range(-200, 200)),
    "price": [k / 4 for k in range(-300, 300)] + [0.1, 100.1, 1e10],
    "ts": [TIMES[0] + timedelta(microseconds=k) for k in range(300)],
}


def listed(rng: random.Random, most: int) -> RandomProfile:
    """`name [NOT] IN (…)` with up to `most` values, some twice, now and then NULL among them."""
    name = rng.choice(tuple(POOLS))
    values = rng.choices(POOLS[name], k=rng.randint(1, most))
    if rng.random() < 0.15:
        values.insert(rng.randrange(len(values) + 1), None)
    word = rng.choice(("IN", "IN", "NOT IN"))
    texts = zip(*map(constant, values), strict=True)
    return RandomProfile(*(f"{name} {word} ({rng.choice((', ', ',')).join(each)})" for each in texts))


def random_lists(seed: int, n: int, most: int = 80) -> list[RandomProfile]:
    """n conditions of one to three lists, with other terms between them."""
    rng = random.Random(seed)
    found = []
    for _ in range(n):
        parts = [listed(rng, most) for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.4:
            parts.append(random_profile(rng, 1, kinds=KINDS))
        shape = rng.choice((" AND ", " OR ", " OR ")).join(["({})"] * len(parts))
        shape = rng.choice((shape, shape, f"NOT ({shape})", f"({shape}) IS NOT TRUE"))
        found.append(RandomProfile(*(shape.format(*texts) for texts in zip(*parts, strict=True))))
    return found


def random_list_messages(seed: int, n: int) -> list[dict[str, Any]]:
    """n messages, some of whose values no list can hold."""
    rng = random.Random(seed)

    def value(name: str) -> Any:
        if rng.random() < 0.1:
            return None
        drawn = rng.choice(POOLS[name])
        if rng.random() < 0.8:
            return drawn
        near: dict[str, Any] = {"symbol": "x", "size": 500, "price": 0.01, "ts": timedelta(days=1)}
        return drawn + near[name]

    return [{**{name: value(name) for name in POOLS}, "active": rng.choice((True, False, None))} for _ in range(n)]
