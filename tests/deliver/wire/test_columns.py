"""Columns mean what dicts mean, come out as they went in, and whatever else bytes say is refused without a crash."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowcast.deliver.client.rows import ColumnChunk, MessageBatch, entries, payloads
from narrowcast.deliver.parts.publisher import PublisherSettings
from narrowcast.deliver.wire import (
    ColumnBatch,
    Frame,
    Malformed,
    decode,
    decode_entry,
    decode_payloads,
    encode,
    encode_entry,
    end_of,
)
from narrowcast.deliver.wire.columns import ColumnRows, Columns, decode_columns, encode_columns, merged, rows_of
from narrowcast.deliver.wire.frame import MOST_BYTES
from narrowcast.errors import InputError

INTS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
TEXTS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
BYTES = [pa.binary(), pa.large_binary(), pa.binary_view()]
MOMENTS = [pa.timestamp(unit, zone) for unit in ("s", "ms", "us") for zone in (None, "UTC", "Europe/Berlin")]
WHOLE_SECONDS = st.datetimes(datetime(1, 1, 3), datetime(9999, 12, 28)).map(lambda d: d.replace(microsecond=0))


def _of(type_: pa.DataType, values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[pa.DataType, Any]]:
    return st.just((type_, st.none() | values))


def _nested(inner: st.SearchStrategy[tuple[pa.DataType, Any]]) -> st.SearchStrategy[tuple[pa.DataType, Any]]:
    lists = inner.map(lambda k: (pa.list_(k[0]), st.none() | st.lists(k[1], max_size=3)))
    structs = st.lists(inner, min_size=1, max_size=3).map(
        lambda kinds: (
            pa.struct([(f"f{j}", kind[0]) for j, kind in enumerate(kinds)]),
            st.none() | st.fixed_dictionaries({f"f{j}": kind[1] for j, kind in enumerate(kinds)}),
        )
    )
    return lists | structs


_FLAT = st.one_of(
    *(_of(t, st.integers(0, 127)) for t in INTS),
    *(_of(t, st.text(max_size=6)) for t in TEXTS),
    *(_of(t, st.binary(max_size=6)) for t in BYTES),
    *(_of(t, WHOLE_SECONDS) for t in MOMENTS),
    _of(pa.timestamp("us"), st.datetimes()),
    _of(pa.date32(), st.dates()),
    _of(pa.bool_(), st.booleans()),
    _of(pa.float64(), st.floats()),
    _of(pa.float32(), st.floats(width=32)),
    _of(pa.decimal128(9, 2), st.decimals(-9999, 9999, places=2)),
    _of(pa.null(), st.none()),
)  # fmt: skip
_KINDS = st.recursive(_FLAT, _nested, max_leaves=4)


@st.composite
def tables(draw: st.DrawFn) -> pa.RecordBatch:
    kinds = draw(st.lists(_KINDS, min_size=1, max_size=4))
    n = draw(st.integers(1, 5))
    arrays = [pa.array([draw(values) for _ in range(n)], type_) for type_, values in kinds]
    return pa.RecordBatch.from_arrays(arrays, names=[f"c{k}" for k in range(len(kinds))])


def exact(value: Any) -> Any:
    """With types: 1, 1.0, True and moments in other zones are all different."""
    if isinstance(value, dict):
        return {name: exact(each) for name, each in value.items()}
    return [exact(each) for each in value] if isinstance(value, list) else (type(value).__name__, repr(value))


@given(tables())
def test_a_row_is_the_same_message_as_columns_and_as_a_dict(batch: pa.RecordBatch) -> None:
    one_by_one = decode_payloads(list(payloads(batch)))
    (chunk,) = entries(batch)
    assert isinstance(chunk, ColumnChunk), batch.schema
    columns = decode_columns(chunk.data, chunk.n_rows)
    assert not isinstance(columns, Malformed)
    assert exact(rows_of(columns)) == exact(one_by_one)


def test_types_that_are_no_columns_go_one_by_one_or_are_refused_as_dicts_are() -> None:
    times = pa.record_batch({"a": [1], "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64()))})
    (chunk,) = entries(times)
    assert decode_payloads(chunk) == [{"a": 1, "m": [["k", 1]]}]
    for bad in (
        pa.record_batch({"t": pa.array([5], pa.time32("s"))}),
        pa.record_batch({"t": pa.array([2**62], pa.timestamp("s"))}),
        pa.record_batch({"$time": [1]}),
        pa.record_batch({"s": pa.array([{"$bytes": "x"}])}),
    ):
        with pytest.raises(InputError):
            list(entries(bad))
    fine = pa.record_batch({"t": pa.array([-1, 1999, 2001], pa.timestamp("ns"))})
    (found,) = entries(fine)
    assert exact(rows_of(decode_columns(found.data, 3))) == exact(decode_payloads(list(payloads(fine))))


def test_a_data_frame_is_a_table_and_one_of_mixed_types_is_rows() -> None:
    pd = pytest.importorskip("pandas")
    (chunk,) = entries(pd.DataFrame({"s": ["a", None], "p": [1.5, float("nan")]}))
    assert rows_of(decode_columns(chunk.data, 2)) == [{"s": "a", "p": 1.5}, {"s": None, "p": None}]
    (mixed,) = entries(pd.DataFrame({"s": ["a", 1]}))
    assert mixed == (b'{"s":"a"}', b'{"s":1}')


BATCH = pa.record_batch(
    {
        "s": ["a", None, "ccc"],
        "p": [1, 2, 3],
        "t": pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 3, pa.timestamp("us", "UTC")),
        "l": [[1], None, [2, 3]],
        "d": pa.array([Decimal("1.5")] * 3, pa.decimal128(5, 2)),
        "x": pa.array([{"y": "z"}, None, {"y": None}]),
    }
)


def test_a_frame_and_an_entry_of_columns_come_out_as_they_went_in() -> None:
    columns = Columns(5 << 16, np.array([0, 4, 9]), BATCH, None, np.array([7, 0, 0xFFFFFFFF]))
    for generation in (0, 3):
        base = generation << 64
        rows = Columns((5 << 16) | base, columns.indices, BATCH, None, columns.flows)
        frame = Frame(1, 2, 3, base | end_of(4), base | end_of(5), rows)
        found = decode(encode(frame, 9, 8))
        assert found == frame
        assert isinstance(found, Frame)
        assert [at for at, _, _ in found.messages] == [base | (5 << 16) + k for k in (1, 5, 10)]
        assert [flow for _, flow, _ in found.messages] == [7, 0, 0xFFFFFFFF]
    entry = ColumnBatch("desk", 4, 3, encode_columns(BATCH))
    assert decode_entry(encode_entry(entry)) == entry


@pytest.mark.parametrize(("after", "upto", "entry", "indices"), [
    (end_of(4), end_of(5), 5 << 16, [3, 3, 4]), (end_of(4), end_of(5), 5 << 16, [4, 3, 5]),
    (end_of(5), end_of(6), 5 << 16, [1, 2, 3]), (end_of(4), (5 << 16) + 3, 5 << 16, [1, 2, 3]),
    (end_of(4), end_of(5), (5 << 16) + 1, [1, 2, 3]), (end_of(4), end_of(6), 5 << 16, [1, 2, 0xFFFF]),
])  # fmt: skip
def test_a_frame_whose_places_cannot_be_is_refused(after: int, upto: int, entry: int, indices: list[int]) -> None:
    rows = Columns(entry, np.array(indices), BATCH)
    assert decode(encode(Frame(0, 0, 0, after, upto, rows))) == Malformed("order")


def test_damaged_columns_are_refused_and_crash_nobody() -> None:
    data, rng = encode_columns(BATCH), Random(7)
    seen = {True: 0, False: 0}
    for _ in range(4000):
        changed = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 8))):
            changed[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
        if rng.random() < 0.2:
            changed = changed[: rng.randrange(len(data))]
        found = decode_columns(bytes(changed), 3)
        seen[isinstance(found, Malformed)] += 1
        if not isinstance(found, Malformed):  # another value, a name: as good as any
            assert len(rows_of(found)) == 3
            assert len(Columns(1 << 16, np.arange(3), found).payloads()) == 3
    assert min(seen.values()) > 200


def _ipc(batch: pa.RecordBatch, **options: Any) -> bytes:
    made = pa.ipc.IpcWriteOptions(**options)
    schema: bytes = batch.schema.serialize().to_pybytes()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=made) as writer:
        writer.write_batch(batch)
    body: bytes = sink.getvalue().to_pybytes()[len(schema) :]
    return schema + body.removesuffix(b"\xff\xff\xff\xff\0\0\0\0")


def test_what_would_grow_in_memory_is_refused() -> None:
    plain = pa.record_batch({"x": ["y" * 1000] * 3})
    assert decode_columns(_ipc(plain), 3) == plain
    for codec in ("zstd", "lz4"):
        assert decode_columns(_ipc(plain, compression=codec), 3) == Malformed("columns")
    nulls = pa.RecordBatch.from_arrays([pa.Array.from_buffers(pa.null(), 1 << 30, [None])], names=["n"])
    assert decode_columns(encode_columns(nulls), 3) == Malformed("columns")
    inside = pa.ListArray.from_arrays(
        pa.array([0, 1 << 30], pa.int32()), pa.Array.from_buffers(pa.null(), 1 << 30, [None])
    )
    assert decode_columns(encode_columns(pa.record_batch({"n": inside})), 1) == Malformed("columns")
    for bad in (
        pa.array([1, 2, 3], pa.time32("s")),
        pa.array(["a", "b", "a"]).dictionary_encode(),
        pa.array([date.min] * 3),
    ):
        assert decode_columns(encode_columns(pa.record_batch({"n": bad})), 3) == Malformed("columns")
    assert decode_columns(encode_columns(BATCH), 2) == Malformed("columns")
    assert decode_columns(encode_columns(BATCH) + b"\0", 3) == Malformed("columns")
    twice = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert decode_columns(encode_columns(twice), 1) == Malformed("columns")


def test_entries_of_a_table_are_nearly_as_large_as_they_may_be() -> None:
    limits = PublisherSettings(most_columns=20_000)
    *full, _ = entries(pa.table({"n": range(5000), "x": ["y" * 50] * 5000}), limits=limits)
    assert all(isinstance(chunk, ColumnChunk) and 15_000 < len(chunk.data) <= 20_000 for chunk in full)


def test_a_table_is_cut_into_entries_that_the_log_takes_and_a_row_that_is_too_large_is_refused() -> None:
    limits = PublisherSettings(most_columns=20_000, most_payload=30_000)
    table = pa.table({"n": range(1000), "x": ["y" * (k % 700) for k in range(1000)]})
    found = list(entries(table, limits=limits))
    assert len(found) > 15
    rows = []
    for chunk in found:
        assert isinstance(chunk, ColumnChunk)
        assert len(chunk.data) <= 20_000
        rows += rows_of(decode_columns(chunk.data, chunk.n_rows))
    assert rows == table.to_pylist()
    assert len(list(entries(pa.table({"x": ["y" * 25_000]}), limits=limits))) == 1
    with pytest.raises(InputError, match="at most 30000 bytes"):
        list(entries(pa.table({"x": ["z", "y" * 40_000]}), limits=limits))
    with pytest.raises(InputError, match="at most"):
        encode(Frame(0, 0, 0, 0, end_of(1), Columns(1 << 16, np.arange(1), pa.record_batch({"x": ["y" * MOST_BYTES]}))))


def test_rows_that_came_apart_are_one_again_and_a_subscriber_gets_columns_or_dicts() -> None:
    whole = Columns(1 << 16, np.arange(3), BATCH)
    both = merged([whole.select([1]), whole.select([0, 2]), whole.select([1])])
    assert both == whole
    assert len(whole.without([whole.select([1])])) == 2
    assert (whole.upto(1 << 16), whole.upto((1 << 16) + 2), whole.upto(end_of(9))) == (0, 2, 3)
    batch = MessageBatch(ColumnRows(both), 0, {})
    assert batch.arrow().to_batches()[0] == BATCH
    assert list(batch.places) == [(1 << 16) + k for k in (1, 2, 3)]
    assert (len(batch), batch[1]["p"], batch[0]["x"]) == (3, 2, {"y": "z"})
