"""The values one attribute may take: a set over null, numbers, strings, booleans, timestamps, others.

A message's value has exactly one kind. Comparing it with a constant of another kind is unknown, so
each kind keeps a part of its own here and no part says anything about another kind.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """Values between two bounds; `None` means no bound on that side (its closed flag is then False)."""

    low: int | float | str | None = None
    low_closed: bool = False
    high: int | float | str | None = None
    high_closed: bool = False


@dataclass(frozen=True, slots=True)
class StringPiece:
    """Strings inside an interval that match, or do not match, some LIKE patterns.

    `likes` holds (pattern, wanted): pattern is a tuple of literal runs and the wildcards ANY (`%`)
    and ONE (`_`); patterns that an interval can express are never kept here.
    """

    interval: Interval = Interval()
    likes: frozenset[tuple[tuple[str | object, ...], bool]] = frozenset()


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A set of values of one attribute. Intervals are sorted and disjoint.

    `other` stands for every value of a kind that constants do not have (lists, bytes, …).
    Timestamps are whole microseconds since 1970 in UTC.
    """

    null: bool = False
    other: bool = False
    number: tuple[Interval, ...] = ()
    string: tuple[StringPiece, ...] = ()
    boolean: frozenset[bool] = frozenset()
    timestamp: tuple[Interval, ...] = ()
