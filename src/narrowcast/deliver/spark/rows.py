"""Messages of the log as rows of a schema: attributes by name, what a message lacks is null.

Columns that begin with an underscore are about the message, all others are its attributes:
`_shard`, `_sequence` and `_index` say where it stands, `_time` when the log took it, `_payload` what was sent.
A value that is not of the column's type is null, as it is to a profile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from narrowcast.deliver.transport import Entry
from narrowcast.deliver.wire import Batch, ColumnBatch, Malformed, decode_entry, decode_payloads
from narrowcast.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_SCHEMA = "_shard int, _sequence bigint, _index int, _time timestamp, ts timestamp, _payload string"
ABOUT = ("_shard", "_sequence", "_index", "_time", "_payload")
MOST_ROWS = 20_000


class LogRow(NamedTuple):
    """A message of the log: its entry, its position there, and what was sent."""

    entry: Entry
    position: int
    payload: bytes


def record_batches(shard: int, entries: Iterable[Entry], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The messages of entries, in order, as Arrow batches of this schema."""
    rows: list[LogRow] = []
    for entry in entries:
        batch = decode_entry(entry.data)
        if isinstance(batch, Batch):
            rows += [LogRow(entry, index, payload) for index, payload in enumerate(batch.payloads)]
        elif isinstance(batch, ColumnBatch):
            if rows:
                yield _batch(shard, rows, schema)
                rows = []
            yield from _columns(shard, entry, batch, schema)
        if len(rows) >= MOST_ROWS:
            yield _batch(shard, rows, schema)
            rows = []
    if rows:
        yield _batch(shard, rows, schema)


def check_schema(names: Iterable[str]) -> None:
    """An unknown column that begins with an underscore is a mistake: no message would ever fill it."""
    for name in names:
        if name.startswith("_") and name not in ABOUT:
            raise InputError(f"columns that begin with _ must be among {', '.join(ABOUT)}, got {name}", name=name)


def _batch(shard: int, rows: list[LogRow], schema: pa.Schema) -> pa.RecordBatch:
    import pyarrow as pa

    wanted = any(name not in ABOUT for name in schema.names)
    messages = decode_payloads([row.payload for row in rows]) if wanted else []
    columns = []
    for field in schema:
        about = field.name in ABOUT
        columns.append(column(_about(field.name, shard, rows) if about else _values(field.name, messages), field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _columns(shard: int, entry: Entry, found: ColumnBatch, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of an entry of columns, without a look at each."""
    import pyarrow as pa

    from narrowcast.deliver.wire.columns import decode_columns

    batch = decode_columns(found.data, found.count)
    if isinstance(batch, Malformed):
        return
    columns = []
    for field in schema:
        if field.name in ABOUT:
            columns.append(_about_columns(field, shard, entry, batch))
        elif field.name in batch.schema.names:
            columns.append(_as(batch.column(field.name), field.type))
        else:
            columns.append(pa.nulls(found.count, field.type))
    yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _about_columns(field: pa.Field, shard: int, entry: Entry, batch: pa.RecordBatch) -> pa.Array:
    import pyarrow as pa

    if field.name == "_index":
        return pa.array(range(batch.num_rows), field.type)
    if field.name == "_payload":
        from narrowcast.deliver.wire import encode_payload
        from narrowcast.deliver.wire.columns import ANY_SIZE, rows_of

        return pa.array([encode_payload(row, ANY_SIZE).decode() for row in rows_of(batch)], field.type)
    one = {"_shard": shard, "_sequence": entry.sequence, "_time": moment(entry.stamp)}[field.name]
    return pa.repeat(pa.scalar(one, field.type), batch.num_rows)


def _as(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """A column as another type, as `column` has it for values one by one; where Arrow can say the same, it does."""
    import pyarrow as pa
    from pyarrow import types

    whole = types.is_integer(array.type)
    alike = (
        array.type == type_
        or (whole and (types.is_integer(type_) or types.is_float64(type_)))
        or (types.is_float32(array.type) and types.is_float64(type_))
        or (types.is_timestamp(array.type) and types.is_timestamp(type_))
        or (types.is_string(array.type) and types.is_large_string(type_))
    )
    if alike:
        try:
            return array.cast(type_)
        except pa.ArrowException:
            pass
    from narrowcast.deliver.wire.columns import rows_of

    return column([row["value"] for row in rows_of(pa.record_batch({"value": array}))], type_)


def _values(name: str, messages: list[dict[str, Any] | Malformed]) -> list[Any]:
    """An attribute of each message; one that cannot be read has none."""
    return [None if isinstance(message, Malformed) else message.get(name) for message in messages]


def _about(name: str, shard: int, rows: list[LogRow]) -> list[Any]:
    if name == "_shard":
        return [shard] * len(rows)
    if name == "_sequence":
        return [row.entry.sequence for row in rows]
    if name == "_index":
        return [row.position for row in rows]
    if name == "_time":
        return [moment(row.entry.stamp) for row in rows]
    return [row.payload.decode(errors="replace") for row in rows]


def moment(stamp: str) -> datetime | None:
    """A moment to the microsecond, of a stamp that may be finer.

    >>> moment("2026-01-05T09:30:00.123456789Z").isoformat()
    '2026-01-05T09:30:00.123456+00:00'
    """
    if not stamp:
        return None
    whole, _, rest = stamp.rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{whole}.{rest[:6]:0<6}+00:00")


def column(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Values as an array of this type; those of another type are null.

    >>> import pyarrow as pa
    >>> column([1, "x", None, 2.5, True], pa.float64()).to_pylist()
    [1.0, None, None, 2.5, None]
    >>> column([1, 2.0, 2.5, 1 << 70], pa.int64()).to_pylist()
    [1, 2, None, None]
    """
    import pyarrow as pa

    test = _test(type_)
    fitting = [value if value is None or test(value) else None for value in values]
    try:
        return pa.array(fitting, type_)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return pa.array([_one(value, type_) for value in fitting], type_)


def _test(type_: pa.DataType) -> Callable[[Any], bool]:
    """Whether a value is of a type. Arrow itself would cut 2.5 to 2 and take 5 for a moment of 1970."""
    from pyarrow import types

    if types.is_integer(type_):
        return lambda v: type(v) is int or (type(v) is float and v.is_integer())
    if types.is_floating(type_):
        return lambda v: type(v) is float or type(v) is int
    if types.is_temporal(type_):
        return lambda v: isinstance(v, datetime)
    if types.is_string(type_):
        return lambda v: type(v) is str
    return lambda v: True


def _one(value: Any, type_: pa.DataType) -> Any:
    """The value if it fits; a whole number too long for a float is rounded."""
    import pyarrow as pa

    try:
        if type(value) is int and pa.types.is_floating(type_):
            return float(value)
        return None if value is None else pa.scalar(value, type_).as_py()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None
