"""Profiles by their shape: the same text with other constants is parsed once, and its constants filled in.

Most subscriptions are a few sentences with changing constants. A text is cut at its constants; what
stands between them is its shape. The first text of a shape goes through the grammar, and what comes
out is kept as a template. All that depends on the constants themselves is done anew for each text:
reading them, their kinds, the values of IN lists, LIKE patterns, limits. Whatever is not as it was in
the first text (a constant of another kind, a date that is none, a list of nothing but NULL) is left to
the grammar, so that results and errors are the same as without templates.

Why that is so: shape and parser cut with the same regular expressions, and a template is kept only if
both found the same constants. The tokens of another text of that shape, with constants of the same
kinds, then differ in nothing but the constants, and the grammar looks at no constant.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from narrowcast.profiles.algebra.normal_form import count_conjuncts
from narrowcast.profiles.limits import ProfileLimits, check_size, check_text, depth
from narrowcast.profiles.sql.constants import (
    LIST,
    MOMENT,
    NUMBER,
    STRING,
    read_list,
    read_number,
    read_string,
    read_written_moment,
)
from narrowcast.profiles.sql.like import read_pattern, write_pattern
from narrowcast.profiles.sql.parse import Parsed, read
from narrowcast.profiles.sql.syntax import (
    XML,
    And,
    Between,
    Compare,
    Constant,
    Expression,
    Finds,
    In,
    IsNull,
    IsTrue,
    Kind,
    Like,
    Not,
    Or,
    count_terms,
    longest_list,
)
from narrowcast.profiles.xpath.xpath import xpath_of

Shape: TypeAlias = tuple[str, ...]
Take: TypeAlias = Callable[[], str]  # the next constant, as it is written
Maker: TypeAlias = Callable[[Take], Expression]

MOST_SHAPES = 4_096
LARGEST_SHAPE = 4_096  # characters: what planners write is not kept
_CONSTANT = re.compile(rf"({LIST}|{STRING}|(?<![\w.])(?:{NUMBER}|{MOMENT}))")
_READERS: dict[Kind, Callable[[str], Any]] = {
    "number": read_number,
    "string": read_string,
    "timestamp": read_written_moment,
}


@dataclass(frozen=True, slots=True)
class _Template:
    """How to make the condition from its constants, and how large it is whatever they are."""

    make: Maker
    depth: int
    n_terms: int
    n_conjuncts: int

    def fits(self, limits: ProfileLimits) -> bool:
        return self.depth <= limits.depth and self.n_terms <= limits.n_terms and self.n_conjuncts <= limits.n_conjuncts


_TEMPLATES: dict[Shape, _Template | None] = {}


def parse(text: str, limits: ProfileLimits) -> Expression:
    """The condition that a text says, within limits; ProfileError names the place and how to fix it.

    >>> from narrowcast.profiles.limits import LIMITS
    >>> [parse(f"price > {price}", LIMITS).value for price in (100, 101.5)]
    [100, 101.5]
    """
    check_text(text, limits)
    if text.lstrip().startswith("/"):
        return Finds(XML, xpath_of(text.strip()).text)
    parts = _CONSTANT.split(text)
    shape = tuple(parts[::2])
    template = _TEMPLATES.get(shape)
    if template is not None and template.fits(limits):
        filled = _fill(template, parts[1::2])
        # A list of n values takes more than n characters.
        if filled is not None and (len(text) <= limits.n_values or longest_list(filled) <= limits.n_values):
            return filled
    found = read(text, limits.depth)
    check_size(found.expression, text, limits)
    if shape not in _TEMPLATES and sum(map(len, shape)) <= LARGEST_SHAPE:
        if len(_TEMPLATES) >= MOST_SHAPES:
            _TEMPLATES.clear()
        _TEMPLATES[shape] = _template(found, parts)
    return found.expression


def _template(found: Parsed, parts: list[str]) -> _Template | None:
    """The template of a text that was parsed; None if its constants are not all that can change in it."""
    expression = found.expression
    template = _Template(
        _maker(expression), max(found.nested, depth(expression)), count_terms(expression), count_conjuncts(expression)
    )
    same = found.constants == _places(parts) and _fill(template, parts[1::2]) == expression
    return template if same else None


def _places(parts: list[str]) -> list[tuple[int, int]]:
    """Where the constants of a cut text stand: every second part is one."""
    places, end = [], 0
    for k, part in enumerate(parts):
        start, end = end, end + len(part)
        if k % 2:
            places.append((start, end))
    return places


def _fill(template: _Template, constants: list[str]) -> Expression | None:
    """The condition with these constants; None if they are not of the template's kinds, or wrong, or left over."""
    waiting = iter(constants)
    try:
        made = template.make(waiting.__next__)
    except (ValueError, OverflowError, StopIteration):
        return None
    return made if next(waiting, None) is None else None


def _maker(node: Expression) -> Maker:
    """A function that makes a node anew, taking its constants from left to right as the text has them."""
    match node:
        case And():
            parts = tuple(map(_maker, node.parts))
            return lambda take: And(tuple([make(take) for make in parts]))
        case Or():
            parts = tuple(map(_maker, node.parts))
            return lambda take: Or(tuple([make(take) for make in parts]))
        case Not():
            inner = _maker(node.part)
            return lambda take: Not(inner(take))
        case IsTrue():
            inner = _maker(node.part)
            return lambda take: IsTrue(inner(take))
        case IsNull() | Constant():
            return lambda take: node
        case _:
            return _term_maker(node)


def _term_maker(term: Compare | Between | In | Like | Finds) -> Maker:
    attribute = term.attribute
    if isinstance(term, In):
        return _list_maker(term)
    if isinstance(term, Like):
        return lambda take: Like(attribute, write_pattern(read_pattern(read_string(take()))))
    if isinstance(term, Finds):
        return lambda take: Finds(attribute, xpath_of(read_string(take())).text)
    if term.kind == "boolean":
        return lambda take: term  # TRUE and FALSE are words of the shape
    value = _READERS[term.kind]
    if isinstance(term, Compare):
        op = term.op
        return lambda take: Compare(attribute, op, value(take()))
    return lambda take: Between(attribute, value(take()), value(take()))


def _list_maker(term: In) -> Maker:
    attribute, kind = term.attribute, term.kind

    def make(take: Take) -> Expression:
        values, has_null = read_list(take())
        if not values:
            raise ValueError("nothing but NULL")
        made = In(attribute, values, has_null)
        if made.kind != kind:
            raise ValueError("values of another kind")
        return made

    return make
