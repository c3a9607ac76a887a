"""Parsing by shape gives what the grammar gives: the same condition, or the same error at the same place."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from naive.random_lists import random_lists
from naive.random_profiles import random_profiles
from narrowcast.errors import ProfileError
from narrowcast.profiles import Profile, shapes
from narrowcast.profiles.limits import LIMITS, UNBOUND, ProfileLimits, check_size, check_text
from narrowcast.profiles.sql import lexer, parse

CONSTANTS = (
    *("1", "-2", "+3", "007", "1.5", "-0.0", ".5", "5.", "1e3", "1E-3", "1e999", "12345678901234567890", "9" * 5000),
    *("'a'", "''", "'it''s'", "'a%'", r"'a\%'", r"'a\b'", "'_%_%'", "'(1)'", "'\"'", "'`'", "'é'", "' AND x = 1'"),
    *("DATE '2024-02-29'", "date'2024-02-30'", "TIMESTAMP '2024-02-29 12:00'", "timestamp '2024'", "NULL", "TRUE"),
    *("(1)", "('a', 'b')", "(NULL)", "(1, NULL, 1.0)", "('a', 1)", "(TRUE)", "(DATE '2024-01-01')", "( 'a' ,'b')"),
)
PIECES = (
    *("AND", "OR", "NOT", "IN", "LIKE", "BETWEEN", "IS", "ESCAPE '!'", "(", ")", ",", "=", "=>", "x", "`a 1`", '"b"'),
    *("x.5", "AND.5", "'", "-", "5-3", "lower(x)", "x1", "CASE", "\n", "size", "headline", *CONSTANTS),
)
WRITTEN = re.compile(r"'(?:[^']|'')*'|(?<![\w.])[+-]?\d+(?:\.\d+)?(?:e\d+)?|TIMESTAMP '[^']*'|\([^()a-z]*\)")
EDGES = [
    *("`a .5` BETWEEN .5 AND.5", "`a .7` BETWEEN .5 AND.5", "x = 5-3", "x = 5 -3", "a.5 = 1", "x1 = 1"),
    *("x = 'a'AND y='b'", "x LIKE'a%'", "x IN('a')", "x IN('a')AND y=1", "`a 'b' c` = 1", "`a 'c' c` = 1"),
    *("\"it's\" = 'x'", "\"it's\" = 'y'", "x = ('a')", "x = ('b')", "('a')", "x IN (1) (2)", "x BETWEEN 1 AND.7"),
    *("x LIKE 'a!%' ESCAPE '!'", "x LIKE 'a' ESCAPE 'b'", "x = '\ud800'", "", " "),
    *("x IN (NULL)", "x IN (1)", "x IN (NULL, 1)", "x IN ('a')", "x NOT IN (TRUE)", "x IN (DATE '2024-01-01')"),
    *("timestamp = 1", "timestamp = 2", "date '2024-01-01' < x", "x > date '2024-01-01'", "xdate '2024-01-01' = 3"),
    *("x = 1 AND x = 2", "x = 1 AND x = 'a'", "x = 'b' AND x = 'a'", "x IN ('a') AND x = 1", "x = 1 AND x IN ('a')"),
    *("x BETWEEN 1 AND 2", "x BETWEEN 1 AND 'a'", "x BETWEEN NULL AND 3", "x BETWEEN 3 AND NULL"),
    *("x AND y = 1", "NOT x = 1.0", "(x = 1) IS NOT TRUE", "5 < x", "5.5 >= x", "'a' = x", "x = TRUE", "x = FALSE"),
    *("(" * 16 + "x = 1" + ")" * 16, "(" * 17 + "x = 1" + ")" * 17, "x = ٣", "x = 5ａ", "x IN (٣, 4)", "x ın ('a')"),
    *(" AND ".join(f"(x = {i} OR x > {i + k})" for i in range(30)) for k in (1, 2)),
    *(" OR ".join(f"x{i} = {k}" for i in range(n)) for n in (64, 65) for k in (1, 2)),
]  # fmt: skip

Answer = tuple[object, ...]


def outcome(text: str, limits: ProfileLimits, read: object) -> Answer:
    try:
        expression = read(text, limits)  # type: ignore[operator]
    except ProfileError as error:
        return "error", error.message, error.position, error.hint, error.text
    return "condition", expression, repr(expression), Profile(expression).text


def by_grammar(text: str, limits: ProfileLimits) -> object:
    check_text(text, limits)
    return check_size(parse.parse(text, limits.depth), text, limits)


def changed(rng: random.Random, text: str) -> Iterator[str]:
    """The same shape with other constants, and texts with something in a wrong place."""
    yield WRITTEN.sub(lambda found: rng.choice(CONSTANTS) if rng.random() < 0.3 else found.group(), text)
    yield WRITTEN.sub(lambda found: found.group().replace("1", "7").replace("a", "b"), text)
    words = re.split(r"(\s+)", text)
    at = rng.randrange(len(words))
    yield "".join([*words[:at], f" {rng.choice(PIECES)} ", *words[at + rng.randrange(2) :]])
    cut = rng.randrange(len(text) + 1)
    yield text[:cut] + text[cut + rng.randrange(3) :]


def texts(seed: int, n: int) -> Iterator[str]:
    rng = random.Random(seed)
    for found in [*random_profiles(seed, n, depth=2), *random_lists(seed, n // 4, most=6)]:
        yield found.text
        yield from changed(rng, found.text)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """No template from elsewhere."""
    monkeypatch.setattr(shapes, "_TEMPLATES", {})


@pytest.mark.parametrize("limits", [LIMITS, UNBOUND], ids=["limits", "unbound"])
def test_fast_and_slow_agree_on_thousands_of_texts(limits: ProfileLimits) -> None:
    seen: Counter[object] = Counter()
    for text in texts(1 if limits is LIMITS else 2, 800):
        for _ in range(2):  # the second time its shape is known
            fast = outcome(text, limits, shapes.parse)
            assert fast == outcome(text, limits, by_grammar), text
        seen[fast[0]] += 1
    assert min(seen["error"], seen["condition"]) > 500


@pytest.mark.parametrize("order", [1, -1])
def test_texts_that_look_alike_are_not_mistaken_for_one_another(order: int) -> None:
    for text in [*EDGES, *EDGES][::order]:
        assert outcome(text, LIMITS, shapes.parse) == outcome(text, LIMITS, by_grammar), text


def test_a_list_read_as_a_whole_is_what_its_values_are_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    every = [text for text in (*texts(3, 400), *EDGES) if " IN" in text]
    whole = [outcome(text, LIMITS, by_grammar) for text in every]
    monkeypatch.setattr(lexer, "_LIST", re.compile("(?!)"))  # no list at all: the grammar takes each value
    for text, found in zip(every, whole, strict=True):
        assert found[:3] == outcome(text, LIMITS, by_grammar)[:3], text


def test_known_shapes_do_not_reach_the_grammar(monkeypatch: pytest.MonkeyPatch) -> None:
    first = [
        "s IN ('a') AND p > 1",
        "lat BETWEEN 1 AND 2.5 OR NOT x",
        "`a b` = 'x' AND t < DATE '2024-01-01'",
        "h LIKE 'a%'",
    ]
    then = [
        "s IN ('b', 'c') AND p > 1.5",
        "lat BETWEEN -1 AND .5 OR NOT x",
        "`a b` = 'it''s' AND t < DATE '2024-01-02'",
    ]
    for text in first:
        Profile.parse(text)
    wanted = [Profile(parse.parse(text)) for text in [*then, r"h LIKE '\_%'"]]
    monkeypatch.delattr(shapes, "read")
    assert [Profile.parse(text) for text in [*then, r"h LIKE '\_%'"]] == wanted


def test_tighter_limits_bind_known_shapes_too() -> None:
    text = "(x = 1 AND y IN (1, 2, 3)) OR z = 1"
    Profile.parse(text)
    for limits in (
        ProfileLimits(n_terms=2),
        ProfileLimits(depth=1),
        ProfileLimits(n_values=2),
        ProfileLimits(n_conjuncts=1),
    ):
        with pytest.raises(ProfileError):
            Profile.parse(text.replace("1", "4"), limits=limits)


def test_shapes_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "MOST_SHAPES", 10)
    for k in range(50):
        assert Profile.parse(f"x{k} = 1").attributes == (f"x{k}",)
    assert len(shapes._TEMPLATES) <= 10
    Profile.parse(" OR ".join(f"a{k} = 1" for k in range(2_000)), limits=None)
    assert all(sum(map(len, shape)) <= 4_096 for shape in shapes._TEMPLATES)
