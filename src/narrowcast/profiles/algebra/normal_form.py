"""The normal form: where a condition is true, as a union of boxes.

A box gives each attribute it names a set of values; other attributes are free. `true_boxes` and
`false_boxes` follow SQL's three-valued logic: NOT swaps the two, and what is in neither is unknown.
So a box never has to speak of unknown, and "does not match" is the complement of the true boxes,
not the false ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from narrowcast.profiles.algebra.emptiness import TooComplexError, effort
from narrowcast.profiles.algebra.sets import EVERY_VALUE, NOTHING, ValueSet, union
from narrowcast.profiles.algebra.term_sets import false_set, true_set
from narrowcast.profiles.sql.syntax import TERMS, And, Constant, Expression, Finds, IsTrue, Like, Not, Or, terms

Box: TypeAlias = Mapping[str, ValueSet]
Boxes: TypeAlias = list[dict[str, ValueSet]]

# Intersections of boxes that one AND may take.
WORK = 10_000
# Up to here every pair is tested for absorption; beyond, only boxes of one attribute absorb.
PAIRWISE = 40
# A merged set with more patterned pieces than this stays several boxes.
MOST_MERGED_LIKES = 32


def boxes(expression: Expression, limit: int = 10_000) -> tuple[Box, ...] | None:
    """Where a condition is true; None if that, or any part of it, takes more than `limit` boxes.

    Boxes that differ in one attribute only are merged, empty and absorbed ones dropped; they may
    overlap. The order depends on the condition alone. Near linear for an OR of simple parts.

    >>> from narrowcast.profiles.sql.parse import parse
    >>> [sorted(box) for box in boxes(parse("a = 1 AND b = 2 OR a = 1 AND b = 3 OR c IS NULL"))]
    [['a', 'b'], ['c']]
    """
    try:
        found = _truth(expression, True, limit)
    except TooComplexError:
        return None
    with effort():
        return tuple(box for box in found if not _certainly_empty(box))


def _certainly_empty(box: Box) -> bool:
    try:
        return any(values.is_empty() for values in box.values())
    except TooComplexError:
        return False


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

    >>> from narrowcast.profiles.sql.parse import parse
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
    return not any(isinstance(t, (Like, Finds)) for t in found) and len({t.attribute for t in found}) <= 1


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
    work = 0
    for part in sorted(parts, key=len):
        work += len(result) * len(part)
        if work > WORK:
            raise TooComplexError
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
    """Without attributes that may be anything and boxes that hold nothing."""
    kept: Boxes = []
    for box in found:
        if any(values == NOTHING for values in box.values()):
            continue
        named = {name: box[name] for name in sorted(box) if box[name] != EVERY_VALUE}
        if not named:
            return [{}]
        kept.append(named)
    return kept


def _merge(found: Boxes) -> Boxes:
    """Boxes that differ in one attribute become one, attribute by attribute, until nothing changes.

    Sets are numbered once, so that finding boxes that agree elsewhere compares small numbers.
    Near linear per pass in the boxes' attributes.
    """
    if len(found) < 2:
        return found
    coded = _Coded(found)
    while coded.merge():
        pass
    return _simplest(coded.boxes())


class _Coded:
    """Boxes with their sets as numbers, each at its place; a merged box keeps the first place."""

    def __init__(self, found: Boxes) -> None:
        self.numbers: dict[ValueSet, int] = {}
        self.at = {i: {name: self.number(values) for name, values in box.items()} for i, box in enumerate(found)}
        self.sets = list(self.numbers)
        self.places: dict[str, list[int]] = {}
        for i, box in enumerate(found):
            for name in box:
                self.places.setdefault(name, []).append(i)

    def number(self, values: ValueSet) -> int:
        return self.numbers.setdefault(values, len(self.numbers))

    def boxes(self) -> Boxes:
        return [{name: self.sets[k] for name, k in box.items()} for box in self.at.values()]

    def merge(self) -> bool:
        """One pass over the attributes; whether anything was merged."""
        before = len(self.at)
        for name in sorted(self.places):
            groups: dict[object, list[int]] = {}
            for i in self.places[name]:
                if i in self.at:
                    key = tuple(item for item in self.at[i].items() if item[0] != name)
                    groups.setdefault(key, []).append(i)
            for group in groups.values():
                if len(group) > 1:
                    self.merge_group(name, group)
        return len(self.at) < before

    def merge_group(self, name: str, group: list[int]) -> None:
        first: dict[int, int] = {}
        for i in group:
            if first.setdefault(self.at[i][name], i) != i:
                del self.at[i]
        patterned = sum(1 for k in first for piece in self.sets[k].string if piece.likes)
        if len(first) == 1 or patterned > MOST_MERGED_LIKES:
            return
        whole = union(self.sets[k] for k in first)
        number = self.number(whole)
        if number == len(self.sets):
            self.sets.append(whole)
        keep, *rest = first.values()
        self.at[keep] = self.at[keep] | {name: number}
        for i in rest:
            del self.at[i]


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
