"""How large a profile may be that a user writes. What planners put together is not bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from narrowcast.errors import ProfileError
from narrowcast.profiles.algebra.normal_form import exceeds
from narrowcast.profiles.sql.syntax import And, Expression, IsTrue, Not, Or, count_terms


@dataclass(frozen=True, slots=True)
class ProfileLimits:
    """The most of each. An IN list counts a term for every value it lists."""

    n_bytes: int = 4096
    n_terms: int = 64
    depth: int = 16
    n_conjuncts: int = 150


LIMITS = ProfileLimits()
# Only depth stays bound: evaluating and printing go down the tree by recursion.
UNBOUND = ProfileLimits(n_bytes=2**62, n_terms=2**62, depth=100, n_conjuncts=2**62)


def check(text: str, parse: Callable[[str, int], Expression], limits: ProfileLimits) -> Expression:
    """Parse a text and refuse it with one line if it is too large. Cheap on hostile text."""
    if not isinstance(text, str):
        raise ProfileError(f"a profile is text, not {type(text).__name__}", hint="write it as a WHERE clause")
    try:
        n_bytes = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError as error:
        message = f"not valid Unicode at offset {error.start}"
        raise ProfileError(message, text=text, position=error.start, hint="remove the lone surrogate") from error
    if n_bytes > limits.n_bytes:
        message = f"the profile has {n_bytes} bytes and may have {limits.n_bytes}"
        raise ProfileError(message, text=text, hint="split it into several subscriptions")
    return check_size(parse(text, limits.depth), text, limits)


def check_size(expression: Expression, text: str, limits: ProfileLimits) -> Expression:
    """Refuse a condition with too much nesting, too many terms or too many conjuncts."""
    if depth(expression) > limits.depth:
        message = f"the profile is nested more than {limits.depth} deep"
        raise ProfileError(message, text=text, hint="AND, OR, NOT and IS TRUE inside one another count")
    n_terms = count_terms(expression)
    if n_terms > limits.n_terms:
        message = f"the profile has {n_terms} terms and may have {limits.n_terms}"
        raise ProfileError(message, text=text, hint="every comparison counts, and every value of an IN list")
    if exceeds(expression, limits.n_conjuncts):
        message = f"the profile has more than {limits.n_conjuncts} conjuncts in normal form"
        raise ProfileError(
            message, text=text, hint="an AND of many ORs multiplies; split it into several subscriptions"
        )
    return expression


def depth(expression: Expression) -> int:
    """How many ANDs, ORs, NOTs and IS TRUEs stand inside one another. Without recursion."""
    deepest, level = 0, [expression]
    while True:
        following: list[Expression] = []
        for node in level:
            if isinstance(node, (And, Or)):
                following.extend(node.parts)
            elif isinstance(node, (Not, IsTrue)):
                following.append(node.part)
        if not following:
            return deepest
        deepest, level = deepest + 1, following
