"""The grammar: what can be written, how it prints, and what is refused with which line."""

from __future__ import annotations

import pytest

from narrowcast.errors import ProfileError
from narrowcast.profiles import Profile

GOOD = [
    ("price > 100", "price > 100"),
    ("  price\n>\t100 ", "price > 100"),
    ("100 < price", "price > 100"),
    ("100 >= price", "price <= 100"),
    ("'IBM' = symbol", "symbol = 'IBM'"),
    ("a == 1 and b != 2 Or c <> 3", "a = 1 AND b <> 2 OR c <> 3"),
    ("(a = 1 OR b = 2) AND c = 3", "(a = 1 OR b = 2) AND c = 3"),
    ("((a = 1)) AND (b = 2 AND (c = 3))", "a = 1 AND b = 2 AND c = 3"),
    ("lat BETWEEN 1 AND 2 AND lon NOT BETWEEN 3 AND 4.5", "lat BETWEEN 1 AND 2 AND lon NOT BETWEEN 3 AND 4.5"),
    ("x NOT IN (1, 2, 1, NULL)", "x NOT IN (1, 2, NULL)"),
    ("NOT x IN (1)", "x NOT IN (1)"),
    ("NOT NOT x = 1", "NOT NOT x = 1"),
    ("NOT (a = 1 OR b = 2)", "NOT (a = 1 OR b = 2)"),
    ("venue is not null and v IS NULL", "venue IS NOT NULL AND v IS NULL"),
    ("active AND NOT halted", "active = TRUE AND NOT halted = TRUE"),
    ("active IS TRUE OR halted IS NOT FALSE", "(active = TRUE) IS TRUE OR (halted = TRUE) IS NOT FALSE"),
    ("(a = 1 AND b > 2) IS NOT TRUE", "(a = 1 AND b > 2) IS NOT TRUE"),
    ("headline LIKE 'Fed%'", "headline LIKE 'Fed%'"),
    ("h NOT LIKE '%%_%'", "h NOT LIKE '_%'"),
    (r"h LIKE '100!%' ESCAPE '!'", r"h LIKE '100\%'"),
    (r"h LIKE 'a\b!!' ESCAPE '!'", r"h LIKE 'a\\b!'"),
    (r"h = 'a\b'", r"h = 'a\b'"),
    ("h = 'it''s'", "h = 'it''s'"),
    ("h = '日本 😀'", "h = '日本 😀'"),
    ("`52_week_high` > 110", "`52_week_high` > 110"),
    ('"order" = 1 AND "say ""hi""" = 2 AND `a``b` = 3', '`order` = 1 AND `say "hi"` = 2 AND `a``b` = 3'),
    ("a.b = 1 AND `a`.b < 2 AND `a.b` > 3", "a.b = 1 AND a.b < 2 AND a.b > 3"),
    ("größe = 1", "`größe` = 1"),
    ("inside = 1 AND ordering = 2 AND date > 3 AND nothing IS NULL", None),
    ("x > -5 AND y < +2.50 AND z = 1E3 AND w = .5", "x > -5 AND y < 2.5 AND z = 1000.0 AND w = 0.5"),
    ("x = -0.0", "x = 0.0"),
    ("x = 0.1 AND y = 1e-7 AND z = 123456789012345678901234567890", None),
    ("ts > DATE '2024-02-29'", "ts > TIMESTAMP '2024-02-29 00:00:00'"),
    ("ts > timestamp'2024-02-29T12:00:00.5+01:00'", "ts > TIMESTAMP '2024-02-29 11:00:00.500000'"),
    ("ts = TIMESTAMP '2024-02-29 12:00'", "ts = TIMESTAMP '2024-02-29 12:00:00'"),
    ("x = NULL OR y IN (NULL)", "NULL OR NULL"),
    ("x BETWEEN NULL AND 3", "NULL AND x <= 3"),
    ("TRUE AND NOT false", "TRUE AND NOT FALSE"),
    ("A = 1 AND a = 'x'", "A = 1 AND a = 'x'"),
]

