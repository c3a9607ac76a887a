"""The normal form: where a condition is true, as a union of boxes.

A box gives each attribute it names a set of values; other attributes are free. `true_boxes` and
`false_boxes` follow SQL's three-valued logic: NOT swaps the two, and what is in neither is unknown.
So a box never has to speak of unknown, and "does not match" is the complement of the true boxes,
not the false ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from narrowcast.profiles.sets import EVERY_VALUE, TooComplexError, ValueSet, union
from narrowcast.profiles.syntax import TERMS, And, Constant, Expression, IsTrue, Like, Not, Or, terms
from narrowcast.profiles.term_sets import false_set, true_set

Box: TypeAlias = Mapping[str, ValueSet]
Boxes: TypeAlias = list[dict[str, ValueSet]]

# Up to here every pair is tested for absorption; beyond, only boxes of one attribute absorb.
PAIRWISE = 100
# A merged set with more patterned pieces than this stays several boxes.
MOST_MERGED_LIKES = 32


def boxes(expression: Expression, limit: int = 10_000) -> tuple[Box, ...] | None:
    """Where a condition is true; None if that, or any part of it, takes more than `limit` boxes.

    Boxes that differ in one attribute only are merged, empty and absorbed ones dropped; they may
    overlap. The order depends on the condition alone. Near linear for an OR of simple parts.

    >>> from narrowcast.profiles.parse import parse
    >>> [sorted(box) for box in boxes(parse("a = 1 AND b = 2 OR a = 1 AND b = 3 OR c IS NULL"))]
    [['a', 'b'], ['c']]
    """
    try:
        found = _truth(expression, True, limit)
    except TooComplexError:
        return None
    return tuple(box for box in found if not any(values.is_empty() for values in box.values()))


def exceeds(expression: Expression, limit: int) -> bool:
    """Whether the normal form takes more than `limit` conjuncts; cheap on hostile input.

    The cheap count decides the ordinary case; past it the form is built, and given up as soon as a
    part of it grows beyond the limit. Contradictions between LIKE patterns are not looked for.
    """
    if count_conjuncts(expression) <= limit:
        return False
    try:
        _truth(expression, True, limit)
    except TooComplexError:
        return True
    return False


def count_conjuncts(expression: Expression) -> int:
    """An upper bound on the conjuncts, counted without building any. Linear.

    A part about one attribute without LIKE counts once, whatever it says.

    >>> from narrowcast.profiles.parse import parse
    >>> count_conjuncts(parse("(a = 1 OR b = 1) AND (c = 1 OR d = 1) AND (e < 1 OR e > 2)"))
    4
    """
    return _count(expression, True)


def _count(node: Expression, wanted: bool) -> int:
    if isinstance(node, (*TERMS, Constant)) or _is_one_set(node):
        return 1
    if isinstance(node, Not):
        return _count(node.part, not wanted)
    if isinstance(node, IsTrue):
        if wanted:
            return _count(node.part, True)
        # The complement of n boxes: one choice of attribute from each.
        choices: int = max(2, sum(1 for _ in terms(node))) ** min(64, _count(node.part, True))
        return min(_CAP, choices)
    counts = [_count(part, wanted) for part in node.parts]
    if isinstance(node, And) != wanted:
        return min(_CAP, sum(counts))
    product = 1
    for count in counts:
        product = min(_CAP, product * count)
    return product


_CAP = 10**18


def _is_one_set(node: Expression) -> bool:
    found = list(terms(node))
    return not any(isinstance(t, Like) for t in found) and len({t.attribute for t in found}) <= 1


def _truth(node: Expression, wanted: bool, limit: int) -> Boxes:
    """The boxes where a node is true (wanted) or false."""
    if isinstance(node, TERMS):
        return _simplest([{node.attribute: true_set(node) if wanted else false_set(node)}])
    match node:
        case Constant():
            return [{}] if node.value is wanted else []
        case Not():
            return _truth(node.part, not wanted, limit)
        case IsTrue():
            found = _truth(node.part, True, limit)
            return found if wanted else outside(found, limit)
        case And() | Or():
            parts = [_truth(part, wanted, limit) for part in node.parts]
            if isinstance(node, And) == wanted:
                return _all(parts, limit)
            return _bounded(simplify(box for part in parts for box in part), limit)
    raise TypeError(f"not a condition: {node!r}")


def _bounded(found: Boxes, limit: int) -> Boxes:
    if len(found) > limit:
        raise TooComplexError
    return found


def _all(parts: Sequence[Boxes], limit: int) -> Boxes:
    """The boxes inside every part: single boxes first, since they only narrow."""
    result: Boxes = [{}]
    for part in sorted(parts, key=len):
        result = _bounded(simplify(both for a in result for b in part if (both := intersect(a, b)) is not None), limit)
        if not result:
            break
    return result


def outside(found: Sequence[Box], limit: int) -> Boxes:
    """Everything that is in none of the boxes."""
    parts = [_simplest([{name: values.complement()} for name, values in box.items()]) for box in found]
    return _all(parts, limit)


def intersect(left: Box, right: Box) -> dict[str, ValueSet] | None:
    """What two boxes share; None when that is plainly nothing."""
    both = dict(left)
    for name, values in right.items():
        if name in both:
            values = both[name].intersection(values)
            if values.looks_empty():
                return None
        both[name] = values
    return both


def inside(inner: Box, outer: Box) -> bool:
    """Whether every message of one box is certainly in the other."""
    return all(name in inner and inner[name].within(values) for name, values in outer.items())


def simplify(found: Iterable[Box]) -> Boxes:
    """The same messages in fewer boxes: merged, without free attributes, empty or absorbed boxes."""
    return _absorb(_merge(_simplest(found)))


def _simplest(found: Iterable[Box]) -> Boxes:
    """Without attributes that may be anything, boxes that hold nothing, and repetitions."""
    kept: dict[frozenset[tuple[str, ValueSet]], dict[str, ValueSet]] = {}
    for box in found:
        if any(values.looks_empty() for values in box.values()):
            continue
        named = {name: box[name] for name in sorted(box) if box[name] != EVERY_VALUE}
        if not named:
            return [{}]
        kept.setdefault(frozenset(named.items()), named)
    return list(kept.values())


def _merge(found: Boxes) -> Boxes:
    """Boxes that differ in one attribute become one, attribute by attribute, until nothing changes."""
    while len(found) > 1:
        before = len(found)
        for name in sorted({name for box in found for name in box}):
            found = _merge_along(found, name)
        if len(found) == before:
            break
    return found


def _merge_along(found: Boxes, name: str) -> Boxes:
    groups: dict[object, Boxes] = {}
    for box in found:
        if name in box:
            key: object = frozenset(item for item in box.items() if item[0] != name)
        else:
            key = (frozenset(box.items()),)
        groups.setdefault(key, []).append(box)
    merged: Boxes = []
    for group in groups.values():
        patterned = sum(1 for box in group if name in box for piece in box[name].string if piece.likes)
        if len(group) == 1 or patterned > MOST_MERGED_LIKES:
            merged.extend(group)
        else:
            merged.append(group[0] | {name: union(box[name] for box in group)})
    return _simplest(merged)


def _absorb(found: Boxes) -> Boxes:
    if len(found) < 2:
        return found
    if len(found) > PAIRWISE:
        single = [box for box in found if len(box) == 1]
        return [box for box in found if len(box) == 1 or not any(_plainly_inside(box, one) for one in single)]
    kept: Boxes = []
    for box in found:
        if not any(_plainly_inside(box, other) for other in kept):
            kept = [other for other in kept if not _plainly_inside(other, box)]
            kept.append(box)
    return kept


def _plainly_inside(inner: Box, outer: Box) -> bool:
    """Like `inside`, without the search through LIKE patterns."""
    if not outer.keys() <= inner.keys():
        return False
    return all(inner[name] == values or inner[name].minus(values).looks_empty() for name, values in outer.items())
