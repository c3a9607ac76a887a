"""Columns of every type become codes without rounding a value."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from naive import matcher as naive
from narrowcast.profiles import Matcher, Profile

OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
CONSTANTS = (0, 1, 100, 100.1, 100.5, -0.5, 1e30, -1e30, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 2**64 - 1, 2**70, 1e-7)
TIMES = ("2024-02-29 12:00:00", "2024-02-29 00:00:00", "2024-02-29 12:00:00.000001", "1969-12-31 23:59:59.999")


def agree(array: pa.Array, texts: list[str]) -> None:
    """Whole and with nulls, as one array, a slice and a dictionary."""
    profiles = [Profile.parse(text) for text in texts]
    matcher = Matcher(profiles)
    holed = pa.concat_arrays([array, pa.nulls(1, array.type), array[1:]])
    for column in (array, holed, holed.slice(1), holed.slice(len(array), 1)):
        rows, found = matcher.match(pa.table({"x": column}))
        messages = [{"x": value} for value in column.to_pylist()]
        assert list(zip(rows.tolist(), found.tolist(), strict=True)) == naive.match(profiles, messages)


def number_texts() -> list[str]:
    return [f"x {op} {c!r}" for c in CONSTANTS for op in OPERATORS] + ["x IN (1, 100.1, 7)", "x IS NULL"]


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (pa.int8(), [-128, -1, 0, 1, 100, 101, 127]),
        (pa.uint16(), [0, 1, 100, 101, 65535]),
        (pa.int64(), [-(2**63), -1, 0, 1, 100, 2**53, 2**53 + 1, 2**53 + 2, 2**63 - 1]),
        (pa.uint64(), [0, 1, 100, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1]),
        (pa.float64(), [-math.inf, -0.5, -0.0, 0.0, 1e-7, 1.0, 100.1, 100.5, 2.0**53, 2.0**53 + 2, 1e30, math.inf]),
        (pa.float32(), [-0.5, 0.0, 1.0, 100.0, 100.5, 100.1, 3e38]),
        (pa.decimal128(9, 2), [Decimal("-0.50"), Decimal(0), Decimal(1), Decimal("100.10"), Decimal("100.11")]),
        (pa.decimal128(38, 1), [Decimal("-0.5"), Decimal("100.1"), Decimal(2**70), Decimal(10) ** 30, Decimal("1e36")]),
        (pa.decimal256(50, 7), [Decimal("0.0000001"), Decimal("100.1"), Decimal("100.1000001"), Decimal(2**63)]),
    ],
    ids=str,
)
def test_numbers_of_every_type_compare_exactly(type_: pa.DataType, values: list[Any]) -> None:
    agree(pa.array(values, type_), number_texts())


def test_halves_and_decimals_of_small_width_compare_exactly() -> None:
    agree(pa.array([0.5, 1.0, 100.0, 100.5]).cast(pa.float16()), number_texts())
    agree(pa.array([Decimal("100.10"), Decimal("100.50")], pa.decimal32(7, 2)), number_texts())


def test_nan_lies_above_every_number_and_equals_none() -> None:
    matcher = Matcher(["x > 1e300", "x = 1", "x <= 1e300", "x <> 1", "NOT x < 5", "x IS NULL", "x BETWEEN 1 AND 1e308"])
    _, found = matcher.match(pa.table({"x": [math.nan]}))
    assert found.tolist() == [0, 3, 4]


def time_texts() -> list[str]:
    return [f"x {op} TIMESTAMP '{t}'" for t in TIMES for op in OPERATORS] + ["x IS NOT NULL"]


@pytest.mark.parametrize("zone", [None, "UTC", "Asia/Tokyo"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_moments_of_every_unit_and_zone_compare_exactly(unit: str, zone: str | None) -> None:
    moments = [
        datetime(2024, 2, 29, 12, tzinfo=UTC),
        datetime(2024, 2, 29, tzinfo=UTC),
        datetime(1960, 1, 1, tzinfo=UTC),
    ]
    near = [m + timedelta(microseconds=k) for m in moments for k in (-1_000_000, -1000, -1, 0, 1, 1000, 1_000_000)]
    near += [datetime(1969, 12, 31, 23, 59, 59, k * 1000, tzinfo=UTC) for k in (0, 998, 999)]
    array = pa.array(near, pa.timestamp("us", "UTC")).cast(pa.timestamp(unit, zone), safe=False)
    if zone is None:
        assert array.type.tz is None
    agree(array, time_texts())


def test_nanoseconds_count_as_the_microsecond_they_lie_in() -> None:
    array = pa.array([1_000, 1_999, 2_000, -1], pa.timestamp("ns"))
    matcher = Matcher(["x = TIMESTAMP '1970-01-01 00:00:00.000001'", "x < TIMESTAMP '1970-01-01 00:00:00'"])
    rows, found = matcher.match(pa.table({"x": array}))
    assert (rows.tolist(), found.tolist()) == ([0, 1, 3], [0, 0, 1])


@pytest.mark.parametrize("type_", [pa.date32(), pa.date64()], ids=str)
def test_dates_are_their_midnight(type_: pa.DataType) -> None:
    agree(pa.array([date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1), date(1969, 12, 31)], type_), time_texts())


STRING_TYPES = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())]
WORDS = ["", "a", "ab", "abc", "b", "B", "é", "日本", "😀", "\ue000", "a\0", "IBM"]


@pytest.mark.parametrize("type_", STRING_TYPES, ids=str)
def test_strings_of_every_type_are_found_by_equality_and_by_order(type_: pa.DataType) -> None:
    array = pa.array(WORDS).cast(type_)
    if pa.types.is_dictionary(type_):
        array = pa.array(WORDS).dictionary_encode()
    agree(array, ["x = 'ab'", "x IN ('é', 'IBM')", "x <> 'a'", "x NOT IN ('a', 'b')", "x = 'none'"])
    agree(array, [f"x {op} '{w}'" for w in ("ab", "", "é", "\ue000", "zz") for op in OPERATORS] + ["x LIKE 'a%'"])


def test_long_columns_of_strings_are_found_like_short_ones() -> None:
    words = [f"w{k % 97}" for k in range(1000)]
    for texts in (["x = 'w5'", "x IN ('w1', 'w96')", "x <> 'w7'"], ["x >= 'w5'", "x LIKE 'w9%'", "x = 'w10'"]):
        agree(pa.array(words), texts)


def test_dictionaries_larger_than_their_column_are_read_where_used() -> None:
    words = [f"w{k}" for k in range(500)]
    coded = pa.DictionaryArray.from_arrays(pa.array([7, None, 499, 7, 0]), pa.array(words))
    for column in (coded, coded.slice(1), coded.slice(1, 1)):
        agree(column, ["x = 'w7'", "x > 'w3'", "x <> 'w499'", "x IS NULL", "x LIKE '%9_'"])
    viewed = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["a", "b"], pa.string_view()))
    rows, _ = Matcher(["x = 'b'", "x LIKE '_b%' OR x LIKE '%b'"]).match(pa.table({"x": viewed}))
    assert rows.tolist() == [1, 1]


def test_booleans_and_columns_of_nothing() -> None:
    agree(pa.array([True, False]), ["x", "NOT x", "x = TRUE", "x < TRUE", "x IS NULL", "x IS NOT FALSE"])
    agree(pa.nulls(3), ["x > 1", "x IS NULL", "x = 'a'", "x IS NOT NULL"])


def test_dictionaries_of_numbers_and_with_nulls_inside() -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None], pa.int8()), pa.array([1, None, 100]))
    matcher = Matcher(["x >= 1", "x IS NULL"])
    rows, found = matcher.match(pa.table({"x": coded}))
    assert list(zip(rows.tolist(), found.tolist(), strict=True)) == [(0, 0), (1, 1), (2, 0), (3, 1)]
