"""An XPath profile as a tree pattern, and what its tests on values mean (XPath 1.0).

Whether a document matches does not depend on which node a path ends at, so `/a/b[@x]/c` is the
pattern "an element a with a child b that has an attribute x and a child c".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Axis = Literal["child", "descendant"]
Kind = Literal["attribute", "text", "value", "local-name", "namespace-uri"]
Operator = Literal["=", "!=", "<", "<=", ">", ">="]

_NUMBER = re.compile(r"[ \t\r\n]*(-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))[ \t\r\n]*")


@dataclass(frozen=True, slots=True)
class ValueTest:
    """A condition on values of an element: of an attribute, of some text child, of all its text, or on its name.

    `name` is the attribute's (None: any attribute). Without an operator the value need only exist.
    """

    kind: Kind
    name: str | None = None
    operator: Operator | None = None
    literal: str | float | None = None


@dataclass(frozen=True, slots=True)
class Has:
    """There is a child, or a descendant, that satisfies a pattern."""

    axis: Axis
    element: Element


@dataclass(frozen=True, slots=True)
class PatternNot:
    part: Condition


@dataclass(frozen=True, slots=True)
class All:
    parts: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class Some:
    parts: tuple[Condition, ...] = ()


Condition = ValueTest | Has | PatternNot | All | Some


@dataclass(frozen=True, slots=True)
class Element:
    """An element of this name (None: any) under this condition."""

    label: str | None
    condition: All = All()


def conjunction(parts: list[Condition]) -> All:
    """All of the parts, nested ones spread out, each once."""
    flat: list[Condition] = []
    for part in parts:
        flat += part.parts if isinstance(part, All) else [part]
    return All(tuple(dict.fromkeys(flat)))


def name_part(label: str, kind: Kind) -> str:
    """The local name, or the namespace's address, of a name that reads `address}name`.

    >>> name_part("urn:n}symbol", "local-name"), name_part("urn:n}symbol", "namespace-uri")
    ('symbol', 'urn:n')
    """
    address, _, local = label.rpartition("}")
    return local if kind == "local-name" else address


def number(text: str) -> float:
    """XPath's number(): digits with at most a minus and a point, else not a number (no exponents)."""
    found = _NUMBER.fullmatch(text)
    return float(found[1]) if found else math.nan


def holds(value: str, operator: Operator | None, literal: str | float | None) -> bool:
    """Compare one value with a constant: as strings only for = and != with a string, else as numbers."""
    if operator is None or literal is None:
        return True
    if isinstance(literal, str) and operator in ("=", "!="):
        return (value == literal) == (operator == "=")
    left, right = number(value), number(literal) if isinstance(literal, str) else literal
    return compare(left, operator, right)


def compare(left: float, operator: Operator, right: float) -> bool:
    """Two numbers by IEEE rules: not-a-number differs from everything and is in no order."""
    if operator == "=":
        return left == right
    if operator == "!=":
        return left != right
    if operator in ("<", "<="):
        return left < right or (operator == "<=" and left == right)
    return left > right or (operator == ">=" and left == right)


def elements(condition: Condition) -> Iterator[Element]:
    """Every element of a pattern, inner ones first."""
    if isinstance(condition, Has):
        yield from elements(condition.element.condition)
        yield condition.element
    elif isinstance(condition, PatternNot):
        yield from elements(condition.part)
    elif isinstance(condition, All | Some):
        for part in condition.parts:
            yield from elements(part)


def needed_labels(pattern: Has) -> frozenset[str]:
    """Names that every document satisfying the pattern has: a quick test before the exact one."""
    needed = {pattern.element.label} - {None}
    for part in pattern.element.condition.parts:
        if isinstance(part, Has):
            needed |= needed_labels(part)
    return frozenset(name for name in needed if name is not None)


def alternatives(condition: Condition, wanted: bool = True) -> int:
    """How many alternatives of plain literals an element's condition, or its opposite, spreads into."""
    if isinstance(condition, PatternNot):
        return alternatives(condition.part, not wanted)
    if isinstance(condition, All | Some):
        counts = [alternatives(part, wanted) for part in condition.parts]
        return sum(counts) if isinstance(condition, All) != wanted else math.prod(counts)
    return 1
