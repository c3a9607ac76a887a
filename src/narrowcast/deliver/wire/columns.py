"""Messages as columns: an Arrow record batch as bytes and back, and what each of its rows is as a message.

A row means the very message that a dict with its values means (`payload`). So columns are of the types that JSON, with
its tags, brings to the other side as they were; `as_columns` turns others into those, where they have an equal.

What comes out of the decoder is sound: of such types, valid to the last offset and letter, not compressed, and no
larger in memory than its bytes allow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from struct import error as struct_error
from struct import unpack_from
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from narrowcast.deliver.wire.entry import ColumnBatch
from narrowcast.deliver.wire.frame import NO_FLOW, Malformed, Message
from narrowcast.deliver.wire.payload import encode_payload
from narrowcast.deliver.wire.place import END
from narrowcast.deliver.wire.sendable import MOST_DEPTH, TAGS

Indices = NDArray[np.int64]

MOMENT = pa.timestamp("us", "UTC")
DAMAGED = Malformed("columns")
ANY_SIZE = 1 << 30
MOST_SCALE = 76  # digits behind a decimal's point, as many as the longest has
_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
_MICRO = timedelta(microseconds=1)
_FIRST = (datetime(1, 1, 1, tzinfo=UTC) - _ZERO) // _MICRO
_LAST = (datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC) - _ZERO) // _MICRO
_WHOLE = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
_KEPT = {pa.null(), pa.bool_(), *_WHOLE, pa.float32(), pa.float64(), pa.string(), pa.binary(), MOMENT}
_PLAIN = frozenset((pa.bool_(), pa.int64(), pa.float64(), pa.string()))
_INSTEAD = {
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date32(): MOMENT,
    pa.date64(): MOMENT,
}


# Out.


def as_columns(batch: pa.RecordBatch) -> pa.RecordBatch | None:
    """The batch with columns as they are sent; None if only messages one by one can hold it, or say what is wrong.

    >>> as_columns(pa.record_batch({"at": pa.array([0], pa.date32())})).schema.field("at").type
    TimestampType(timestamp[us, tz=UTC])
    """
    names = batch.schema.names
    types = [_sent_as(type_, 0) for type_ in batch.schema.types]
    if None in types or not _good_names(names):
        return None
    try:
        columns = [_cast(column, type_) for column, type_ in zip(batch.columns, types, strict=True)]
        for column in columns:
            column.validate(full=True)
    except (pa.ArrowException, ValueError, OverflowError):
        return None
    if not all(map(_moments_in_range, columns)):
        return None
    fields = [pa.field(name, type_) for name, type_ in zip(names, types, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _good_names(names: list[str]) -> bool:
    """Whether a message, or a dict in one, may have these: each once, and none that stands for something else."""
    return 0 < len(names) == len(set(names)) and (len(names) > 1 or names[0] not in TAGS)


def _sent_as(type_: pa.DataType, depth: int) -> pa.DataType | None:
    """The type that a column of this one is sent as; itself if it may stay."""
    if type_ in _KEPT or _is_decimal(type_):
        return type_
    if pa.types.is_timestamp(type_):
        return MOMENT
    if pa.types.is_dictionary(type_):
        return _sent_as(type_.value_type, depth)
    if pa.types.is_fixed_size_binary(type_):
        return pa.binary()
    if depth == MOST_DEPTH - 1:
        return None
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        inner = _sent_as(type_.value_type, depth + 1)
        return None if inner is None else pa.list_(inner)
    if pa.types.is_struct(type_):
        names = [field.name for field in type_]
        inners = [_sent_as(field.type, depth + 1) for field in type_]
        if None in inners or not _good_names(names):
            return None
        return pa.struct(list(zip(names, inners, strict=True)))
    return _INSTEAD.get(type_)


def _is_sent(type_: pa.DataType, depth: int) -> bool:
    """Whether a column may be of this type as it is."""
    if pa.types.is_list(type_):
        return depth < MOST_DEPTH - 1 and _is_sent(type_.value_type, depth + 1)
    if pa.types.is_struct(type_):
        inners = all(_is_sent(field.type, depth + 1) for field in type_)
        return depth < MOST_DEPTH - 1 and inners and _good_names([field.name for field in type_])
    return type_ in _KEPT or _is_decimal(type_)


def is_plain(batch: pa.RecordBatch) -> bool:
    """Whether whoever makes columns of its messages, one by one, comes to the same types."""
    return _PLAIN.issuperset(batch.schema.types) and not any(column.null_count for column in batch.columns)


def _is_decimal(type_: pa.DataType) -> bool:
    """Of those, Python has the ones that are not too far from one."""
    return bool(pa.types.is_decimal128(type_) or pa.types.is_decimal256(type_)) and abs(type_.scale) <= MOST_SCALE


def _cast(column: pa.Array, type_: pa.DataType) -> pa.Array:
    if column.type == type_:
        return column
    if pa.types.is_timestamp(column.type) and column.type.unit == "ns":  # whole microseconds, the earlier one
        column = pc.floor_temporal(column, unit="microsecond")
    return column.cast(type_)


def _moments_in_range(array: pa.Array) -> bool:
    """Whether Python has every moment in an array, however deep."""
    if array.type == MOMENT:
        found = pc.min_max(array.cast(pa.int64()))
        low, high = found["min"].as_py(), found["max"].as_py()
        return low is None or (low >= _FIRST and high <= _LAST)
    return all(_moments_in_range(each) for each in _children(array))


def encode_columns(batch: pa.RecordBatch) -> bytes:
    """The bytes of a batch: Arrow's stream of one schema and one record batch, without the mark of its end.

    >>> batch = pa.record_batch({"p": [1, 2]})
    >>> decode_columns(encode_columns(batch), 2).equals(batch), decode_columns(b"", 2)
    (True, Malformed(reason='columns'))
    """
    return b"".join((_schema_bytes(batch.schema), memoryview(batch.serialize())))


@lru_cache(maxsize=64)
def _schema_bytes(schema: pa.Schema) -> bytes:
    return bytes(schema.serialize())


# In.


def decode_columns(data: bytes | memoryview, count: int) -> pa.RecordBatch | Malformed:
    """The batch of so many rows that bytes are, or why there is none. Never raises."""
    try:
        stream = pa.BufferReader(data)
        schema = pa.ipc.read_schema(stream)
        message = pa.ipc.read_message(stream)
        if message.type != "record batch" or stream.tell() != len(data):
            return DAMAGED
        if _is_compressed(message.metadata.to_pybytes()) or not _good_names(schema.names):
            return DAMAGED
        if not all(_is_sent(type_, 0) for type_ in schema.types):
            return DAMAGED
        batch = pa.ipc.read_record_batch(message, schema)
        batch.validate()  # before anything else: Arrow aborts on arrays that are shorter inside than outside
        if batch.num_rows != count or not _fits(batch, len(data)):
            return DAMAGED
        batch.validate(full=True)
        return batch if all(map(_moments_in_range, batch.columns)) else DAMAGED
    except (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, RecursionError, struct_error, EOFError):
        return DAMAGED


def _fits(batch: pa.RecordBatch, size: int) -> bool:
    """Nulls and empty structs take no bytes: without this, a few bytes could claim to be billions of them."""
    most = 64 * size
    arrays: list[pa.Array] = list(batch.columns)
    while arrays:
        array = arrays.pop()
        most -= len(array)
        if most < 0:
            return False
        arrays += _children(array)
    return True


def _children(array: pa.Array) -> list[pa.Array]:
    if pa.types.is_list(array.type):
        return [array.values]
    return [array.field(k) for k in range(array.type.num_fields)] if pa.types.is_struct(array.type) else []


def _is_compressed(metadata: bytes) -> bool:
    """Whether a record batch names a compression, whose sizes nobody checked; Message.fbs of Arrow, read by hand."""
    root = unpack_from("<I", metadata)[0]
    header = _field(metadata, root, 2)
    if header is None:
        return True
    return _field(metadata, header + unpack_from("<I", metadata, header)[0], 3) is not None


def _field(data: bytes, table: int, number: int) -> int | None:
    """Where a field of a flatbuffer's table stands; None if it is absent."""
    names = table - unpack_from("<i", data, table)[0]
    if names < 0 or 4 + 2 * number >= unpack_from("<H", data, names)[0]:
        return None
    offset: int = unpack_from("<H", data, names + 4 + 2 * number)[0]
    return table + offset if offset else None


