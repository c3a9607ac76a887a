"""Log entries and payloads survive the way through bytes; anything else holds no messages."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowcast.deliver.wire import Batch, Malformed, Marker, decode_entry, decode_payload, encode_entry, encode_payload
from narrowcast.errors import InputError

entries = st.one_of(
    st.builds(Marker, st.integers(0, 2**32 - 1)),
    st.builds(
        Batch, st.text(max_size=20), st.integers(0, 2**64 - 1), st.lists(st.binary(max_size=30), max_size=5).map(tuple)
    ),
)
moments = st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=5))]))
values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    moments,
    st.decimals(allow_nan=False, allow_infinity=False),
    st.binary(),
)


@given(entries)
def test_an_entry_comes_back_as_it_went(entry: Batch | Marker) -> None:
    assert decode_entry(encode_entry(entry)) == entry


@given(entries, st.data())
def test_one_flipped_bit_of_an_entry_is_always_seen(entry: Batch | Marker, data: st.DataObject) -> None:
    whole = bytearray(encode_entry(entry))
    bit = data.draw(st.integers(0, 8 * len(whole) - 1))
    whole[bit // 8] ^= 1 << bit % 8
    assert isinstance(decode_entry(bytes(whole)), Malformed)


@given(st.sampled_from([b"", b"nl\x01\x01", b"nl\x01\x02", b"nl\x01\x09"]), st.binary(max_size=80))
def test_foreign_entries_do_not_raise(head: bytes, rest: bytes) -> None:
    body = head + rest
    decode_entry(body)
    decode_entry(body + crc32(body).to_bytes(4, "big"))


@given(st.dictionaries(st.text(max_size=8), values, max_size=5))
def test_a_message_comes_back_as_it_went(message: dict[str, Any]) -> None:
    assert decode_payload(encode_payload(message)) == message


def test_numbers_of_numpy_and_nan_travel_too() -> None:
    found = decode_payload(encode_payload({"a": np.int64(3), "b": np.float32(0.5), "c": math.nan}))
    assert isinstance(found, dict)
    assert (found["a"], found["b"], math.isnan(found["c"])) == (3, 0.5, True)


def test_a_moment_without_a_zone_is_utc() -> None:
    assert decode_payload(encode_payload({"t": datetime(2024, 1, 2)})) == {"t": datetime(2024, 1, 2, tzinfo=UTC)}


def test_a_value_that_cannot_travel_is_the_publishers_fault() -> None:
    with pytest.raises(InputError, match="cannot be sent"):
        encode_payload({"a": object()})


@given(st.binary(max_size=60))
def test_a_bad_payload_does_not_raise(data: bytes) -> None:
    assert isinstance(decode_payload(data), dict | Malformed)


@pytest.mark.parametrize(
    "data", [b"[1]", b"3", b"[" * 100_000, b'{"t":{"$time":' + b"9" * 40 + b"}}", b'{"d":{"$decimal":"x"}}', b"\xff"]
)
def test_payloads_that_are_no_message_are_refused(data: bytes) -> None:
    assert decode_payload(data) == Malformed("payload")


def test_a_decimal_keeps_its_digits() -> None:
    assert decode_payload(encode_payload({"p": Decimal("100.10")})) == {"p": Decimal("100.10")}
