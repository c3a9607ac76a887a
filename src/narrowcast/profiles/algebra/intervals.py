r"""Sorted, disjoint intervals of one ordered kind: union, intersection, complement.

An interval is worked on as a pair of cuts, places between values: (0, v, 0) lies just before v and
(0, v, 1) just after it, (-1,) before everything and (1,) after. Half-open stretches between cuts make
every operation plain sweeping. Two kinds have a next value, and one cut then has two names; the cut
before the next value is the one used:
- after the string s comes s + NUL, so ('a', 'a\0') is empty;
- timestamps are whole microseconds.
Numbers have no next value: an attribute may hold floats and decimals. NaN stands above every number,
so it lies in exactly the intervals that have no upper bound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Scale: TypeAlias = Literal["number", "string", "timestamp"]
Cut: TypeAlias = tuple[Any, ...]
Stretch: TypeAlias = tuple[Cut, Cut]

_BOTTOM: Cut = (-1,)
_TOP: Cut = (1,)


@dataclass(frozen=True, slots=True)
class Interval:
    """Values between two bounds; `None` means no bound on that side (its closed flag is then False)."""

    low: int | float | str | None = None
    low_closed: bool = False
    high: int | float | str | None = None
    high_closed: bool = False


ANYTHING = Interval()
EVERYTHING = (ANYTHING,)


def _after(value: Any, scale: Scale) -> Cut:
    if scale == "string":
        return (0, value + "\0", 0)
    return (0, value + 1, 0) if scale == "timestamp" else (0, value, 1)


def _bottom(scale: Scale) -> Cut:
    # The empty string is the least: before it and before everything are one cut.
    return (0, "", 0) if scale == "string" else _BOTTOM


def _stretch(interval: Interval, scale: Scale) -> Stretch:
    low, high = _bottom(scale), _TOP
    if interval.low is not None:
        low = (0, interval.low, 0) if interval.low_closed else _after(interval.low, scale)
    if interval.high is not None:
        high = _after(interval.high, scale) if interval.high_closed else (0, interval.high, 0)
    return low, high


def _interval(stretch: Stretch, scale: Scale) -> Interval:
    (low, low_closed), (high, high_closed) = _low(stretch[0], scale), _high(stretch[1], scale)
    return Interval(low, low_closed, high, high_closed)


def _low(cut: Cut, scale: Scale) -> tuple[Any, bool]:
    if len(cut) == 1 or cut == _bottom(scale):
        return None, False
    value = cut[1]
    if scale == "string" and value.endswith("\0"):
        return value[:-1], False
    return value, cut[2] == 0


def _high(cut: Cut, scale: Scale) -> tuple[Any, bool]:
    if len(cut) == 1:
        return None, False
    value = cut[1]
    if scale == "string" and value.endswith("\0"):
        return value[:-1], True
    return (value - 1, True) if scale == "timestamp" else (value, cut[2] == 1)


def _stretches(intervals: Iterable[Interval], scale: Scale) -> list[Stretch]:
    return [stretch for stretch in (_stretch(i, scale) for i in intervals) if stretch[0] < stretch[1]]


def _intervals(stretches: Iterable[Stretch], scale: Scale) -> tuple[Interval, ...]:
    return tuple(_interval(stretch, scale) for stretch in stretches)


def union(intervals: Iterable[Interval], scale: Scale) -> tuple[Interval, ...]:
    """The intervals, in any order and overlapping, made sorted and disjoint. O(n log n).

    >>> union([Interval(3, True, 5, True), Interval(1, True, 3, False)], "number")
    (Interval(low=1, low_closed=True, high=5, high_closed=True),)
    """
    merged: list[Stretch] = []
    for low, high in sorted(_stretches(intervals, scale)):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return _intervals(merged, scale)


def intersection(left: Sequence[Interval], right: Sequence[Interval], scale: Scale) -> tuple[Interval, ...]:
    """What two sorted, disjoint sequences share. O(n + m)."""
    if left == EVERYTHING or not right:
        return tuple(right)
    if right == EVERYTHING or not left:
        return tuple(left)
    a, b = _stretches(left, scale), _stretches(right, scale)
    shared: list[Stretch] = []
    i = j = 0
    while i < len(a) and j < len(b):
        low, high = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if low < high:
            shared.append((low, high))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return _intervals(shared, scale)


def complement(intervals: Sequence[Interval], scale: Scale) -> tuple[Interval, ...]:
    """Everything of the kind that a sorted, disjoint sequence leaves out. O(n)."""
    gaps: list[Stretch] = []
    reached = _bottom(scale)
    for low, high in _stretches(intervals, scale):
        if reached < low:
            gaps.append((reached, low))
        reached = high
    if reached < _TOP:
        gaps.append((reached, _TOP))
    return _intervals(gaps, scale)


def overlapping(left: Sequence[Interval], right: Sequence[Interval], scale: Scale) -> bool:
    """Whether two sorted, disjoint sequences share a value."""
    if not left or not right:
        return False
    if left == EVERYTHING or right == EVERYTHING:
        return True
    if len(left) == 1 and len(right) == 1:
        a, b = _stretch(left[0], scale), _stretch(right[0], scale)
        return a[0] < b[1] and b[0] < a[1]
    return bool(intersection(left, right, scale))


def within(inner: Interval, outer: Interval, scale: Scale) -> bool:
    """Whether one interval lies inside another."""
    a, b = _stretch(inner, scale), _stretch(outer, scale)
    return b[0] <= a[0] and a[1] <= b[1]


def order(interval: Interval, scale: Scale) -> Stretch:
    """A sort key: by the lower end, then the upper."""
    return _stretch(interval, scale)
