"""Profiles as values: algebra, thousands at once, pickling, names."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

import narrowcast as nc
from narrowcast.profiles import Profile
from narrowcast.profiles.algebra.normal_form import boxes, count_conjuncts
from narrowcast.profiles.sql.text import RESERVED


def test_the_entry_points_of_the_overview() -> None:
    p, q = nc.Profile.parse("symbol = 'IBM' AND price > 100"), nc.Profile.parse("price > 200")
    assert p.matches({"symbol": "IBM", "price": 101})
    assert not p.covers(q)
    assert p.overlaps(q)
    assert str(p & q) == "symbol = 'IBM' AND price > 100 AND price > 200"
    assert str(p | q) == "symbol = 'IBM' AND price > 100 OR price > 200"
    assert str(p - q) == "symbol = 'IBM' AND price > 100 AND (price > 200) IS NOT TRUE"
    assert p.attributes == ("price", "symbol")
    assert p.kinds == {"symbol": "string", "price": "number"}


def test_minus_keeps_what_is_unknown_to_the_other() -> None:
    everything_but = Profile.parse("TRUE") - Profile.parse("price > 5")
    assert everything_but.matches({"price": None})
    assert everything_but.matches({"price": 5})
    assert not everything_but.matches({"price": 6})


def test_ten_thousand_profiles_in_one() -> None:
    profiles = [Profile.parse(f"symbol = 'S{i % 700}' AND price > {i}") for i in range(2_000)] * 5
    whole = Profile.any_of(profiles)
    again = pickle.loads(pickle.dumps(whole))
    assert again == whole
    assert hash(again) == hash(whole)
    assert again.matches({"symbol": "S699", "price": 700})
    assert not again.matches({"symbol": "S699", "price": 600})
    assert whole.boxes is not None
    assert len(whole.boxes) <= 700
    assert whole.covers(profiles[77])
    assert whole.covers(Profile.parse("symbol = 'S3' AND price > 1e6 AND size = 3"))
    assert not whole.covers(Profile.parse("symbol = 'other' AND price > 1e6"))
    assert not whole.overlaps(Profile.parse("symbol LIKE 'T%'"))
    one_by_one = profiles[0]
    for profile in profiles:
        one_by_one = one_by_one | profile
    assert one_by_one.text.count(" OR ") == 10_000
    assert whole.covers(one_by_one)


def test_any_of_nothing_wants_nothing() -> None:
    assert not Profile.any_of([]).matches({"x": 1})


def test_a_profile_taken_away_many_times_stays_inside() -> None:
    base = Profile.parse("price > 0 AND symbol = 'IBM'")
    left = base
    for i in range(40):
        left = left - Profile.parse(f"a{i} = 1 AND b{i} = 2")
    assert left.boxes is None
    assert base.covers(left)
    assert not left.covers(base)
    assert not left.overlaps(Profile.parse("price < 0"))


def test_boxes_merge_what_differs_in_one_attribute_and_drop_the_rest() -> None:
    def names(text: str) -> list[list[str]]:
        found = boxes(Profile.parse(text).expression)
        assert found is not None
        return [sorted(box) for box in found]

    assert names("a = 1 AND b = 2 OR a = 1 AND b = 3") == [["a", "b"]]
    assert names("a = 1 OR a = 1 AND b = 3") == [["a"]]
    assert names("a = 1 AND a = 2") == []
    assert names("s LIKE '%a' AND s LIKE '%b'") == []
    assert names("a IS NULL OR a IS NOT NULL") == [[]]
    assert names("s LIKE '%' AND b = 1") == [["b", "s"]]
    assert boxes(Profile.parse("a = 1 OR b = 1 OR c = 1").expression, limit=2) is None
    assert count_conjuncts(Profile.parse("(a = 1 OR b = 1) AND (c = 1 OR d = 1)").expression) == 4


def test_boxes_do_not_depend_on_hashing() -> None:
    script = (
        "from narrowcast.profiles import Profile;"
        "t = \"s LIKE '%a%' AND s LIKE '%b_' OR s LIKE 'c%d' OR x IN (3, 1) AND b OR "
        "y = 'q' AND NOT (s LIKE '%e' OR x > 2)\";"
        "print([[(n, v.number, [(p.interval, sorted(map(repr, p.likes))) for p in v.string], sorted(v.boolean))"
        " for n, v in b.items()] for b in Profile.parse(t).boxes])"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1


def test_importing_profiles_is_light() -> None:
    heavy = (
        "import sys, narrowcast.profiles;"
        "print([m for m in ('numpy', 'numba', 'pyarrow', 'pyspark', 'lark') if m in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", heavy],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        check=True,
        text=True,
    )
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_reserved_words_are_quoted(word: str) -> None:
    profile = Profile.parse(f"`{word.lower()}` = 1 AND `a.{word}` = 2")
    assert str(profile) == f"`{word.lower()}` = 1 AND `a.{word}` = 2"
    assert Profile.parse(str(profile)) == profile
