"""Does one condition cover another, do they overlap: decided on boxes.

`covered` says yes only with a proof, `disjoint` likewise; whatever takes too long is answered "no",
which is the safe side: not covered, not disjoint. Both are exact on what users write.
"""

from __future__ import annotations

from collections.abc import Sequence

from narrowcast.profiles.algebra.emptiness import TooComplexError, effort
from narrowcast.profiles.algebra.normal_form import Box, inside, intersect
from narrowcast.profiles.algebra.sets import EVERY_VALUE, ValueSet, union

# Bounds on the fragments of one question and on the pairs of boxes looked at for them.
FRAGMENTS = 10_000
PAIRS = 300_000


def covered(narrow: Sequence[Box], wide: Sequence[Box]) -> bool:
    """Whether every message of `narrow` is in `wide`: what is left after taking `wide` away is empty.

    Each step takes one box away and leaves at most one fragment per attribute it names; a fragment
    that nothing of `wide` can cover ends the search at once. Exact up to FRAGMENTS fragments.
    """
    try:
        with effort():
            return all(_box_covered(box, wide) for box in narrow)
    except TooComplexError:
        return False


def disjoint(left: Sequence[Box], right: Sequence[Box]) -> bool:
    """Whether certainly no message is in a box of each side. O(n · m) box pairs."""
    try:
        with effort():
            return not any(touch(a, b) for a in left for b in right)
    except TooComplexError:
        return False


def touch(left: Box, right: Box) -> bool:
    """Whether two boxes may share a message; no is certain."""
    if len(left) > len(right):
        left, right = right, left
    return all(name not in right or values.overlaps(right[name]) for name, values in left.items())


def _box_covered(box: Box, wide: Sequence[Box]) -> bool:
    waiting: list[tuple[Box, Sequence[Box]]] = [(box, wide)]
    fragments = pairs = 0
    while waiting:
        fragment, candidates = waiting.pop()
        near = [other for other in candidates if touch(fragment, other)]
        if any(inside(fragment, other) for other in near):
            continue
        near = _useful(fragment, near)
        if not near:
            return False
        left = subtract(fragment, near[0])
        fragments, pairs = fragments + len(left), pairs + len(candidates)
        if fragments > FRAGMENTS or pairs > PAIRS:
            return False
        waiting.extend((rest, near[1:]) for rest in left)
    return True


def _useful(box: Box, near: list[Box]) -> list[Box]:
    """The boxes that can take part in covering a box.

    If the boxes that name an attribute leave out one of its values, then at that value only the
    others can cover; those do not look at the attribute, so they cover the whole box or none can.
    """
    while True:
        by_name: dict[str, list[ValueSet]] = {}
        for other in near:
            for name, values in other.items():
                by_name.setdefault(name, []).append(values)
        useless = {name for name, sets in by_name.items() if _leave_out(box.get(name, EVERY_VALUE), sets)}
        if not useless:
            return near
        near = [other for other in near if not useless & other.keys()]


def _leave_out(values: ValueSet, sets: Sequence[ValueSet]) -> bool:
    """Whether it is plain that some of the values are in none of the sets."""
    if (values.null and not any(s.null for s in sets)) or (values.other and not any(s.other for s in sets)):
        return True
    if any(piece.likes for s in sets for piece in s.string):
        return False
    rest = values.minus(union(sets))
    return not rest.is_empty()


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
