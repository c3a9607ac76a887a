"""Spark gets the same rows from the log, whichever way they were published, and columns without a look at each."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from narrowcast.deliver.client.rows import ColumnChunk, entries
from narrowcast.deliver.spark.rows import record_batches
from narrowcast.deliver.transport import Entry
from narrowcast.deliver.wire import Batch, ColumnBatch, encode_entry
from narrowcast.deliver.wire import columns as wire_columns

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
COLUMNS: dict[str, pa.Array] = {
    "i": pa.array([1, None, -3], pa.int32()),
    "u": pa.array([1, 2**64 - 1, 3], pa.uint64()),
    "f": pa.array([1.0, 2.5, None], pa.float32()),
    "s": pa.array(["1", None, "x"]),
    "t": pa.array([NOON, None, NOON], pa.timestamp("ms", "Europe/Berlin")),
    "day": pa.array([date(2026, 1, 5)] * 3),
    "d": pa.array([Decimal("1.50"), None, Decimal(2)], pa.decimal128(5, 2)),
    "b": pa.array([True, None, False]),
    "l": pa.array([[1], None, []], pa.list_(pa.int64())),
}
WANTED = [
    pa.int64(), pa.int8(), pa.float64(), pa.float32(), pa.string(), pa.timestamp("us", "UTC"), pa.timestamp("us"),
    pa.bool_(), pa.decimal128(10, 2), pa.list_(pa.int64()),
]  # fmt: skip
ABOUT = [("_shard", pa.int32()), ("_sequence", pa.int64()), ("_index", pa.int32())]


def logged(rows: Any) -> Entry:
    (chunk,) = entries(rows)
    made = ColumnBatch("d", 0, *chunk) if isinstance(chunk, ColumnChunk) else Batch("d", 0, chunk)
    return Entry(7, encode_entry(made), "2026-01-05T09:30:00.123456789Z")


@pytest.mark.parametrize("type_", WANTED, ids=str)
def test_rows_published_as_columns_are_read_as_if_published_one_by_one(type_: pa.DataType) -> None:
    batch = pa.record_batch(COLUMNS)
    schema = pa.schema(
        [*ABOUT, ("_time", pa.timestamp("us", "UTC")), ("absent", type_), *((n, type_) for n in COLUMNS)]
    )
    one_by_one = pa.Table.from_batches(record_batches(1, [logged(batch.to_pylist())], schema))
    as_columns = pa.Table.from_batches(record_batches(1, [logged(batch)], schema))
    assert as_columns.to_pylist() == one_by_one.to_pylist()


def test_both_kinds_of_entries_keep_their_order_and_payloads_are_made_only_if_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = pa.record_batch({"i": range(1000)})
    log = [logged([{"i": -1}]), logged(table), logged([{"i": -2}])]
    rows = pa.Table.from_batches(record_batches(0, log, pa.schema([("i", pa.int64()), ("_payload", pa.string())])))
    assert rows["i"].to_pylist() == [-1, *range(1000), -2]
    assert rows["_payload"].to_pylist()[:2] == ['{"i":-1}', '{"i":0}']
    monkeypatch.setattr(wire_columns, "rows_of", lambda batch: pytest.fail("looked at rows one by one"))
    found = pa.Table.from_batches(record_batches(0, log, pa.schema([("i", pa.int64()), ("_index", pa.int32())])))
    assert found["i"].to_pylist() == [-1, *range(1000), -2]