BAD = [
    ("", 0, "empty"),
    ("   ", 0, "empty"),
    ("price => 5", 6, "write >="),
    ("price =< 5", 6, "write <="),
    ("a <=> 5", 2, "IS NULL"),
    ("a && b", 2, "write AND"),
    ("a || b", 2, "write OR"),
    ("!a", 0, "write NOT"),
    ("x = 'abc", 4, "unclosed quote"),
    ("`x = 3", 0, "unclosed"),
    ('x = "abc"', 4, "single quotes: 'abc'"),
    ("x = y", 4, "compared with a constant"),
    ("1 = 1", 0, "one side must be an attribute"),
    ("x + 1 > 3", 2, "arithmetic"),
    ("x > 5 -3", 6, "arithmetic"),
    ("lower(x) = 'a'", 0, "lower() is not supported"),
    ("a = 1 AND UPPER ( x ) = 'A'", 10, "list the spellings"),
    ("abs(x) > 3", 0, "abs() is not supported"),
    ("startswith(x, 'a')", 0, "write LIKE"),
    ("x || 'b' = 'ab'", 2, "texts cannot be joined"),
    ("x ('a', 'b')", 0, "is IN missing"),
    ("x ILIKE 'a%'", 2, "ILIKE is not supported"),
    ("x NOT ilike 'a%'", 6, "a LIKE for each spelling"),
    ("x ILIKE ('a%')", 2, "ILIKE is not supported"),
    ("x RLIKE 'a.*'", 2, "RLIKE is not supported"),
    ("x REGEXP 'a.*'", 2, "write LIKE"),
    ("x IS DISTINCT FROM 3", 5, "IS DISTINCT FROM is not supported"),
    ("CASE WHEN a THEN b ELSE c END", 0, "CASE is not supported"),
    ("a = 1 AND b = CASE c WHEN 1 THEN 2 END", 14, "with AND and OR"),
    ("x IN (SELECT y FROM z)", 6, "subqueries are not supported"),
    ("price * 1.1 > 100", 6, "arithmetic is not supported"),
    ("x % 2 = 0", 2, "work the constant out"),
    ("a < b", 4, "not with another attribute"),
    ("x IN 5", 5, "expected ("),
    ("x > 5 OR x = 'abc'", 13, "one kind"),
    ("x AND x > 5", 10, "one kind"),
    ("x IN (1, 'a')", 9, "one kind"),
    ("x BETWEEN 1 AND TRUE", 16, "one kind"),
    ("(x = 1", 6, "not closed"),
    ("x = 1)", 5, "remove this parenthesis"),
    ("x = 1 y = 2", 6, "AND or OR missing"),
    ("x 5", 2, "operator"),
    ("x = ", 4, "expected an attribute or a constant"),
    ("x BETWEEN 1", 11, "two bounds"),
    ("x IN ()", 6, "expected an attribute or a constant"),
    ("x IN (1,", 8, "expected an attribute or a constant"),
    ("x LIKE 5", 7, "text pattern"),
    (r"x LIKE 'a\b'", 9, "before %, _ or itself"),
    ("x LIKE 'a' ESCAPE '!!'", 18, "one character"),
    ("(x) = 5", 4, "parentheses around attributes"),
    ("x > 1e999", 4, "too large"),
    ("ts > TIMESTAMP '2024-13-01'", 5, "not a valid date"),
    ("ts > DATE '2024-02-29 12:00'", 5, "not a valid date"),
    ("x > 1 IS TRUE", 6, "in parentheses"),
    ("(x > 1) IS NULL", 11, "IS [NOT] TRUE"),
    ("x;", 1, "semicolon"),
    ("x = 1 -- why", 6, "comment"),
    ("'a'", 0, "not a condition"),
    ("52_week_high > 3", 0, "quote a name"),
    ("x = 5 AND", 9, "expected an attribute or a constant"),
    ("x = 1\nAND y => 2", 12, "write >="),
    ("x # 3", 2, "unexpected character"),
    ("x = '\ud800'", 5, "Unicode"),
]


@pytest.mark.parametrize(("text", "printed"), GOOD)
def test_a_good_text_prints_canonically_and_comes_back(text: str, printed: str | None) -> None:
    profile = Profile.parse(text)
    if printed is not None:
        assert str(profile) == printed
    again = Profile.parse(str(profile))
    assert again == profile
    assert again.expression == profile.expression


@pytest.mark.parametrize(("text", "position", "said"), BAD)
def test_a_bad_text_gives_one_line_with_the_place_and_a_hint(text: str, position: int, said: str) -> None:
    with pytest.raises(ProfileError) as caught:
        Profile.parse(text)
    line = str(caught.value)
    assert "\n" not in line
    assert said in line
    assert caught.value.position == position
    assert position == 0 or f"offset {position}" in line


def test_constants_keep_their_kind() -> None:
    one, true, text = (Profile.parse(f"x = {c}") for c in ("1", "TRUE", "'1'"))
    assert len({one, true, text}) == 3
    assert one.expression != true.expression
    assert not one.covers(true)
    assert one.kinds == {"x": "number"}


def test_an_error_travels_between_processes() -> None:
    import pickle

    with pytest.raises(ProfileError) as caught:
        Profile.parse("price => 5")
    again = pickle.loads(pickle.dumps(caught.value))
    assert (str(again), again.position, again.text) == (str(caught.value), 6, "price => 5")
