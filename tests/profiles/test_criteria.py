"""CBM's criteria say the same profiles."""

from __future__ import annotations

import json
from typing import Any

import pytest

from narrowcast.errors import ProfileError
from narrowcast.profiles import Profile

IBM = {
    "major": ["string", "financial", "NYSE"],
    "minor": ["string", "symbol", "IBM"],
    "where": ["float", "current_price", ">", 100],
}


def test_the_papers_example_is_a_profile() -> None:
    profile = Profile.from_criteria(IBM)
    assert str(profile) == "financial = 'NYSE' AND symbol = 'IBM' AND current_price > 100"
    item = {"financial": "NYSE", "symbol": "IBM", "prior_closing_price": 95.0, "current_price": 98.0}
    assert not profile.matches(item)
    assert profile.matches(item | {"current_price": 101.0})


GOOD: list[tuple[Any, str]] = [
    (["float", "x", "<=", 1.5], "x <= 1.5"),
    ({"where": {"not": ["int", "x", "=", 1]}}, "NOT x = 1"),
    (
        {"or": [["int", "x", "in", [1, 2]], {"and": [["int", "y", "between", [1, 9]], ["bool", "b", "==", True]]}]},
        "x IN (1, 2) OR y BETWEEN 1 AND 9 AND b = TRUE",
    ),
    (
        {"sub": [["float", "52_week_high", 110], ["boolean", "halted", False]]},
        "`52_week_high` = 110 AND halted = FALSE",
    ),
    (["timestamp", "ts", ">", "2024-02-29T12:00:00+01:00"], "ts > TIMESTAMP '2024-02-29 11:00:00'"),
    (["string", "s", "like", "Fed%"], "s LIKE 'Fed%'"),
    (["string", "s", "IS  NOT null"], "s IS NOT NULL"),
]


@pytest.mark.parametrize(("criteria", "text"), GOOD)
def test_criteria_print_as_the_profile_they_are(criteria: Any, text: str) -> None:
    assert Profile.from_criteria(json.loads(json.dumps(criteria))) == Profile.parse(text)
    assert str(Profile.from_criteria(criteria)) == text


BAD: list[tuple[Any, str]] = [
    ({}, "no key"),
    ({"mayor": ["string", "a", "b"]}, "unknown key 'mayor'"),
    ({"major": ["string", "a"]}, "major must have 3 entries, got 2"),
    ({"where": {"and": [["int", "x", "=", 1], ["int", "x", "=>", 1]]}}, r"where.and\[1\]: unknown operator '=>'"),
    ({"where": {"or": [{"not": ["int", "x", "=", "1"]}]}}, r"or\[0\].not: the value must be of type int, got '1'"),
    ({"where": ["int", "x", "=", 1.5]}, "where: the value must be of type int, got 1.5"),
    ({"where": ["int", "x", "=", True]}, "where: the value must be of type int, got True"),
    ({"where": ["float", "x", "=", float("nan")]}, "where: the value must be of type float, got nan"),
    ({"where": ["money", "x", "=", 1]}, "unknown type 'money'"),
    ({"where": ["int", "", "=", 1]}, "the name must be text, got ''"),
    ({"where": ["int", "x", "="]}, "the value is missing"),
    ({"where": {"and": []}}, "where.and: the list is empty"),
    ({"where": {"xor": []}}, "one key"),
    ({"where": 5}, "where: got 5"),
    ({"sub": [["int", "x", 1]], "where": ["string", "x", "=", "a"]}, "is a number elsewhere"),
    ({"where": ["string", "x", "like", "a\\b"]}, "before %"),
    ({"where": ["int", "x", "in", list(range(10_001))]}, "at most 10,000 values, got 10,001"),
    ({"where": ["timestamp", "x", "=", "yesterday"]}, "of type timestamp, got 'yesterday'"),
]


@pytest.mark.parametrize(("criteria", "said"), BAD)
def test_bad_criteria_give_one_line_that_names_the_place(criteria: Any, said: str) -> None:
    with pytest.raises(ProfileError, match=said) as caught:
        Profile.from_criteria(criteria)
    assert "\n" not in str(caught.value)


def test_endless_nesting_is_refused() -> None:
    criteria: Any = ["int", "x", "=", 1]
    for _ in range(900):
        criteria = {"not": criteria}
    with pytest.raises(ProfileError, match="16 deep"):
        Profile.from_criteria(criteria)
