"""The language against SQLite and Spark SQL: matching, covers, overlaps and the algebra.

The oracles get the same conditions as text that was written for them beside ours, so they share no
code with the library.
"""

from __future__ import annotations

import random
import sqlite3
from typing import Any

import pytest

from naive.random_profiles import (
    RandomProfile,
    random_messages,
    random_profiles,
    spark_matches,
    sqlite_matches,
    sqlite_table,
)
from narrowcast.profiles import Profile
from narrowcast.profiles.sql.text import to_sql

Matched = frozenset[int]


def in_boxes(profile: Profile, message: dict[str, Any]) -> bool:
    assert profile.boxes is not None
    return any(all(values.contains(message.get(name)) for name, values in box.items()) for box in profile.boxes)


def matching(profile: Profile, messages: list[dict[str, Any]]) -> Matched:
    return frozenset(i for i, message in enumerate(messages) if profile.matches(message))


def check_pair(
    a: tuple[Profile, RandomProfile, Matched],
    b: tuple[Profile, RandomProfile, Matched],
    messages: list[dict[str, Any]],
    table: sqlite3.Connection,
) -> tuple[bool, bool]:
    """Algebra equal to SQLite's; covers yes and overlaps no never contradicted by a row."""
    (p, p_text, p_rows), (q, q_text, q_rows) = a, b
    assert matching(p & q, messages) == sqlite_matches(table, f"({p_text.sqlite}) AND ({q_text.sqlite})")
    assert matching(p | q, messages) == sqlite_matches(table, f"({p_text.sqlite}) OR ({q_text.sqlite})")
    assert matching(p - q, messages) == sqlite_matches(table, f"({p_text.sqlite}) AND ({q_text.sqlite}) IS NOT TRUE")
    covers, overlaps = p.covers(q), p.overlaps(q)
    assert not covers or q_rows <= p_rows, f"{p} does not cover {q}"
    assert overlaps or not p_rows & q_rows, f"{p} overlaps {q}"
    assert p.covers(p & q)
    assert p.covers(p - q)
    assert (p | q).covers(p)
    assert not (p - q).overlaps(q)
    assert (p & q).covers(q) is covers
    return covers, overlaps


def test_300_random_profiles_on_400_rows_with_nulls_agree_with_sqlite() -> None:
    texts, messages = random_profiles(2026, 300), random_messages(2027, 400)
    table = sqlite_table(messages)
    known = []
    for text in texts:
        profile = Profile.parse(text.text)
        wanted = sqlite_matches(table, text.sqlite)
        assert matching(profile, messages) == wanted, text.text
        assert frozenset(i for i, m in enumerate(messages) if in_boxes(profile, m)) == wanted, text.text
        assert sqlite_matches(table, to_sql(profile.expression, "sqlite")) == wanted, text.text
        again = Profile.parse(profile.text, limits=None)
        assert again.text == profile.text
        assert matching(again, messages) == wanted
        known.append((profile, text, wanted))
    rng = random.Random(3)
    small = messages[:120]
    small_table = sqlite_table(small)
    answers = [check_pair(rng.choice(known), rng.choice(known), small, small_table) for _ in range(400)]
    # Both answers must occur often, or the checks above would say nothing.
    assert min(sum(c for c, _ in answers), sum(not o for _, o in answers)) > 40


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(10))
def test_100000_random_profiles_agree_with_sqlite(seed: int) -> None:
    texts, messages = random_profiles(1000 + seed, 10_000), random_messages(seed, 60)
    table = sqlite_table(messages)
    known = []
    for text in texts:
        profile = Profile.parse(text.text)
        wanted = sqlite_matches(table, text.sqlite)
        assert matching(profile, messages) == wanted, text.text
        assert frozenset(i for i, m in enumerate(messages) if in_boxes(profile, m)) == wanted, text.text
        known.append((profile, text, wanted))
    rng = random.Random(seed)
    for _ in range(3_000):
        check_pair(rng.choice(known), rng.choice(known), messages, table)


def spark_agrees(spark: Any, texts: list[RandomProfile], messages: list[dict[str, Any]]) -> None:
    ours = [Profile.parse(text.text) for text in texts]
    from_text = spark_matches(spark, messages, [text.spark for text in texts])
    printed = spark_matches(spark, messages, [to_sql(profile.expression, "spark") for profile in ours])
    for profile, text, wanted, again in zip(ours, texts, from_text, printed, strict=True):
        assert matching(profile, messages) == wanted, text.text
        assert again == wanted, profile.text


@pytest.mark.spark
def test_200_random_profiles_agree_with_spark_sql(spark: Any) -> None:
    messages = random_messages(5, 100)
    messages[0]["price"] = messages[1]["price"] = float("nan")
    spark_agrees(spark, random_profiles(4, 200, depth=2), messages)


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.parametrize("seed", range(10))
def test_10000_random_profiles_agree_with_spark_sql(spark: Any, seed: int) -> None:
    spark_agrees(spark, random_profiles(2000 + seed, 1_000, depth=2), random_messages(seed, 60))
