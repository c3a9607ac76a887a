"""Sets of many single values: the quick ways give what sweeping gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from narrowcast.profiles.algebra import intervals
from narrowcast.profiles.algebra.intervals import EVERYTHING, Interval, Scale

VALUES: dict[Scale, st.SearchStrategy[Any]] = {
    "number": st.one_of(st.integers(-9, 9), st.sampled_from((-0.5, 0.5, 2.5, 1.0, 9.0))),
    "string": st.text("ab\0", max_size=3),
    "timestamp": st.integers(-9, 9),
}


@st.composite
def sequences(draw: st.DrawFn, scale: Scale) -> list[Interval]:
    """Single values, or stretches of every sort, in any order."""
    listed = draw(st.lists(VALUES[scale], max_size=12))
    if draw(st.booleans()):
        return [Interval(value, True, value, True) for value in listed]
    bounds = st.one_of(st.none(), VALUES[scale])
    pairs = draw(st.lists(st.tuples(bounds, st.booleans(), bounds, st.booleans()), max_size=5))
    return [Interval(a, a is not None and x, b, b is not None and y) for a, x, b, y in pairs]


def swept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the quick ways out."""
    monkeypatch.setattr(intervals, "_values", lambda *_: None)
    monkeypatch.setattr(intervals, "MANY", 10**9)


@pytest.mark.parametrize("scale", VALUES)
def test_quick_ways_through_single_values_agree_with_the_sweep(scale: Scale) -> None:
    @settings(max_examples=300)
    @given(sequences(scale), sequences(scale))
    def check(left: list[Interval], right: list[Interval]) -> None:
        def answers() -> list[object]:
            a, b = intervals.union(left, scale), intervals.union(right, scale)
            found: list[object] = [a, b, intervals.intersection(a, b, scale), intervals.minus(a, b, scale)]
            found += [intervals.complement(a, scale), intervals.overlapping(a, b, scale)]
            return [*found, intervals.minus(EVERYTHING, a, scale), intervals.minus(a, EVERYTHING, scale)]

        quick = answers()
        with pytest.MonkeyPatch.context() as patch:
            swept(patch)
            assert quick == answers()

    check()


@pytest.mark.parametrize("scale", VALUES)
def test_points_are_the_union_of_single_values(scale: Scale) -> None:
    @given(st.lists(VALUES[scale], max_size=20))
    def check(values: list[Any]) -> None:
        assert intervals.points(values, scale) == intervals._union([Interval(v, True, v, True) for v in values], scale)

    check()
