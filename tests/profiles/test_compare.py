"""covers and overlaps against brute force over a grid that tells all sets apart."""

from __future__ import annotations

import random
from itertools import product

import pytest

from naive.grid import grid
from naive.random_profiles import random_profiles
from narrowcast.profiles import Profile
from narrowcast.profiles.algebra.emptiness import is_empty, successor
from narrowcast.profiles.algebra.intervals import Interval
from narrowcast.profiles.sql.like import like, read_pattern
from narrowcast.profiles.sql.syntax import Like, terms

TWO_KINDS = {"size": "int", "active": "bool"}
TABLE = [
    # a, b, a covers b, b covers a, overlap
    ("x > 5", "x > 6", True, False, True),
    ("x >= 5", "x > 5", True, False, True),
    ("x > 5", "x < 5", False, False, False),
    ("x <> 5", "x > 5 OR x < 5", True, True, True),
    ("x <> 5", "NOT x = 5", True, True, True),
    ("x IS NOT NULL", "x > 5", True, False, True),
    ("x > 5 OR x <= 5", "x IS NOT NULL", False, True, True),
    ("TRUE", "x > 5", True, False, True),
    ("x > 5", "FALSE", True, False, False),
    ("(x > 5) IS NOT TRUE", "x IS NULL", True, False, True),
    ("NOT x > 5", "x IS NULL", False, False, False),
    ("x > 5 AND y > 5", "x > 6 AND y > 6 AND z = 1", True, False, True),
    ("x > 5 OR y > 5", "x > 5 AND y > 5", True, False, True),
    ("x BETWEEN 1 AND 5 OR x BETWEEN 5 AND 9", "x BETWEEN 1 AND 9", True, True, True),
    ("x BETWEEN 1 AND 4 OR x BETWEEN 5 AND 9", "x BETWEEN 1 AND 9", False, True, True),
    ("x IN (1, 2, 3)", "x = 1 OR x = 3", True, False, True),
    ("(a OR b) AND (a OR c)", "a OR b AND c", True, True, True),
    ("s LIKE 'ab%'", "s LIKE 'abc%'", True, False, True),
    ("s LIKE 'ab%'", "s >= 'ab' AND s < 'ac'", True, True, True),
    ("s LIKE '%b%'", "s LIKE '%abc%'", True, False, True),
    ("s LIKE '%a%' AND s LIKE '%b%'", "s LIKE '%a%b%' OR s LIKE '%b%a%'", True, True, True),
    ("s LIKE '_'", "s LIKE '__%'", False, False, False),
    ("s LIKE '_%'", "s <> ''", True, True, True),
    ("s LIKE 'a%b'", "s LIKE 'b%'", False, False, False),
    ("s LIKE '%x'", "s LIKE '%y'", False, False, False),
    ("s NOT LIKE '%x%'", "s = 'abc'", True, False, True),
    ("s > 'a' AND s < 'c'", "s LIKE 'b%z'", True, False, True),
    ("ts > TIMESTAMP '2024-01-01 00:00:00'", "ts >= TIMESTAMP '2024-01-01 00:00:00.000001'", True, True, True),
    ("x > 5", "x = 'a'", False, False, False),
    ("FALSE", "s > 'a' AND s < 'a\0'", True, True, False),
    ("s <= 'a' OR s >= 'a\0'", "s < 'b' OR s >= 'b'", True, True, True),
    ("a AND b", "NOT a", False, False, False),
]


@pytest.mark.parametrize(("a", "b", "a_covers_b", "b_covers_a", "overlap"), TABLE)
def test_pairs_whose_answer_is_known(a: str, b: str, a_covers_b: bool, b_covers_a: bool, overlap: bool) -> None:
    p, q = Profile.parse(a), Profile.parse(b)
    assert p.covers(q) is a_covers_b
    assert q.covers(p) is b_covers_a
    assert p.overlaps(q) is q.overlaps(p) is overlap


@pytest.mark.parametrize("seed", range(3))
def test_covers_and_overlaps_are_exact_against_brute_force(seed: int) -> None:
    kinds = [TWO_KINDS, {"price": "float", "ts": "timestamp"}, {"symbol": "string", "active": "bool"}][seed]
    drawn = [Profile.parse(text.text) for text in random_profiles(seed, 60, depth=2, kinds=kinds)]
    profiles = [p for p in drawn if not any(isinstance(term, Like) for term in terms(p.expression))]
    rng = random.Random(seed)
    seen = set()
    for _ in range(150):
        p, q = rng.choice(profiles), rng.choice(profiles)
        messages = grid((p.expression, q.expression))
        in_p, in_q = ([profile.matches(m) for m in messages] for profile in (p, q))
        covers = not any(b and not a for a, b in zip(in_p, in_q, strict=True))
        overlap = any(a and b for a, b in zip(in_p, in_q, strict=True))
        assert p.covers(q) is covers, f"{p} covers {q}"
        assert p.overlaps(q) is overlap, f"{p} overlaps {q}"
        seen.add((covers, overlap))
    assert len(seen) >= 3


def test_emptiness_of_patterns_agrees_with_all_short_strings() -> None:
    rng = random.Random(1)
    # The letters of the patterns and one below, between and above them; five are enough for a witness.
    strings = ["".join(letters) for n in range(6) for letters in product("\0abcd", repeat=n)]
    bounds = ["", "a", "ac", "c", "ca", "cc", "aa\0"]
    counts = {True: 0, False: 0}
    for _ in range(250):
        patterns = {read_pattern("".join(rng.choice("ac%%_") for _ in range(rng.randint(1, 4)))) for _ in range(3)}
        likes = frozenset((pattern, rng.random() < 0.6) for pattern in patterns)
        low, high = sorted(rng.choice(bounds) for _ in range(2))
        interval = Interval(low, rng.random() < 0.5, high, rng.random() < 0.5)
        inside = [s for s in strings if low <= s <= high]
        inside = [s for s in inside if (interval.low_closed or s != low) and (interval.high_closed or s != high)]
        empty = not any(all(like(s, pattern) == wanted for pattern, wanted in likes) for s in inside)
        assert is_empty(interval, likes) is empty, (interval, likes)
        counts[empty] += 1
    assert min(counts.values()) > 30


def test_the_next_prefix_steps_over_surrogates_and_ends_at_the_last_character() -> None:
    assert successor("a\ud7ff") == "a\ue000"
    assert successor("a\U0010ffff") == "b"
    assert successor("\U0010ffff\U0010ffff") is None
    everything_above = Profile.parse("s LIKE '\U0010ffff%'")
    assert everything_above.covers(Profile.parse("s = '\U0010ffff\U0010ffffx'"))


def test_hostile_patterns_get_an_answer_on_the_safe_side() -> None:
    wide = Profile.parse(" AND ".join(f"x LIKE '%{a}_{b}%{c}%'" for a in "abc" for b in "abc" for c in "ab"))
    narrow = Profile.parse("x LIKE '" + "%_a" * 300 + "' AND x NOT LIKE '" + "%a_b" * 200 + "'")
    assert wide.covers(narrow) in (True, False)
    assert wide.overlaps(narrow)
