"""The fast form of a profile says what its definition says, on every kind of value."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from narrowcast.profiles import Profile
from narrowcast.profiles.flow_key import flow_name
from narrowcast.profiles.possible import certain
from narrowcast.profiles.predicate import predicate

TERMS = (
    "s = 'a'", "s <> 'a'", "s < 'b'", "s >= 'b'", "s IN ('a', 'b')", "s IN ('a', NULL)", "s LIKE 'a%'", "s IS NULL",
    "n = 7", "n <> 7", "n < 7.5", "n <= 7", "n > 7", "n >= 100.1", "n BETWEEN 1 AND 7", "n NOT BETWEEN 7 AND 1",
    "n IN (1, 7)", "n = 9007199254740993", "n > 9007199254740992.0", "b = TRUE", "t > TIMESTAMP '2024-01-01'",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, "a", "b", "ab", "7", 7, 7.0, 7.5, 1, 0, True, False, math.nan, math.inf, 2**53, 2**53 + 1, float(2**53),
    Decimal("100.1"), Decimal("7"), 100.1, datetime(2024, 6, 1, tzinfo=UTC), [1],
)  # fmt: skip


@st.composite
def profiles(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(TERMS))
    for _ in range(draw(st.integers(0, 3))):
        text = f"({text}) {draw(st.sampled_from(('AND', 'OR')))} {draw(st.sampled_from(TERMS))}"
        text = draw(st.sampled_from((text, f"NOT ({text})", f"({text}) IS NOT TRUE")))
    return text


@settings(max_examples=300)
@given(profiles(), st.fixed_dictionaries({}, optional={name: st.sampled_from(VALUES) for name in "snbt"}))
def test_the_fast_form_agrees_with_the_definition(text: str, message: dict[str, Any]) -> None:
    profile = Profile.parse(text)
    assert predicate(profile)(message) == profile.matches(message)


def test_every_term_agrees_on_every_value() -> None:
    for text in TERMS:
        profile = Profile.parse(text)
        for value in VALUES:
            message = dict.fromkeys("snbt", value)
            assert predicate(profile)(message) == profile.matches(message), (text, value)


@settings(max_examples=300)
@given(profiles(), st.fixed_dictionaries({}, optional={name: st.sampled_from(VALUES) for name in "snbt"}))
def test_a_flow_that_is_certain_holds_nothing_that_does_not_match(text: str, message: dict[str, Any]) -> None:
    profile = Profile.parse(text)
    for key in (["s"], ["n"], ["s", "n"], ["b", "s"], ["t"]):
        if certain(profile.expression, flow_name(message, key), key):
            assert profile.matches(message), (text, key)


def test_text_alone_can_be_certain() -> None:
    """Bytes, moments, lists and numbers may have the text of another value; a wish for 'all but' would let them in."""
    wish = Profile.parse("s <> 'zzz'").expression
    assert certain(wish, flow_name({"s": "a"}, ["s"]), ["s"])
    for value in (b"a", 7, 7.5, True, None, [1], {"a": 1}, Decimal("NaN"), Decimal("Infinity"), datetime(2024, 1, 1)):
        assert not certain(wish, flow_name({"s": value}, ["s"]), ["s"]), value
