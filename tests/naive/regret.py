"""When a plan of one choice out of two should move, written down from the definition (docs/decisions/0124)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def naive_moves(pairs: Sequence[tuple[float, float]], policy: Any, size: int) -> list[float]:
    """The moments at which to move. Being on one side costs the rate of the other; moments are a second apart."""
    side, shadow, earned, found = 0, False, 0.0, []
    paid, moved_at = 0.0, 0
    for t, rates in enumerate(pairs):
        kept, other = rates[1 - side], rates[side]
        if shadow:
            earned = max(0.0, earned + kept - other - policy.threshold * kept)
        else:
            earned = 0.0
        plain = policy.effort * kept / size * policy.horizon_s
        price = plain + paid * max(0.0, 1.0 - (t - moved_at) / policy.horizon_s)
        better = (kept - other) * policy.horizon_s > plain and kept - other > policy.threshold * kept
        worth = better and (kept - other) * policy.horizon_s > price
        if worth and shadow and earned > 0 and earned >= policy.proof * price:
            found.append(float(t))
            side, shadow, earned, paid, moved_at = 1 - side, False, 0.0, price, t
        else:
            shadow = better
    return found
