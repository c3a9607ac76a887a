"""What a condition means: its truth on one message, straight from the definition.

True, False or None (unknown), as in SQL. A missing attribute is null. A value of another kind than
the constant is unknown, as null is. This file shares no code with the normal form, so that each can
check the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from narrowcast.profiles.sql.like import like, read_pattern
from narrowcast.profiles.sql.syntax import (
    And,
    Between,
    Compare,
    Constant,
    Expression,
    Finds,
    In,
    IsNull,
    IsTrue,
    Like,
    Not,
    Or,
)
from narrowcast.profiles.sql.values import Plain, below, classify, is_nan, plain_constant, same
from narrowcast.profiles.xpath.xpath import xpath_of

Message = Mapping[str, Any]


def truth(expression: Expression, message: Message) -> bool | None:
    """The truth of a condition on a message. O(terms), less when a part decides early.

    >>> truth(Compare("price", ">", 100), {"price": 101}), truth(Compare("price", ">", 100), {})
    (True, None)
    """
    return _RULES[type(expression)](expression, message)


def _at_least(value: Plain, constant: Plain) -> bool:
    return not below(value, constant)  # NaN is above every number, so "not below" holds for it


def _at_most(value: Plain, constant: Plain) -> bool:
    return not is_nan(value) and (below(value, constant) or same(value, constant))


_COMPARE: dict[str, Callable[[Plain, Plain], bool]] = {
    "=": same,
    "<>": lambda value, constant: not same(value, constant),
    "<": below,
    "<=": _at_most,
    ">": lambda value, constant: not _at_most(value, constant),
    ">=": _at_least,
}


def _compare(term: Compare, message: Message) -> bool | None:
    kind, value = classify(message.get(term.attribute))
    if kind != term.kind:
        return None
    return _COMPARE[term.op](value, plain_constant(term.value))


def _between(term: Between, message: Message) -> bool | None:
    kind, value = classify(message.get(term.attribute))
    if kind != term.kind:
        return None
    return _at_least(value, plain_constant(term.low)) and _at_most(value, plain_constant(term.high))


def _in(term: In, message: Message) -> bool | None:
    kind, value = classify(message.get(term.attribute))
    if kind != term.kind:
        return None
    if _listed(value, term):
        return True
    return None if term.has_null else False


def _listed(value: Plain, term: In) -> bool:
    """Whether a value of the list's kind is the `same` as one of its constants. O(1): equal numbers hash alike."""
    if type(value) is not Decimal:
        return not is_nan(value) and value in term.members
    # Next to a decimal the float 100.1 means 100.1: the nearest float is the only one that can mean this decimal.
    near = float(value)
    if near in term.members and same(value, near):
        return True
    return value in term.members and value == value.to_integral_value()


def _like(term: Like, message: Message) -> bool | None:
    kind, value = classify(message.get(term.attribute))
    return like(value, read_pattern(term.pattern)) if kind == "string" else None


def _finds(term: Finds, message: Message) -> bool | None:
    kind, value = classify(message.get(term.attribute))
    return xpath_of(term.path).is_in(value) if kind == "string" else None


def _is_null(term: IsNull, message: Message) -> bool | None:
    return classify(message.get(term.attribute))[0] == "null"


def _and(node: And, message: Message) -> bool | None:
    result: bool | None = True
    for part in node.parts:
        found = truth(part, message)
        if found is False:
            return False
        if found is None:
            result = None
    return result


def _or(node: Or, message: Message) -> bool | None:
    result: bool | None = False
    for part in node.parts:
        found = truth(part, message)
        if found is True:
            return True
        if found is None:
            result = None
    return result


def _not(node: Not, message: Message) -> bool | None:
    found = truth(node.part, message)
    return None if found is None else not found


_RULES: dict[type, Callable[[Any, Message], bool | None]] = {
    Compare: _compare,
    Between: _between,
    In: _in,
    Like: _like,
    Finds: _finds,
    IsNull: _is_null,
    And: _and,
    Or: _or,
    Not: _not,
    IsTrue: lambda node, message: truth(node.part, message) is True,
    Constant: lambda node, message: node.value,
}
