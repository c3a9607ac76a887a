"""Does one condition cover another, do they overlap: decided on boxes.

`covered` says yes only with a proof, `disjoint` likewise; whatever takes too long is answered "no",
which is the safe side: not covered, not disjoint. Both are exact on what users write.
"""

from __future__ import annotations

from collections.abc import Sequence

from narrowcast.profiles.normal_form import Box, inside, intersect
from narrowcast.profiles.sets import EVERY_VALUE, TooComplexError, ValueSet

FRAGMENTS = 10_000


def covered(narrow: Sequence[Box], wide: Sequence[Box], budget: int = FRAGMENTS) -> bool:
    """Whether every message of `narrow` is in `wide`: what is left after taking `wide` away is empty.

    Each step takes one box away and leaves at most one fragment per attribute it names; a fragment
    that no box of `wide` touches ends the search at once. Exact up to `budget` fragments.
    """
    try:
        return all(_box_covered(box, wide, budget) for box in narrow)
    except TooComplexError:
        return False


def disjoint(left: Sequence[Box], right: Sequence[Box]) -> bool:
    """Whether certainly no message is in a box of each side. O(n · m) box pairs."""
    try:
        return not any(touch(a, b) for a in left for b in right)
    except TooComplexError:
        return False


def touch(left: Box, right: Box) -> bool:
    """Whether two boxes may share a message; no is certain."""
    if len(left) > len(right):
        left, right = right, left
    return all(name not in right or values.overlaps(right[name]) for name, values in left.items())


def _box_covered(box: Box, wide: Sequence[Box], budget: int) -> bool:
    near = [other for other in wide if touch(box, other)]
    if any(inside(box, other) for other in near):
        return True
    waiting: list[tuple[Box, int]] = [(box, 0)]
    made = 0
    while waiting:
        fragment, start = waiting.pop()
        at = next((i for i in range(start, len(near)) if touch(fragment, near[i])), None)
        if at is None:
            return False
        left = subtract(fragment, near[at])
        made += len(left)
        if made > budget:
            return False
        waiting.extend((rest, at + 1) for rest in left)
    return True


def subtract(box: Box, away: Box) -> list[Box]:
    """What is left of a box, in disjoint fragments."""
    if intersect(box, away) is None:
        return [box]
    left: list[Box] = []
    rest: dict[str, ValueSet] = dict(box)
    for name, values in sorted(away.items()):
        here = rest.get(name, EVERY_VALUE)
        beyond = here.minus(values)
        if not beyond.is_empty():
            left.append({**rest, name: beyond})
        rest[name] = here.intersection(values)
    return left