# Rows.


def rows_of(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Each row as the message it is: the same values, of the same types, as a dict that came as JSON.

    >>> rows_of(pa.record_batch({"p": [1, None]}))
    [{'p': 1}, {'p': None}]
    """
    found: list[dict[str, Any]] = [{} for _ in range(batch.num_rows)]
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        for row, value in zip(found, _values(column), strict=True):
            row[name] = value  # half the price of making each dict at once
    return found


def _values(column: pa.Array) -> list[Any]:
    if column.type == MOMENT:
        return [None if t is None else _ZERO + t * _MICRO for t in column.cast(pa.int64()).to_pylist()]
    found: list[Any] = column.to_pylist()
    fix = _fix(column.type)
    return found if fix is None else [fix(value) for value in found]


def _fix(type_: pa.DataType) -> Callable[[Any], Any] | None:
    """What to do with values that hold moments, whose zone Arrow calls by another name; None: nothing."""
    if type_ == MOMENT:
        return lambda value: None if value is None else value.replace(tzinfo=UTC)
    if pa.types.is_list(type_):
        inner = _fix(type_.value_type)
        return None if inner is None else lambda value: None if value is None else [inner(each) for each in value]
    if not pa.types.is_struct(type_):
        return None
    inners = {field.name: fix for field in type_ if (fix := _fix(field.type)) is not None}

    def fixed(value: Any) -> Any:
        return None if value is None else value | {name: fix(value[name]) for name, fix in inners.items()}

    return fixed if inners else None


def payloads_of(entry: ColumnBatch) -> list[bytes]:
    """The rows of an entry of the log as JSON, one by one; none if they cannot be read."""
    batch = decode_columns(entry.data, entry.count)
    return [] if isinstance(batch, Malformed) else [encode_payload(row, ANY_SIZE) for row in rows_of(batch)]


class Columns(Sequence[Message]):
    """Rows of one entry of the log: row k of the batch stands there at `indices[k]`, ascending, and is of `flows[k]`.

    `base` is the place before the entry's first message. As a sequence these are messages like any others, each made
    into JSON when somebody asks; `batch` and the numbers are for those who can do with columns. The bytes of a frame
    are read when they are first needed: see `is_whole` before.
    """

    __slots__ = ("_batch", "_data", "base", "flows", "indices")

    def __init__(
        self,
        base: int,
        indices: Indices,
        batch: pa.RecordBatch | None,
        data: bytes | memoryview | None = None,
        flows: Indices | None = None,
    ) -> None:
        self.base, self.indices = base, indices
        self.flows = np.full(len(indices), NO_FLOW) if flows is None else flows
        self._batch: pa.RecordBatch | Malformed | None = batch
        self._data = data

    @property
    def data(self) -> bytes | memoryview:
        """The batch as it is sent."""
        if self._data is None:
            self._data = encode_columns(self.batch)
        return self._data

    @property
    def batch(self) -> pa.RecordBatch:
        if not self.is_whole():
            raise ValueError("the columns are damaged")
        return self._batch

    def is_whole(self) -> bool:
        """Whether the rows can be read; whoever makes a claim about them must know."""
        if self._batch is None:
            assert self._data is not None
            self._batch = decode_columns(self._data, len(self.indices))
        return not isinstance(self._batch, Malformed)

    @property
    def nbytes(self) -> int:
        """About how many bytes the batch is sent in, without making them."""
        return int(self.batch.nbytes) if self._data is None else len(self._data)

    @property
    def first(self) -> int:
        """The place of the first row."""
        return self.base + int(self.indices[0]) + 1

    @property
    def last(self) -> int:
        """The place of the last row."""
        return self.base + int(self.indices[-1]) + 1

    @property
    def places(self) -> list[int]:
        return [self.base + 1 + index for index in self.indices.tolist()]

    def payloads(self) -> list[bytes]:
        """Each row as JSON."""
        return [encode_payload(row, ANY_SIZE) for row in rows_of(self.batch)]

    def select(self, rows: NDArray[Any] | Sequence[int]) -> Columns:
        """Some of the rows, by ascending number."""
        if len(rows) == len(self):
            return self
        batch = self.batch.take(pa.array(rows, pa.int64()))
        return Columns(self.base, self.indices[rows], batch, None, self.flows[rows])

    def part(self, start: int, end: int) -> Columns:
        """The rows from `start` to before `end`."""
        if start == 0 and end >= len(self):
            return self
        batch = self.batch.slice(start, end - start)
        return Columns(self.base, self.indices[start:end], batch, None, self.flows[start:end])

    def without(self, others: Sequence[Columns]) -> Columns:
        """The rows that none of the others has; all are of one entry."""
        known = np.concatenate([other.indices for other in others])
        return self.select(np.flatnonzero(~np.isin(self.indices, known)))

    def upto(self, at: int) -> int:
        """How many rows stand at or before a place."""
        return int(np.searchsorted(self.indices, min(at - self.base, END + 1), side="left"))

    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, index: int) -> Message: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...

    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        return tuple(self)[index]

    def __iter__(self) -> Iterator[Message]:
        return zip(self.places, self.flows.tolist(), self.payloads(), strict=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Columns):
            return False
        numbers = np.array_equal(self.indices, other.indices) and np.array_equal(self.flows, other.flows)
        return numbers and (self.base, self.data) == (other.base, other.data)

    __hash__ = None  # type: ignore[assignment]


class ColumnRows(Sequence[tuple[int, bytes]]):
    """Columns as an application gets messages: place and payload, each made when somebody asks."""

    __slots__ = ("columns",)

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns)

    @overload
    def __getitem__(self, index: int) -> tuple[int, bytes]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[int, bytes]]: ...

    def __getitem__(self, index: int | slice) -> tuple[int, bytes] | Sequence[tuple[int, bytes]]:
        if isinstance(index, slice):
            return list(self)[index]
        k = range(len(self))[index]
        return next(iter(ColumnRows(self.columns.part(k, k + 1))))

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        return zip(self.columns.places, self.columns.payloads(), strict=True)


def merged(parts: Sequence[Columns]) -> Columns:
    """Rows of one entry that came apart, in their order; a row that came twice is there once."""
    if len(parts) == 1:
        return parts[0]
    indices, rows = np.unique(np.concatenate([part.indices for part in parts]), return_index=True)
    table = pa.Table.from_batches([part.batch for part in parts]).combine_chunks()
    batch = table.to_batches()[0]
    flows = np.concatenate([part.flows for part in parts])[rows]
    return Columns(parts[0].base, indices, batch.take(pa.array(rows)), None, flows)


def split_columns(batch: pa.RecordBatch, most_rows: int, most_bytes: int) -> Iterator[tuple[pa.RecordBatch, bytes]]:
    """A batch in pieces whose bytes are at most so many, in order; a single row that is larger comes all the same."""
    start, n = 0, batch.num_rows
    step = max(1, min(most_rows, most_bytes * n // max(batch.nbytes, 1)))
    while start < n:
        piece = batch.slice(start, step)
        data = encode_columns(piece)
        if len(data) > most_bytes and piece.num_rows > 1:  # rows are not all of one size, and have some around them
            step = max(1, min(piece.num_rows - 1, piece.num_rows * most_bytes * 15 // (16 * len(data))))
            continue
        start += piece.num_rows
        yield piece, data
