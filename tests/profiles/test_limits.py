"""The limits bind what users write, are told in one line, and are themselves cheap to check."""

from __future__ import annotations

import time

import pytest

from narrowcast.errors import ProfileError
from narrowcast.profiles import Profile

TOO_LARGE = {
    "5 KB of text": ("x = '" + "a" * 5000 + "'", "4096"),
    "5 KB in fewer characters": ("x = '" + "é" * 2500 + "'", "4096"),
    "200 terms": (" OR ".join(f"x = {i}" for i in range(200)), "at most 64 terms, got 200"),
    "10,001 listed values": (f"x IN ({', '.join(map(str, range(10_001)))})", "at most 10,000 values, got 10,001"),
    "a list without an end": (f"x IN ({', '.join(map(str, range(100_000)))}", "the IN list at offset 5"),
    "lists without end inside one another": ("x IN (1, " * 20_000, "the IN list at offset 5"),
    "a list of 100,000 in brackets": (f"x IN (({', '.join(map(str, range(100_000)))}))", "the IN list at offset 5"),
    "5 KB beside a list": (f"x IN (1, 2, 3) AND y = '{'a' * 5000}'", "4096 bytes beside its IN lists, got 5016"),
    "17 deep": ("(" * 17 + "x = 1" + ")" * 17, "16 deep"),
    "2,000 open parentheses": ("(" * 2000, "16 deep"),
    "1,000 NOTs": ("NOT " * 1000 + "x", "16 deep"),
    "2^32 conjuncts": (" AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(32)), "150 conjuncts"),
    "2^20 by NOT": ("NOT (" + " OR ".join(f"(a{i} = 1 AND b{i} = 1)" for i in range(20)) + ")", "150 conjuncts"),
    "3^20 by IS NOT TRUE": (
        " AND ".join(f"(a{i}=1 AND b{i}=1 AND c{i}=1) IS NOT TRUE" for i in range(20)),
        "150 conjuncts",
    ),
    "2^20 on one attribute by LIKE": (
        "NOT (" + " OR ".join(f"(s LIKE '%a{i}%' AND s LIKE '%b{i}%')" for i in range(20)) + ")",
        "150 conjuncts",
    ),
}
JUST_SMALL_ENOUGH = {
    "4096 bytes": "x = '" + "a" * 4090 + "'",
    "64 terms": " OR ".join(f"x{i} = 1" for i in range(64)),
    "10,000 listed values": f"x NOT IN ({', '.join(map(str, range(10_000)))})",
    "the paper's 69 symbols": f"symbol IN ({', '.join(repr(f'S{i}') for i in range(69))}) AND price > 10",
    "64 lists": " AND ".join(f"a{i} IN (1, 2, 3)" for i in range(64)),
    "16 deep": "(" * 16 + "x = 1" + ")" * 16,
    "128 conjuncts": " AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(7)),
    "2^30 that merge into one": " AND ".join(f"(x = {i} OR x > {i + 1})" for i in range(30)),
    "a pattern of 4,000 %": "x LIKE '" + "%" * 4000 + "'",
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_too_large_a_profile_is_refused_in_one_line_and_quickly(name: str) -> None:
    text, said = TOO_LARGE[name]
    started = time.process_time()
    with pytest.raises(ProfileError, match=said) as caught:
        Profile.parse(text)
    assert time.process_time() - started < 2  # milliseconds on an idle machine; forever without the limits
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", JUST_SMALL_ENOUGH)
def test_a_profile_at_the_limit_is_taken_and_prints_back(name: str) -> None:
    profile = Profile.parse(JUST_SMALL_ENOUGH[name])
    if len(profile.text) <= 4096:
        assert Profile.parse(profile.text) == profile


def test_what_planners_build_is_not_bound() -> None:
    big = Profile.any_of([Profile.parse(f"x = {i}") for i in range(300)])
    with pytest.raises(ProfileError, match="at most 64 terms, got 300"):
        Profile.parse(big.text)
    assert Profile.parse(big.text, limits=None) == big


def test_hostile_patterns_match_without_backtracking() -> None:
    profile = Profile.parse("x LIKE '" + "%a_" * 1300 + "'")
    started = time.process_time()
    assert profile.matches({"x": "ab" * 2000})
    assert not profile.matches({"x": "b" * 50_000})
    assert time.process_time() - started < 5
