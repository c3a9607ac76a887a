"""LIKE patterns: reading them, and matching without backtracking.

A pattern is a tuple of literal runs and the wildcards ANY (`%`, any text) and ONE (`_`, one code
point). A run of wildcards is kept as its ONEs followed by at most one ANY: `%_%` means `_%`.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Final, TypeAlias

from narrowcast.profiles.xpath.xpath import XPath


class Wildcard(Enum):
    """`%` and `_`."""

    ANY = "%"
    ONE = "_"

    def __repr__(self) -> str:
        return self.name


ANY: Final = Wildcard.ANY
ONE: Final = Wildcard.ONE
Pattern: TypeAlias = tuple[str | Wildcard, ...]
# Patterns, or paths into the text as a document, with whether each is to match.
Likes: TypeAlias = frozenset[tuple[Pattern | XPath, bool]]


class EscapeError(ValueError):
    """The escape character stands where it escapes nothing; `args[0]` is its offset in the pattern."""


@lru_cache(maxsize=65_536)
def read_pattern(text: str, escape: str = "\\") -> Pattern:
    r"""A pattern's parts. The escape may stand only before `%`, `_` or itself, as in Spark.

    >>> read_pattern(r"100\%%_x")
    ('100%', ONE, ANY, 'x')
    """
    parts: list[str | Wildcard] = []
    literal: list[str] = []
    ones, any_text = 0, False

    def close_wildcards() -> None:
        nonlocal ones, any_text
        parts.extend([ONE] * ones + [ANY] * any_text)
        ones, any_text = 0, False

    position = 0
    while position < len(text):
        char = text[position]
        escaped = char == escape
        if escaped:
            position += 1
            char = text[position : position + 1]
            if char == "" or char not in ("%", "_", escape):
                raise EscapeError(position - 1)
        position += 1
        if char in "%_" and not escaped:
            if literal:
                parts.append("".join(literal))
                literal.clear()
            ones, any_text = ones + (char == "_"), any_text or char == "%"
        else:
            close_wildcards()
            literal.append(char)
    if literal:
        parts.append("".join(literal))
    close_wildcards()
    return tuple(parts)


def write_pattern(pattern: Pattern) -> str:
    r"""The text of a pattern, with the backslash as escape.

    >>> write_pattern(("100%", ANY))
    '100\\%%'
    """
    return "".join(
        part.value if isinstance(part, Wildcard) else part.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        for part in pattern
    )


@lru_cache(maxsize=65_536)
def _segments(pattern: Pattern) -> tuple[Pattern, ...]:
    """The stretches between ANYs; the first and last are anchored and may be empty."""
    segments: list[list[str | Wildcard]] = [[]]
    for part in pattern:
        if part is ANY:
            segments.append([])
        else:
            segments[-1].append(part)
    return tuple(tuple(segment) for segment in segments)


def _length(segment: Pattern) -> int:
    return sum(1 if isinstance(part, Wildcard) else len(part) for part in segment)


def _fits(segment: Pattern, text: str, at: int) -> bool:
    for part in segment:
        if isinstance(part, Wildcard):
            at += 1
        elif text.startswith(part, at):
            at += len(part)
        else:
            return False
    return True


def _find(segment: Pattern, text: str, start: int, end: int) -> int:
    """The first place in text[start:end] where the segment fits, or -1."""
    if len(segment) == 1 and isinstance(segment[0], str):
        return text.find(segment[0], start, end)
    length = _length(segment)
    return next((at for at in range(start, end - length + 1) if _fits(segment, text, at)), -1)


def like(text: str, pattern: Pattern) -> bool:
    """Whether the text matches. O(length of text · length of pattern) at worst.

    Taking the leftmost place for every stretch between two `%` is always right: it leaves the most
    text to the stretches after it. So nothing is ever tried twice.

    >>> like("abcabd", read_pattern("a%b_"))
    True
    """
    segments = _segments(pattern)
    head, tail = segments[0], segments[-1]
    if len(segments) == 1:
        return len(text) == _length(head) and _fits(head, text, 0)
    start, end = _length(head), len(text) - _length(tail)
    if start > end or not _fits(head, text, 0) or not _fits(tail, text, end):
        return False
    for segment in segments[1:-1]:
        at = _find(segment, text, start, end)
        if at < 0:
            return False
        start = at + _length(segment)
    return True


def fits(text: str, pattern: Pattern | XPath) -> bool:
    """Whether the text matches a pattern, or a path finds something in it as a document."""
    return pattern.is_in(text) if isinstance(pattern, XPath) else like(text, pattern)
