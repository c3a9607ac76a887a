"""The values one attribute may take: a set over null, numbers, strings, booleans, timestamps, others.

A message's value has exactly one kind. Comparing it with a constant of another kind is unknown, so
each kind keeps a part of its own here and no part says anything about another kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

from narrowcast.profiles.algebra import emptiness, intervals
from narrowcast.profiles.algebra.emptiness import TooComplexError
from narrowcast.profiles.algebra.intervals import ANYTHING, EVERYTHING, Interval, Scale
from narrowcast.profiles.sql.like import Likes, fits
from narrowcast.profiles.sql.values import below, classify, is_nan, same

MOST_PIECES = 2_000


class StringPiece(NamedTuple):
    """Strings inside an interval that match, or do not match, some LIKE patterns or paths.

    `likes` holds (pattern, wanted): pattern is a tuple of literal runs and the wildcards ANY (`%`)
    and ONE (`_`), or an XPath that is to find something in the string as a document; patterns that an
    interval can express are never kept here.
    """

    interval: Interval = ANYTHING
    likes: Likes = frozenset()

    def holds(self, text: str) -> bool:
        """Whether a string is in the piece."""
        return _inside(text, self.interval) and all(fits(text, pattern) == wanted for pattern, wanted in self.likes)

    def is_empty(self) -> bool:
        """Whether it is certain that no string is in the piece; a piece too hard to tell is not empty."""
        if not self.likes:
            return not intervals.union((self.interval,), "string")
        if len(self.likes) == 1 and self.interval == ANYTHING:
            return False  # a kept pattern matches something and misses something
        return emptiness.is_empty(self.interval, self.likes) is True


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A set of values of one attribute. Intervals are sorted and disjoint.

    `other` stands for every value of a kind that constants do not have (lists, bytes, …).
    Timestamps are whole microseconds since 1970 in UTC. NaN lies in the number intervals that have
    no upper bound. String pieces without patterns come first, sorted and disjoint; pieces with
    patterns may overlap one another.
    """

    null: bool = False
    other: bool = False
    number: tuple[Interval, ...] = ()
    string: tuple[StringPiece, ...] = ()
    boolean: frozenset[bool] = frozenset()
    timestamp: tuple[Interval, ...] = ()

    def contains(self, value: Any) -> bool:
        """Whether a message's value is in the set.

        >>> NOT_NULL.contains(3), NOT_NULL.contains(None)
        (True, False)
        """
        kind, plain = classify(value)
        match kind:
            case "null":
                return self.null
            case "number":
                return any(_inside(plain, interval) for interval in self.number)
            case "string":
                return any(piece.holds(plain) for piece in self.string)
            case "boolean":
                return plain in self.boolean
            case "timestamp":
                return any(_inside(plain, interval) for interval in self.timestamp)
            case _:
                return self.other

    def union(self, other: ValueSet) -> ValueSet:
        """Values in either set."""
        return union((self, other))

    def intersection(self, other: ValueSet) -> ValueSet:
        """Values in both sets. Pieces that are empty for a deeper reason may stay; see `is_empty`."""
        return ValueSet(
            self.null and other.null,
            self.other and other.other,
            intervals.intersection(self.number, other.number, "number"),
            _shared_strings(self.string, other.string),
            self.boolean & other.boolean,
            intervals.intersection(self.timestamp, other.timestamp, "timestamp"),
        )

    def complement(self) -> ValueSet:
        """Values not in the set, null among them."""
        return ValueSet(
            not self.null,
            not self.other,
            intervals.complement(self.number, "number"),
            _other_strings(self.string),
            _BOOLEANS - self.boolean,
            intervals.complement(self.timestamp, "timestamp"),
        )

    def minus(self, other: ValueSet) -> ValueSet:
        """Values in this set and not in the other."""
        return ValueSet(
            self.null and not other.null,
            self.other and not other.other,
            intervals.minus(self.number, other.number, "number"),
            _strings_minus(self.string, other.string),
            self.boolean - other.boolean,
            intervals.minus(self.timestamp, other.timestamp, "timestamp"),
        )

    def is_empty(self) -> bool:
        """Whether it is certain that no value is in the set. Exact but for LIKE past its budget."""
        if self.null or self.other or self.number or self.boolean or self.timestamp:
            return False
        return all(piece.is_empty() for piece in self.string)

    def looks_empty(self) -> bool:
        """Whether nothing is kept: quick, and misses only contradictory patterns."""
        return self == NOTHING

    def overlaps(self, other: ValueSet) -> bool:
        """Whether a value may be in both sets; no is certain."""
        if (self.null and other.null) or (self.other and other.other) or self.boolean & other.boolean:
            return True
        if _meet(self.number, other.number, "number") or _meet(self.timestamp, other.timestamp, "timestamp"):
            return True
        if not self.string or not other.string:
            return False
        if len(self.string) == 1 and len(other.string) == 1:
            mine, theirs = self.string[0], other.string[0]
            if not _meet((mine.interval,), (theirs.interval,), "string"):
                return False
            if not mine.likes and not theirs.likes:
                return True
        return not all(piece.is_empty() for piece in _shared_strings(self.string, other.string))

    def within(self, other: ValueSet) -> bool:
        """Whether every value is certainly in the other set."""
        return self == other or self.minus(other).is_empty()


