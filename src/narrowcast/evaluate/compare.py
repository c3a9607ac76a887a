"""What a plan says of itself against what was found."""

from __future__ import annotations

from collections.abc import Mapping

TOLERANCE = 1e-9
# Ratios, which are not of the size of the costs beside them.
RATIOS = frozenset({"relative"})
# The terms that add up to what is paid; others come from them by differences and are as exact as these.
PAID = ("c1", "c2", "total", "traffic")


def differences(said: Mapping[str, float], found: Mapping[str, float]) -> list[str]:
    """The cost terms in which a plan and its recomputation differ, beyond 1e-9 of what is paid."""
    paid = sum(abs(found.get(name, 0.0)) for name in PAID)
    return [
        f"its {name} is {found[name]}, the plan says {said[name]}"
        for name in found
        if name in said and not same(said[name], found[name], 1.0 if name in RATIOS else paid)
    ]


def same(said: object, found: float, scale: float = 0.0) -> bool:
    """Whether a number is the one that was found, beyond rounding; what is no number is not."""
    if isinstance(said, bool) or not isinstance(said, (int, float)):
        return False
    return abs(found - said) <= TOLERANCE * max(abs(found), abs(said), scale)
