"""Containment of tree patterns, answered yes only with a proof.

The proof is a homomorphism: a map of the wider pattern's elements into the narrower one's that keeps
names, tests and edges (a descendant edge may map to a longer way). Conditions with `or` or `not` on
the wider side count only if the narrower has the very same one; on the narrower side leaving one
out only widens it, so the answer stays safe.
"""

from __future__ import annotations

import math
from functools import cache

from narrowcast.profiles.xpath.pattern import All, Condition, Element, Has, Some, ValueTest, compare, holds, number


def implies(narrow: Has, wide: Has) -> bool:
    """True proves that every document satisfying `narrow` satisfies `wide`. O(|narrow|² · |wide|)."""

    @cache
    def maps(w: Element, n: Element) -> bool:
        """Whatever satisfies n satisfies w."""
        if w.label is not None and w.label != n.label:
            return False
        return all(follows(part, n.condition) for part in w.condition.parts)

    @cache
    def below(w: Element, n: Element) -> bool:
        """Whatever satisfies n has a descendant that satisfies w."""
        return any(isinstance(part, Has) and reaches(w, part) for part in n.condition.parts)

    def reaches(w: Element, edge: Has) -> bool:
        return maps(w, edge.element) or below(w, edge.element)

    def leads(wanted: Has, edge: Has) -> bool:
        """Whatever has `edge` has `wanted`."""
        if wanted.axis == "descendant":
            return reaches(wanted.element, edge)
        return edge.axis == "child" and maps(wanted.element, edge.element)

    def follows(wanted: Condition, given: All) -> bool:
        if wanted in given.parts:
            return True
        match wanted:
            case ValueTest():
                return any(isinstance(part, ValueTest) and value_implies(part, wanted) for part in given.parts)
            case Has():
                return any(isinstance(part, Has) and leads(wanted, part) for part in given.parts)
            case All():
                return all(follows(part, given) for part in wanted.parts)
            case Some():
                return any(follows(part, given) for part in wanted.parts)
        return False

    return leads(wide, narrow)


def value_implies(narrow: ValueTest, wide: ValueTest) -> bool:
    """True proves that a value satisfying `narrow` satisfies `wide`."""
    if narrow.kind != wide.kind or (wide.name is not None and wide.name != narrow.name):
        return False
    if wide.operator is None or narrow == wide:
        return True
    if narrow.operator is None or narrow.literal is None or wide.literal is None:
        return False
    if narrow.operator == "=" and isinstance(narrow.literal, str):
        return holds(narrow.literal, wide.operator, wide.literal)
    if isinstance(narrow.literal, str) and narrow.operator == "!=":
        return wide.operator == "!=" and wide.literal == narrow.literal
    return _number_implies(narrow, wide)


def _number_implies(narrow: ValueTest, wide: ValueTest) -> bool:
    """`narrow` bounds the value's number; a string that is compared for (in)equality has a number too."""
    low = number(narrow.literal) if isinstance(narrow.literal, str) else float(narrow.literal or 0.0)
    bound = number(wide.literal) if isinstance(wide.literal, str) else float(wide.literal or 0.0)
    if narrow.operator is None or wide.operator is None or math.isnan(low):
        return math.isnan(low) and narrow.operator not in (None, "!=")  # nothing satisfies `narrow`
    if math.isnan(bound):  # only != can hold, and a string that is no number differs from every number
        return wide.operator == "!=" and narrow.operator != "!="
    if wide.operator == "=" and isinstance(wide.literal, str):
        return False  # 5 is also written 5.0
    if narrow.operator == "!=":
        return wide.operator == "!=" and bound == low and not isinstance(wide.literal, str)
    if narrow.operator == "=":
        return compare(low, wide.operator, bound)
    if narrow.operator in ("<", "<="):
        strict = narrow.operator == "<"
        return (wide.operator in ("<", "<=", "!=") and low < bound) or (
            low == bound and (wide.operator == "<=" or (strict and wide.operator in ("<", "!=")))
        )
    strict = narrow.operator == ">"
    return (wide.operator in (">", ">=", "!=") and low > bound) or (
        low == bound and (wide.operator == ">=" or (strict and wide.operator in (">", "!=")))
    )


def may_overlap(one: Has, other: Has) -> bool:
    """False proves that no document satisfies both: their documents begin with different elements."""
    a, b = one.element.label, other.element.label
    return not (one.axis == other.axis == "child" and a is not None and b is not None and a != b)
