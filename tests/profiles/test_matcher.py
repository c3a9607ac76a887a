"""The Matcher gives exactly what every profile says of every message, in order, whatever the shape of the batch."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import narrowcast as nc
from naive import matcher as naive
from naive.random_profiles import arrow_table, random_messages, random_profiles
from narrowcast.errors import InputError, ProfileError
from narrowcast.profiles import Matcher, Profile
from narrowcast.profiles.sql.syntax import And, Compare, Not, Or

LONG = [f"price = {k} AND symbol = 's{k % 7}' OR size < {-k} AND symbol <> 'a'" for k in range(400)]


def pairs(matcher: Matcher, table: Any, **options: Any) -> list[tuple[int, int]]:
    rows, profiles = matcher.match(table, **options)
    assert rows.dtype == profiles.dtype == np.int64
    return list(zip(rows.tolist(), profiles.tolist(), strict=True))


def parsed(texts: Sequence[str]) -> list[Profile]:
    return [Profile.parse(text) for text in texts]


def assert_true(profiles: Sequence[Profile], messages: Sequence[dict[str, Any]]) -> None:
    found = pairs(Matcher(profiles), arrow_table(messages))
    assert found == naive.match(profiles, messages)


@pytest.mark.parametrize("seed", range(3))
def test_random_profiles_match_as_each_says_itself(seed: int) -> None:
    assert_true(parsed([p.text for p in random_profiles(seed, 150)]), random_messages(seed, 120))


@given(seed=st.integers(0, 10**9), n=st.integers(0, 12), depth=st.integers(0, 4), rows=st.integers(0, 25))
@settings(max_examples=60)
def test_many_small_systems_match_as_each_profile_says_itself(seed: int, n: int, depth: int, rows: int) -> None:
    assert_true(parsed([p.text for p in random_profiles(seed, n, depth)]), random_messages(seed + 1, rows))


def conjunctions(rng: random.Random, n: int, with_symbol: float) -> list[str]:
    """Profiles of a market, with bounds close together so that buckets hold several."""
    texts = []
    for _ in range(n):
        terms = [f"symbol = 'S{rng.randrange(4)}'"] if rng.random() < with_symbol else []
        low, first = rng.randrange(400), rng.randrange(300)
        terms.append(rng.choice((f"price > {low}.5", f"price <= {low}", f"price BETWEEN {low} AND {low + 40}.25")))
        if rng.random() < 0.7:
            terms.append(rng.choice((f"size BETWEEN {first} AND {first + 60}", f"size <> {first}", f"size >= {first}")))
        if rng.random() < 0.1:
            terms.append(rng.choice(("active", "ts IS NULL", "qty IN (1, 2, 5)")))
        texts.append(" AND ".join(terms))
    return texts


def market(rng: random.Random, n: int) -> list[dict[str, Any]]:
    return [
        {
            "symbol": rng.choice((None, "S0", "S1", "S2", "S3", "S9")),
            "price": rng.choice((None, rng.randrange(450) / 2, float(rng.randrange(450)))),
            "size": rng.randrange(400) if rng.random() < 0.9 else None,
            "active": rng.choice((True, False, None)),
            "qty": rng.randrange(7),
        }
        for _ in range(n)
    ]


@pytest.mark.parametrize("with_symbol", [0.0, 0.5, 1.0])
def test_blocks_large_enough_for_bitsets_change_nothing(with_symbol: float) -> None:
    rng = random.Random(int(10 * with_symbol))
    profiles, messages = parsed(conjunctions(rng, 700, with_symbol)), market(rng, 60)
    table = pa.Table.from_pylist([{"ts": None, **message} for message in messages])
    assert pairs(Matcher(profiles), table) == naive.match(profiles, messages)


def test_overlapping_branches_of_an_or_give_one_pair() -> None:
    matcher = nc.Matcher(["price > 1 OR size > 1", "price > 0 OR price > 1 AND size > 5 OR size IN (1, 7)"])
    table = pa.table({"price": [2.0, 2.0, 0.0], "size": [7, 0, 0]})
    assert pairs(matcher, table) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_in_lists_lead_to_their_profile_from_every_value() -> None:
    profiles = parsed(["symbol IN ('a', 'b', 'é') AND size IN (1, 3)", "symbol NOT IN ('a', 'b')", "size IN (3, NULL)"])
    messages = [{"symbol": s, "size": n} for s in ("a", "b", "c", "é", "", None) for n in (1, 2, 3, None)]
    assert pairs(Matcher(profiles), pa.Table.from_pylist(messages)) == naive.match(profiles, messages)


def test_a_null_is_neither_a_match_nor_a_miss_of_a_comparison() -> None:
    matcher = Matcher(["x > 1", "NOT x > 1", "x IS NULL", "x IS NOT NULL", "(x > 1) IS NOT TRUE"])
    assert pairs(matcher, pa.table({"x": [2, None, 1]})) == [(0, 0), (0, 3), (1, 2), (1, 4), (2, 1), (2, 3), (2, 4)]


def test_patterns_are_tested_only_as_far_as_needed_and_exactly() -> None:
    texts = ["headline LIKE '%Fed%'", "headline NOT LIKE '_e%d'", "symbol = 'a' AND headline LIKE '%\\%_%' OR size > 3"]
    texts += [f"headline LIKE '%{k}%.(' OR headline = 'x{k}'" for k in range(20)]
    profiles = parsed(texts)
    words = ["", "Fed", "a Fed\nb", "red", "10% up", "%", "1.(", "x17", "19 5.(", "日Fed", None]
    messages = [{"headline": w, "symbol": s, "size": n} for w in words for s in ("a", None) for n in (3, 4)]
    expected = naive.match(profiles, messages)
    table = pa.Table.from_pylist(messages)
    assert pairs(Matcher(profiles), table) == expected
    for type_ in (pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        other = table.set_column(0, "headline", table["headline"].cast(type_))
        assert pairs(Matcher(profiles), other) == expected


def test_a_disjunction_of_thousands_is_matched_through_its_parts() -> None:
    profiles = parsed(LONG)
    channel = Profile.any_of(profiles)
    rest = Profile.parse("price >= 0") - channel
    never = Profile.from_expression(Not(channel.expression))
    both = Profile.any_of((rest, Profile.parse("size = 5 AND symbol = 's1'")))
    everyone = [*profiles, channel, rest, never, both, channel & rest, Profile.parse("TRUE") - (rest | channel)]
    rng = random.Random(5)
    messages = [
        {
            "price": rng.choice((None, float(rng.randrange(420)))),
            "symbol": rng.choice((None, "a", *(f"s{k}" for k in range(7)))),
            "size": rng.choice((None, 5, -rng.randrange(450))),
        }
        for _ in range(40)
    ]
    found = pairs(Matcher(everyone), pa.Table.from_pylist(messages))
    assert found == naive.match(everyone, messages)
    assert {k for _, k in found} >= {400, 401, 403}


def test_a_flat_or_of_ten_thousand_needs_no_deep_recursion() -> None:
    parts = tuple(And((Compare("size", "=", k), Compare("qty", "<", k))) for k in range(10_000))
    matcher = Matcher([Profile.from_expression(Or(parts)), Profile.from_expression(Not(Or(parts[:200])))])
    table = pa.table({"size": [5, 9999, 10_000, None], "qty": [4, 9999, 0, 1]})
    assert pairs(matcher, table) == [(0, 0), (1, 1), (2, 1)]


def test_equal_profiles_are_all_told() -> None:
    matcher = Matcher(["x = 1", "x = 2", "x = 1", "1 = x"])
    assert pairs(matcher, pa.table({"x": [1]})) == [(0, 0), (0, 2), (0, 3)]


def test_no_profiles_no_messages_and_constants() -> None:
    assert pairs(Matcher([]), pa.table({"x": [1, 2]})) == []
    assert pairs(Matcher(["x = 1"]), pa.table({"x": pa.array([], pa.int64())})) == []
    assert pairs(Matcher(["TRUE", "FALSE", "NULL"]), pa.table({"x": [1, 2]})) == [(0, 0), (1, 0)]
    assert Matcher([]).n_profiles == 0
    assert Matcher(["b = 1 OR a IS NULL"]).attributes == ("a", "b")


def test_record_batches_and_chunked_tables_give_the_same() -> None:
    messages = random_messages(3, 90)
    whole, matcher = arrow_table(messages), Matcher([p.text for p in random_profiles(3, 60)])
    expected = pairs(matcher, whole)
    assert pairs(matcher, whole.to_batches()[0]) == expected
    chunked = pa.concat_tables([whole.slice(0, 7), whole.slice(7, 0), whole.slice(7, 50), whole.slice(57)])
    assert pairs(matcher, chunked) == expected
    coded = pa.concat_tables([chunked.slice(0, 30), chunked.slice(30)]).to_pydict()
    coded_table = pa.table({**coded, "symbol": chunked["symbol"].dictionary_encode()})
    assert pairs(matcher, coded_table) == expected


def test_threads_and_pickling_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("narrowcast.profiles.match.matcher.CHUNK", 64)
    monkeypatch.setattr("narrowcast.profiles.match.matcher.SMALL", 10)
    texts = [p.text for p in random_profiles(11, 80)] + LONG[:200]
    channel = Profile.any_of(parsed(LONG))
    matcher = Matcher([*texts, channel, Profile.parse("size > 0") - channel])
    table = arrow_table(random_messages(11, 1000))
    expected = pairs(matcher, table, threads=1)
    for threads in (2, 8, None):
        assert pairs(matcher, table, threads=threads) == expected
    copy = pickle.loads(pickle.dumps(matcher))
    assert pairs(copy, table) == expected
    assert copy.counts(table).tolist() == np.bincount([k for _, k in expected], minlength=matcher.n_profiles).tolist()


def test_a_missing_column_is_named_with_what_it_may_be() -> None:
    matcher = Matcher(["price > 1 AND symbol = 'a'"])
    with pytest.raises(InputError, match=r"no column 'price'.*'Price'"):
        matcher.match(pa.table({"Price": [1], "symbol": ["a"]}))
    with pytest.raises(InputError, match=r"no column 'symbol'.*did you mean 'symbl'"):
        matcher.match(pa.table({"price": [1], "symbl": ["a"]}))
    assert pairs(Matcher(["price IS NULL"]), pa.table({"y": [1, 2]}), missing="null") == [(0, 0), (1, 0)]


def test_a_column_of_the_wrong_type_names_the_profile_that_minds() -> None:
    matcher = Matcher(["price IS NOT NULL", "symbol = 'a' AND price > 100"])
    with pytest.raises(
        InputError, match=r"column 'price' has type string, but profile 1 compares it with a number: sym"
    ):
        matcher.match(pa.table({"price": ["7"], "symbol": ["a"]}))
    with pytest.raises(InputError, match=r"'symbol' has type list<item: int64>.* with a string"):
        matcher.match(pa.table({"price": [7], "symbol": [[1]]}))
    assert pairs(Matcher(["x IS NOT NULL"]), pa.table({"x": [[1], None]})) == [(0, 0)]


def test_two_columns_of_one_name_are_refused() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    with pytest.raises(InputError, match=r"2 columns named 'x'"):
        Matcher(["x = 1"]).match(table)


def test_bad_text_says_which_profile() -> None:
    with pytest.raises(ProfileError, match=r"^profile 1: ") as caught:
        Matcher(["x = 1", "x = "])
    assert caught.value.text == "x = "
    with pytest.raises(InputError, match=r"profiles must be a list, got one profile"):
        Matcher("x = 1")
    with pytest.raises(InputError, match=r"profile 0 must be a Profile or text, got int"):
        Matcher([3])  # type: ignore[list-item]
    with pytest.raises(InputError, match=r"messages must be .*, got dict"):
        Matcher(["x = 1"]).match({"x": 1})
    with pytest.raises(InputError, match=r"threads must be .*, got 0"):
        Matcher(["x = 1"]).match(pa.table({"x": [1]}), threads=0)


SCRIPT = """
import random
from naive import matcher as naive
from naive.random_profiles import arrow_table, random_messages, random_profiles
from narrowcast.profiles import Matcher, Profile
profiles = [Profile.parse(p.text) for p in random_profiles(4, 120, kinds={"size": "int", "price": "float"})]
messages = random_messages(4, 15)
rows, found = Matcher(profiles).match(arrow_table(messages))
assert list(zip(rows.tolist(), found.tolist())) == naive.match(profiles, messages)
"""


def test_the_loops_mean_the_same_without_the_compiler() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", SCRIPT], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_large_random_systems_match_as_each_profile_says_itself(seed: int) -> None:
    profiles = parsed([p.text for p in random_profiles(1000 + seed, 1500, depth=4)])
    assert_true(profiles, random_messages(2000 + seed, 600))