_BOOLEANS = frozenset((True, False))
NOTHING = ValueSet()
STRINGS = (StringPiece(),)
EVERY_VALUE = ValueSet(True, True, EVERYTHING, STRINGS, _BOOLEANS, EVERYTHING)
NULL = ValueSet(null=True)
NOT_NULL = ValueSet(False, True, EVERYTHING, STRINGS, _BOOLEANS, EVERYTHING)


def union(sets: Iterable[ValueSet]) -> ValueSet:
    """Values in any of the sets. O(n log n) in their pieces."""
    every = tuple(sets)
    if len(every) == 1:
        return every[0]
    return ValueSet(
        any(s.null for s in every),
        any(s.other for s in every),
        intervals.union((i for s in every for i in s.number), "number"),
        _any_string(piece for s in every for piece in s.string),
        frozenset(b for s in every for b in s.boolean),
        intervals.union((i for s in every for i in s.timestamp), "timestamp"),
    )


def _inside(value: Any, interval: Interval) -> bool:
    if interval.low is not None and (
        below(value, interval.low) or (not interval.low_closed and same(value, interval.low))
    ):
        return False
    if interval.high is None:
        return True
    return not is_nan(value) and (below(value, interval.high) or (interval.high_closed and same(value, interval.high)))


def _meet(left: Sequence[Interval], right: Sequence[Interval], scale: Scale) -> bool:
    return bool(left and right) and intervals.overlapping(left, right, scale)


def _split(pieces: Iterable[StringPiece]) -> tuple[list[Interval], list[StringPiece]]:
    every = tuple(pieces)
    patterned = [piece for piece in every if piece[1]]
    return [piece[0] for piece in every if not piece[1]], patterned


def _any_string(pieces: Iterable[StringPiece]) -> tuple[StringPiece, ...]:
    plain, patterned = _split(pieces)
    merged = intervals.union(plain, "string")
    if merged == EVERYTHING:
        return STRINGS
    grouped: dict[Likes, list[Interval]] = {}
    for piece in patterned:
        grouped.setdefault(piece.likes, []).append(piece.interval)
    kept = [
        StringPiece(interval, likes)
        for likes, parts in grouped.items()
        for interval in intervals.union(parts, "string")
        if not any(intervals.within(interval, outer, "string") for outer in merged)
    ]
    if len(kept) > 1:
        kept.sort(key=lambda piece: (intervals.order(piece.interval, "string"), _likes_text(piece.likes)))
    return (*(StringPiece(interval) for interval in merged), *kept)


def _likes_text(likes: Likes) -> list[str]:
    return sorted(map(repr, likes))


def _shared_strings(left: Sequence[StringPiece], right: Sequence[StringPiece]) -> tuple[StringPiece, ...]:
    if left == STRINGS or not right:
        return tuple(right)
    if right == STRINGS or not left:
        return tuple(left)
    (plain_left, likes_left), (plain_right, likes_right) = _split(left), _split(right)
    shared = [StringPiece(interval) for interval in intervals.intersection(plain_left, plain_right, "string")]
    pairs = [(a, b) for a in likes_left for b in right] + [(a, b) for a in left if not a.likes for b in likes_right]
    if not pairs:
        return tuple(shared)
    if len(pairs) > MOST_PIECES:
        raise TooComplexError
    for a, b in pairs:
        likes = a.likes | b.likes
        if any((pattern, not wanted) in likes for pattern, wanted in likes):
            continue
        both = intervals.intersection((a.interval,), (b.interval,), "string")
        shared.extend(StringPiece(interval, likes) for interval in both)
    return _any_string(shared)


def _strings_minus(left: Sequence[StringPiece], right: Sequence[StringPiece]) -> tuple[StringPiece, ...]:
    if not left or not right:
        return tuple(left)
    (plain, likes), (away, likes_away) = _split(left), _split(right)
    if likes or likes_away:
        return _shared_strings(left, _other_strings(right))
    return tuple(map(StringPiece, intervals.minus(plain, away, "string")))


def _other_strings(pieces: Sequence[StringPiece]) -> tuple[StringPiece, ...]:
    plain, patterned = _split(pieces)
    rest = tuple(StringPiece(interval) for interval in intervals.complement(plain, "string"))
    return reduce(_shared_strings, (_outside(piece) for piece in patterned), rest)


def _outside(piece: StringPiece) -> tuple[StringPiece, ...]:
    outside = [StringPiece(interval) for interval in intervals.complement((piece.interval,), "string")]
    outside += [StringPiece(ANYTHING, frozenset({(pattern, not wanted)})) for pattern, wanted in piece.likes]
    return _any_string(outside)
