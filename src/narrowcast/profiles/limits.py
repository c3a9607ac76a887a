"""How large a profile may be that a user writes. What planners put together is not bound."""

from __future__ import annotations

import re
from dataclasses import dataclass

from narrowcast.errors import ProfileError
from narrowcast.profiles.algebra.normal_form import exceeds
from narrowcast.profiles.sql.constants import LIST, STRING
from narrowcast.profiles.sql.syntax import And, Expression, IsTrue, Not, Or, count_terms, longest_list


@dataclass(frozen=True, slots=True)
class ProfileLimits:
    """The most of each. An IN list is one term, and its values do not count as text."""

    n_bytes: int = 4096
    n_terms: int = 64
    n_values: int = 10_000  # of one IN list
    depth: int = 16
    n_conjuncts: int = 150


LIMITS = ProfileLimits()
# Only depth stays bound: evaluating and printing go down the tree by recursion.
UNBOUND = ProfileLimits(n_bytes=2**62, n_terms=2**62, n_values=2**62, depth=100, n_conjuncts=2**62)
# Quoted names and texts are stepped over; an IN list is noted, or only where it begins if it is none.
_STEPS = re.compile(rf"""`[^`]*`|"[^"]*"|\b(?i:in)\s*+(?:(?P<list>{LIST})|(?P<open>\())|{STRING}""")


def check_text(text: str, limits: ProfileLimits) -> None:
    """Refuse what is not text, or too much of it, with one line. Linear, before anything is parsed."""
    if not isinstance(text, str):
        raise ProfileError(f"profile must be text, got {type(text).__name__}", hint="write it as a WHERE clause")
    try:
        n_bytes = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError as error:
        message = f"not valid Unicode at offset {error.start}"
        raise ProfileError(message, text=text, position=error.start, hint="remove the lone surrogate") from error
    if n_bytes > limits.n_bytes:
        _check_beside_lists(text, n_bytes, limits)


def _check_beside_lists(text: str, n_bytes: int, limits: ProfileLimits) -> None:
    """Refuse a text that is too large beside its IN lists, or because what begins as one is none."""
    listed, malformed = 0, None
    for found in _STEPS.finditer(text):
        listed += len((found["list"] or "").encode())
        if found["open"] and malformed is None and found.start() - listed <= limits.n_bytes:
            malformed = found.start("open")
    if n_bytes - listed <= limits.n_bytes:
        return
    if malformed is not None:
        message = f"the IN list at offset {malformed} must hold constants between commas and end with )"
        raise ProfileError(message, text=text, position=malformed, hint="text takes single quotes")
    beside = " beside its IN lists" if listed else ""
    message = f"profile must have at most {limits.n_bytes} bytes{beside}, got {n_bytes - listed}"
    raise ProfileError(message, text=text, hint="split it into several subscriptions")


def check_size(expression: Expression, text: str, limits: ProfileLimits) -> Expression:
    """Refuse a condition with too much nesting, too many terms or too many conjuncts."""
    if depth(expression) > limits.depth:
        message = f"the profile is nested more than {limits.depth} deep"
        raise ProfileError(message, text=text, hint="AND, OR, NOT and IS TRUE inside one another count")
    n_terms = count_terms(expression)
    if n_terms > limits.n_terms:
        message = f"profile must have at most {limits.n_terms} terms, got {n_terms}"
        raise ProfileError(message, text=text, hint="every comparison counts, an IN list as one")
    n_values = longest_list(expression)
    if n_values > limits.n_values:
        message = f"an IN list must have at most {limits.n_values:,} values, got {n_values:,}"
        raise ProfileError(message, text=text, hint="split it into several subscriptions")
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
