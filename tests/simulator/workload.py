"""What simulated applications publish and want.

Each profile has a Python predicate beside it, written by hand: what the checker believes shares no
code with what the edges evaluate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

Message = Mapping[str, Any]

WISHES: dict[str, Callable[[Message], bool]] = {
    "s = 'a'": lambda m: m["s"] == "a",
    "s IN ('b', 'c') AND p > 4": lambda m: m["s"] in ("b", "c") and m["p"] > 4,
    "p < 3": lambda m: m["p"] < 3,
    "p BETWEEN 2 AND 6 AND s IS NOT NULL": lambda m: 2 <= m["p"] <= 6 and m["s"] is not None,
    "s IS NULL OR s = 'd'": lambda m: m["s"] in (None, "d"),
    "NOT (s = 'a' OR p >= 8)": lambda m: m["s"] is not None and m["s"] != "a" and m["p"] < 8,
    "s LIKE 'n%' OR p = 9": lambda m: (m["s"] or "").startswith("n") or m["p"] == 9,
    "s = 'd' AND p <> 5": lambda m: m["s"] == "d" and m["p"] != 5,
}
TEXTS = tuple(WISHES)
FLOWS = ("a", "b", "c", "d")  # those that plans know; "new" and null are none of them
SYMBOLS = (*FLOWS, "new", None)


def wants(profile: str, message: Message) -> bool:
    return WISHES[profile](message)


def message(number: int, rng: Random) -> dict[str, Any]:
    return {"s": rng.choice(SYMBOLS), "p": rng.randrange(10), "n": number}


def one_for_everybody(number: int) -> list[dict[str, Any]]:
    """Messages of which every wish matches at least one."""
    pairs = (("a", 2), ("b", 5), ("d", 1), (None, 9), ("new", 3))
    return [{"s": s, "p": p, "n": number + k} for k, (s, p) in enumerate(pairs)]
