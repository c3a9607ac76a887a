"""A channel's content told as a Profile matches what its formula holds, however it is written."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from narrowcast.plans.semantic.content import Both, Content, Either, Less, Wants, expression, holds
from narrowcast.profiles import Profile
from narrowcast.profiles.sql.syntax import terms

LINE = [
    *(f"x {op} {n}" for op in ("<", "<=", ">", ">=", "=", "<>") for n in (-1, 0, 2, 2.5)),
    "x BETWEEN 0 AND 2",
    "x IN (1, 2, 3)",
    "NOT (x > 1)",
    "x > 1 AND x < 1",
    "x BETWEEN 1 AND 2 OR x >= 7",
]
OTHERS = ["z = 'a'", "x IS NULL", "y > 1", "x > 1 AND y < 2", "x IS NOT NULL"]
VALUES: list[Any] = [None, math.nan, math.inf, -math.inf, *np.arange(-2, 8, 0.5).tolist(), 1, 2, True, "a", "", [1]]


def formulas(n: int) -> st.SearchStrategy[Content]:
    leaf = st.lists(st.integers(0, n - 1), max_size=4, unique=True).map(lambda chosen: Wants(tuple(sorted(chosen))))
    return st.recursive(
        leaf,
        lambda inner: st.one_of(
            st.lists(inner, min_size=1, max_size=3).map(lambda parts: Both(tuple(parts))),
            st.lists(inner, max_size=3).map(lambda parts: Either(tuple(parts))),
            st.tuples(inner, inner).map(lambda pair: Less(*pair)),
        ),
        max_leaves=8,
    )


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_content_matches_what_its_formula_holds(data: st.DataObject) -> None:
    texts = data.draw(
        st.lists(st.sampled_from(LINE + data.draw(st.sampled_from([[], OTHERS]))), min_size=1, max_size=6)
    )
    profiles = [Profile.parse(text) for text in texts]
    content = data.draw(formulas(len(profiles)))
    messages = [{"x": value, "y": other, "z": "a" if other else "b"} for value in VALUES for other in (0, 3)]
    matched = np.array([[profile.matches(message) for profile in profiles] for message in messages])
    found = expression(content, profiles)
    assert [found.matches(message) for message in messages] == holds(content, matched).tolist()
    again = Profile.parse(found.text, limits=None)
    assert [again.matches(message) for message in messages] == holds(content, matched).tolist()


def test_on_a_line_what_cancels_is_not_written() -> None:
    profiles = [Profile.parse(f"x BETWEEN {n} AND {n + 2}") for n in range(300)]
    whole = Wants(tuple(range(300)))
    found = expression(Less(whole, Either(tuple(Wants((n,)) for n in range(150)))), profiles)
    assert len(list(terms(found.expression))) <= 2
    assert not found.matches({"x": 151})
    assert found.matches({"x": 151.5})


def test_a_content_that_nothing_can_match_says_so_in_a_word() -> None:
    profiles = [Profile.parse("x > 1"), Profile.parse("x > 2")]
    assert expression(Less(Wants((1,)), Wants((0,))), profiles) == Profile.any_of([])
