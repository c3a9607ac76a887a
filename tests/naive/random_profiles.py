"""Random profiles and random messages, with the same condition written for each oracle.

Each profile comes as three texts made side by side: in our language, in SQLite's and in Spark's
dialect. So the oracles share no parser and no printer with the library. Constants come from small
pools that the messages also draw from, so bounds are hit exactly and profiles overlap and cover.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KINDS = {
    "size": "int",
    "qty": "int",
    "price": "float",
    "symbol": "string",
    "headline": "string",
    "active": "bool",
    "ts": "timestamp",
}
SQLITE_TYPES = {"int": "INTEGER", "float": "REAL", "string": "TEXT", "bool": "INTEGER", "timestamp": "INTEGER"}
SPARK_TYPES = {"int": "bigint", "float": "double", "string": "string", "bool": "boolean", "timestamp": "timestamp"}
INTS = (-3, -1, 0, 1, 2, 3, 4, 7, 100)
FLOATS = (-1.5, -0.1, 0.0, 0.1, 0.3, 1.0, 2.5, 3.0, 100.1, 1e10)
STRINGS = (
    *("", "a", "ab", "abc", "abd", "b", "ba", "B", "IBM", "it's", 'say "hi"', "10%", "a_b", "a%b", "a\\b", "\\"),
    *("é", "éa", "日本", "😀", "a😀b", "a\nb", "\ud7ff", "\ue000", "a\U0010ffff"),
)
TIMES = tuple(
    datetime(2024, 2, 29, 12, tzinfo=UTC) + timedelta(microseconds=shift)
    for shift in (-86_400_000_000, -1, 0, 1, 1_000_000, 3_600_000_000)
)
POOLS: dict[str, Sequence[Any]] = {
    "int": INTS,
    "float": FLOATS,
    "string": STRINGS,
    "bool": (True, False),
    "timestamp": TIMES,
}
OPERATORS = ("=", "==", "!=", "<>", "<", "<=", ">", ">=")
MIRROR = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class RandomProfile(NamedTuple):
    """One condition in three dialects."""

    text: str
    sqlite: str
    spark: str


def microseconds(moment: datetime) -> int:
    """Since 1970: how SQLite, which has no timestamps, is given them."""
    return (moment - EPOCH) // timedelta(microseconds=1)


def _same(text: str) -> RandomProfile:
    return RandomProfile(text, text, text)


def _join(template: str, *parts: RandomProfile) -> RandomProfile:
    return RandomProfile(*(template.format(*texts) for texts in zip(*parts, strict=True)))


def _string(value: str) -> RandomProfile:
    plain = "'" + value.replace("'", "''") + "'"
    return RandomProfile(plain, plain, "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'")


def constant(value: Any) -> RandomProfile:
    """A constant in three dialects."""
    if value is None or isinstance(value, bool):
        return _same({None: "NULL", True: "TRUE", False: "FALSE"}[value])
    if isinstance(value, datetime):
        text = value.strftime("%Y-%m-%d %H:%M:%S.%f")
        # Spark reads a moment without a zone in its session's zone; ours is UTC.
        return RandomProfile(f"TIMESTAMP '{text}'", str(microseconds(value)), f"TIMESTAMP '{text}Z'")
    return _string(value) if isinstance(value, str) else _same(repr(value))


def _pattern(rng: random.Random) -> str:
    parts = ("%", "%", "_", "a", "b", "ab", "é", "😀", "I", "\\%", "\\_", "\\\\", "'", "\n", "")
    return "".join(rng.choice(parts) for _ in range(rng.randint(0, 4)))


def _like(rng: random.Random, name: str, word: str) -> RandomProfile:
    pattern = _pattern(rng)
    text, sqlite, spark = _string(pattern)
    if rng.random() < 0.2:
        text = _string(pattern.replace("!", "!!").replace("\\\\", "\0").replace("\\", "!").replace("\0", "\\")).text
        text += " ESCAPE '!'"
    return RandomProfile(f"{name} {word} {text}", f"{name} {word} {sqlite} ESCAPE '\\'", f"{name} {word} {spark}")


def atom(rng: random.Random, nulls: float = 0.03, kinds: dict[str, str] | None = None) -> RandomProfile:
    """One predicate on one attribute; with chance `nulls` a constant is NULL."""
    name, kind = rng.choice(tuple((kinds or KINDS).items()))
    pool = INTS + FLOATS if kind in ("int", "float") and rng.random() < 0.2 else POOLS[kind]

    def draw() -> RandomProfile:
        return constant(None if rng.random() < nulls else rng.choice(pool))

    shape = rng.choices(("compare", "between", "in", "null", "like", "bare"), (8, 3, 3, 1, 3, 1))[0]
    negated = rng.random() < 0.3
    if shape == "null":
        return _same(f"{name} IS {'NOT ' if negated else ''}NULL")
    if shape == "between":
        return _join(f"{name} {'NOT ' if negated else ''}BETWEEN {{}} AND {{}}", draw(), draw())
    if shape == "in":
        values = [draw() for _ in range(rng.randint(1, 4))]
        listed = ", ".join(["{}"] * len(values))
        return _join(f"{name} {'NOT ' if negated else ''}IN ({listed})", *values)
    if shape == "like" and kind == "string":
        return _like(rng, name, "NOT LIKE" if negated else "LIKE")
    if shape == "bare" and kind == "bool":
        return _same(rng.choice((name, f"NOT {name}", f"{name} IS TRUE", f"{name} IS NOT FALSE", f"{name} IS FALSE")))
    operator = rng.choice(OPERATORS)
    if rng.random() < 0.2:
        return _join(f"{{}} {MIRROR.get(operator, operator)} {name}", draw())
    return _join(f"{name} {operator} {{}}", draw())


def random_profile(
    rng: random.Random, depth: int = 3, nulls: float = 0.03, kinds: dict[str, str] | None = None
) -> RandomProfile:
    """A condition of up to about 2·3^(depth-1) predicates, with AND, OR, NOT and IS TRUE nested."""
    if depth <= 0 or rng.random() < 0.35:
        return _same(rng.choice(("TRUE", "FALSE", "NULL"))) if rng.random() < 0.02 else atom(rng, nulls, kinds)
    shape = rng.choices(("AND", "OR", "NOT", "IS"), (5, 5, 2, 1))[0]
    if shape == "NOT":
        return _join("NOT ({})", random_profile(rng, depth - 1, nulls, kinds))
    if shape == "IS":
        word = rng.choice(("TRUE", "FALSE", "NOT TRUE", "NOT FALSE"))
        return _join(f"({{}}) IS {word}", random_profile(rng, depth - 1, nulls, kinds))
    parts = [random_profile(rng, depth - 1, nulls, kinds) for _ in range(rng.choice((2, 2, 3)))]
    return _join(f" {shape} ".join(["({})"] * len(parts)), *parts)


def random_profiles(seed: int, n: int, depth: int = 3, kinds: dict[str, str] | None = None) -> list[RandomProfile]:
    """n profiles; the same seed gives the same ones."""
    rng = random.Random(seed)
    return [random_profile(rng, depth, kinds=kinds) for _ in range(n)]


def random_messages(
    seed: int, n: int, nulls: float = 0.15, kinds: dict[str, str] | None = None
) -> list[dict[str, Any]]:
    """n messages whose values lie on, between and outside the constants; about `nulls` of them null."""
    rng = random.Random(seed)

    def value(kind: str) -> Any:
        if rng.random() < nulls:
            return None
        drawn = rng.choice(POOLS[kind])
        if rng.random() < 0.7:
            return drawn
        if kind == "int":
            return drawn + rng.choice((-1, 1))
        if kind == "float":
            return drawn + rng.choice((-0.05, 0.05, 1e-9))
        if kind == "timestamp":
            return drawn + timedelta(microseconds=rng.choice((-1, 1)))
        return drawn + rng.choice(("", "a", "b", "%", "!")) if kind == "string" else drawn

    return [{name: value(kind) for name, kind in (kinds or KINDS).items()} for _ in range(n)]


def sqlite_table(messages: Sequence[dict[str, Any]], kinds: dict[str, str] | None = None) -> sqlite3.Connection:
    """The messages as table `m` with their index as `i`, in memory."""
    columns = kinds or KINDS
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA case_sensitive_like = ON")
    declared = ", ".join(f"{name} {SQLITE_TYPES[kind]}" for name, kind in columns.items())
    connection.execute(f"CREATE TABLE m (i INTEGER PRIMARY KEY, {declared})")
    marks = ", ".join("?" * (len(columns) + 1))
    rows = (
        [i, *(microseconds(v) if isinstance(v, datetime) else v for v in (message[name] for name in columns))]
        for i, message in enumerate(messages)
    )
    connection.executemany(f"INSERT INTO m VALUES ({marks})", rows)
    return connection


def sqlite_matches(connection: sqlite3.Connection, condition: str) -> frozenset[int]:
    """The indices of the messages that `WHERE condition` keeps."""
    return frozenset(i for (i,) in connection.execute(f"SELECT i FROM m WHERE {condition}"))


def arrow_table(messages: Sequence[dict[str, Any]], kinds: dict[str, str] | None = None) -> Any:
    """The messages as a pyarrow.Table of int64, float64, string, bool and timestamp[us, UTC]."""
    import pyarrow as pa

    types = {
        "int": pa.int64(),
        "float": pa.float64(),
        "string": pa.string(),
        "bool": pa.bool_(),
        "timestamp": pa.timestamp("us", "UTC"),
    }
    schema = pa.schema([(name, types[kind]) for name, kind in (kinds or KINDS).items()])
    return pa.Table.from_pylist(list(messages), schema=schema)


def spark_matches(
    spark: Any,
    messages: Sequence[dict[str, Any]],
    conditions: Iterable[str],
    kinds: dict[str, str] | None = None,
    per_query: int = 200,
) -> list[frozenset[int]]:
    """For each condition the indices of the messages that Spark SQL's `WHERE condition` keeps.

    Many conditions ride in one SELECT as columns `coalesce((condition), false)`.
    """
    columns = kinds or KINDS
    schema = "i bigint, " + ", ".join(f"{name} {SPARK_TYPES[kind]}" for name, kind in columns.items())
    data = [(i, *(message[name] for name in columns)) for i, message in enumerate(messages)]
    frame = spark.createDataFrame(data, schema).coalesce(1).cache()
    texts = list(conditions)
    found: list[frozenset[int]] = []
    for start in range(0, len(texts), per_query):
        batch = texts[start : start + per_query]
        wanted = [f"coalesce(({condition}), false) AS c{k}" for k, condition in enumerate(batch)]
        rows = frame.selectExpr("i", *wanted).collect()
        found.extend(frozenset(row[0] for row in rows if row[k + 1]) for k in range(len(batch)))
    frame.unpersist()
    return found
