"""A profile as a chain of Python closures: the same answer as `Profile.matches`, several times as fast.

Values as messages mostly have them (text, whole and floating numbers) are compared directly; whatever
else comes along (null, NaN, decimals, moments, a value of another kind) goes to the definition.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from narrowcast.profiles import Profile
from narrowcast.profiles.sql.syntax import And, Between, Compare, Constant, Expression, Finds, In, IsTrue, Not, Or
from narrowcast.profiles.sql.truth import truth
from narrowcast.profiles.xpath.xpath import xpath_of

Test = Callable[[Mapping[str, Any]], bool | None]

_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@lru_cache(maxsize=65_536)
def predicate(profile: Profile) -> Callable[[Mapping[str, Any]], bool]:
    """A function that says whether a message matches.

    >>> wanted = predicate(Profile.parse("symbol IN ('IBM', 'GE') AND price > 100"))
    >>> wanted({"symbol": "GE", "price": 101}), wanted({"symbol": "GE"})
    (True, False)
    """
    test = _compile(profile.expression)
    return lambda message: test(message) is True


def _compile(expression: Expression) -> Test:
    if isinstance(expression, And):
        return _and(tuple(_compile(part) for part in expression.parts))
    if isinstance(expression, Or):
        return _or(tuple(_compile(part) for part in expression.parts))
    if isinstance(expression, Not):
        return _not(_compile(expression.part))
    if isinstance(expression, IsTrue):
        inner = _compile(expression.part)
        return lambda message: inner(message) is True
    if isinstance(expression, Constant):
        value = expression.value
        return lambda message: value
    return _term(expression) or (lambda message: truth(expression, message))


def _and(tests: tuple[Test, ...]) -> Test:
    def test(message: Mapping[str, Any]) -> bool | None:
        result: bool | None = True
        for part in tests:
            found = part(message)
            if found is False:
                return False
            if found is None:
                result = None
        return result

    return test


def _or(tests: tuple[Test, ...]) -> Test:
    def test(message: Mapping[str, Any]) -> bool | None:
        result: bool | None = False
        for part in tests:
            found = part(message)
            if found is True:
                return True
            if found is None:
                result = None
        return result

    return test


def _not(inner: Test) -> Test:
    def test(message: Mapping[str, Any]) -> bool | None:
        found = inner(message)
        return None if found is None else not found

    return test


def _term(term: Expression) -> Test | None:
    """The fast form of a term, if it has one."""
    if isinstance(term, In) and term.kind in ("string", "number"):
        return _in(term, (str,) if term.kind == "string" else (int, float))
    if isinstance(term, Finds):
        return _finds(term)
    if isinstance(term, Compare) and term.kind == "string":
        return _text(term)
    if isinstance(term, Compare) and term.kind == "number" and term.value == term.value:
        return _number(term)
    if isinstance(term, Between) and term.kind == "number":
        return _between(term)
    return None


def _in(term: In, kinds: tuple[type, ...]) -> Test:
    name, values, miss = term.attribute, term.members, None if term.has_null else False

    def test(message: Mapping[str, Any]) -> bool | None:
        value = message.get(name)
        if type(value) in kinds and value == value:
            return True if value in values else miss
        return truth(term, message)

    return test


def _finds(term: Finds) -> Test:
    name, is_in = term.attribute, xpath_of(term.path).is_in

    def test(message: Mapping[str, Any]) -> bool | None:
        value = message.get(name)
        return is_in(value) if type(value) is str else truth(term, message)

    return test


def _text(term: Compare) -> Test:
    name, constant, holds = term.attribute, term.value, _OPERATORS[term.op]

    def test(message: Mapping[str, Any]) -> bool | None:
        value = message.get(name)
        return holds(value, constant) if type(value) is str else truth(term, message)

    return test


def _number(term: Compare) -> Test:
    name, constant, holds = term.attribute, term.value, _OPERATORS[term.op]

    def test(message: Mapping[str, Any]) -> bool | None:
        value = message.get(name)
        kind = type(value)
        if kind is int or (kind is float and value == value):
            return holds(value, constant)
        return truth(term, message)

    return test


def _between(term: Between) -> Test:
    name, low, high = term.attribute, term.low, term.high

    def test(message: Mapping[str, Any]) -> bool | None:
        value = message.get(name)
        kind = type(value)
        if kind is int or (kind is float and value == value):
            return bool(low <= value <= high)  # type: ignore[operator]
        return truth(term, message)

    return test
