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

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise, repeat
from typing import Any, Literal, NamedTuple, TypeAlias

Scale: TypeAlias = Literal["number", "string", "timestamp"]
Cut: TypeAlias = tuple[Any, ...]
Stretch: TypeAlias = tuple[Cut, Cut]

_BOTTOM: Cut = (-1,)
_TOP: Cut = (1,)


class Interval(NamedTuple):
    """Values between two bounds; `None` means no bound on that side (its closed flag is then False).

    A tuple, so that sets of ten thousand of them are compared and hashed at the speed of C.
    """

    low: int | float | str | None = None
    low_closed: bool = False
    high: int | float | str | None = None
    high_closed: bool = False


ANYTHING = Interval()
EVERYTHING = (ANYTHING,)
MANY = 8  # from here on it is worth looking whether intervals are nothing but single values


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


def points(values: Iterable[Any], scale: Scale) -> tuple[Interval, ...]:
    """Single values, in any order, as sorted, disjoint intervals. O(n log n).

    >>> [interval.low for interval in points([7, 3, 7], "number")]
    [3, 7]
    """
    ordered = sorted(set(values))
    found = tuple(map(Interval, ordered, repeat(True), ordered, repeat(True)))
    return _union(found, scale) if _touching(ordered, scale) else found


def _touching(ordered: Sequence[Any], scale: Scale) -> bool:
    """Whether some points may be next to one another, or the least of all: as intervals those are written otherwise."""
    if scale == "string":
        return not all(ordered) or any(map(str.endswith, ordered, repeat("\0")))
    return scale == "timestamp" and any(b == a + 1 for a, b in pairwise(ordered))


def _values(intervals: Sequence[Interval], scale: Scale) -> list[Any] | None:
    """The values of sorted intervals that are nothing but single ones, as an IN list is; else None.

    Strings that end in NUL are left to the sweep: they may be another string's next.
    """
    if len(intervals) < 2 or intervals[0].low is None:
        return None
    lows = [interval[0] for interval in intervals]
    if lows != [interval[2] for interval in intervals] or _touching(lows, scale):
        return None
    return lows


def union(intervals: Iterable[Interval], scale: Scale) -> tuple[Interval, ...]:
    """The intervals, in any order and overlapping, made sorted and disjoint. O(n log n).

    >>> union([Interval(3, True, 5, True), Interval(1, True, 3, False)], "number")
    (Interval(low=1, low_closed=True, high=5, high_closed=True),)
    """
    every = tuple(intervals)
    if len(every) > MANY and all(interval[0] is not None and interval[0] == interval[2] for interval in every):
        return points((interval[0] for interval in every if interval[1] and interval[3]), scale)
    return _union(every, scale)


def _union(intervals: Iterable[Interval], scale: Scale) -> tuple[Interval, ...]:
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
    kept = _kept(left, right, scale, True)
    if kept is None:
        kept = _kept(right, left, scale, True)
    if kept is not None:
        return kept
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


def minus(left: Sequence[Interval], right: Sequence[Interval], scale: Scale) -> tuple[Interval, ...]:
    """What a sorted, disjoint sequence has beyond another. O(n + m).

    >>> minus(points([1, 2, 3], "number"), points([1, 3], "number"), "number")
    (Interval(low=2, low_closed=True, high=2, high_closed=True),)
    """
    if not left or not right:
        return tuple(left)
    kept = _kept(left, right, scale, False)
    return intersection(left, complement(right, scale), scale) if kept is None else kept


def _kept(
    left: Sequence[Interval], right: Sequence[Interval], scale: Scale, shared: bool
) -> tuple[Interval, ...] | None:
    """Of an IN list, the values that the other sequence has too, or has not; None if `left` is no list."""
    mine = _values(left, scale)
    if mine is None:
        return None
    theirs = _values(right, scale)
    has = set(theirs).__contains__ if theirs is not None else partial(_holds, right, [i[0] for i in right])
    return tuple([interval for interval in left if has(interval[0]) is shared])


def _holds(intervals: Sequence[Interval], lows: list[Any], value: Any) -> bool:
    """Whether one of the sorted, disjoint intervals holds a value. O(log n)."""
    first = 1 if lows[0] is None else 0
    at = bisect_right(lows, value, lo=first) - 1
    if at < 0:
        return False
    low, low_closed, high, high_closed = intervals[at]
    if low == value and not low_closed:
        return False
    return high is None or bool(value < high) or (high_closed and bool(value == high))


def _between(values: Sequence[Any], scale: Scale) -> tuple[Interval, ...]:
    """The gaps below, between and above an IN list's sorted values."""
    if scale != "timestamp":
        inner = map(Interval, values, repeat(False), values[1:], repeat(False))
        return (Interval(None, False, values[0], False), *inner, Interval(values[-1], False))
    steps = map(Interval, (v + 1 for v in values), repeat(True), (v - 1 for v in values[1:]), repeat(True))
    return (Interval(None, False, values[0] - 1, True), *steps, Interval(values[-1] + 1, True))


def complement(intervals: Sequence[Interval], scale: Scale) -> tuple[Interval, ...]:
    """Everything of the kind that a sorted, disjoint sequence leaves out. O(n)."""
    if (listed := _values(intervals, scale)) is not None:
        return _between(listed, scale)
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
