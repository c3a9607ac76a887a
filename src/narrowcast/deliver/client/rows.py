"""Rows in, payloads out, and back: tables and long lists of like dicts as columns, other dicts one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from narrowcast.deliver.parts.publisher import PublisherSettings
from narrowcast.deliver.wire import MOST_PAYLOAD, Malformed, decode_payloads, encode_payload
from narrowcast.deliver.wire.place import MOST
from narrowcast.errors import InputError
from narrowcast.profiles.sql.syntax import XML
from narrowcast.profiles.xpath.document import check_document

if TYPE_CHECKING:
    from narrowcast.deliver.wire.columns import Columns

LIMITS = PublisherSettings()
MANY = 256  # dicts that are published together: from here on they go as columns, if they can
_NOTHING = frozenset((type(None),))
_LISTED = frozenset((str, int, float, bool)) | _NOTHING
Rows = Any  # a Mapping, an iterable of them, pyarrow's Table or RecordBatch, or a pandas DataFrame


def payloads(
    rows: Rows, key: Sequence[str] = (), without: Callable[[str], None] = lambda name: None, most: int = MOST_PAYLOAD
) -> Iterator[bytes]:
    """The payload of each row, of `most` bytes; `without` is told the attribute of the flow key that the first lacks.

    >>> list(payloads({"symbol": "IBM"}))
    [b'{"symbol":"IBM"}']
    """
    if isinstance(rows, Mapping):
        rows = [rows]
    elif hasattr(rows, "to_batches"):  # a Table; a column without a value is no attribute of that message
        rows = (row for batch in rows.to_batches() for row in _listed(batch))
    elif hasattr(rows, "to_pylist"):
        rows = _listed(rows)
    elif isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
        raise InputError(f"rows must be dicts, an Arrow table or a DataFrame, got {type(rows).__name__}", name="rows")
    for row in rows:
        if not isinstance(row, Mapping):
            raise InputError(f"a row must be a dict of attributes, got {type(row).__name__}", name="rows", got=row)
        for name in key:
            if name not in row:
                without(name)
        key = ()
        if XML in row:
            check_document(row[XML])
        yield encode_payload(row, most)


def _listed(batch: Any) -> list[dict[str, Any]]:
    """The rows of an Arrow batch. Arrow has moments that Python has not: the column is named."""
    try:
        found: list[dict[str, Any]] = batch.to_pylist()
    except (ValueError, OverflowError):
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column.to_pylist()
            except (ValueError, OverflowError) as error:
                raise InputError(f"attribute {name!r} cannot be sent: {error}", name=name) from None
        raise
    return found


def chunks(payloads: Iterable[bytes], limits: PublisherSettings = LIMITS) -> Iterator[tuple[bytes, ...]]:
    """Messages by the entry of the log that they will share.

    >>> [len(chunk) for chunk in chunks([b"x"] * 1500)]
    [1024, 476]
    """
    chunk: list[bytes] = []
    size = 0
    for payload in payloads:
        if chunk and (len(chunk) >= limits.most_messages or size + len(payload) > limits.most_bytes):
            yield tuple(chunk)
            chunk, size = [], 0
        chunk.append(payload)
        size += len(payload)
    if chunk:
        yield tuple(chunk)


class ColumnChunk(NamedTuple):
    """Columns that have an entry of the log to themselves: how many rows, and their record batch as bytes."""

    n_rows: int
    data: bytes


def entries(
    rows: Rows,
    key: Sequence[str] = (),
    without: Callable[[str], None] = lambda name: None,
    limits: PublisherSettings = LIMITS,
) -> Iterator[tuple[bytes, ...] | ColumnChunk]:
    """Rows by the entry of the log that they will share: of a table as columns, where its types allow, else one by one.

    A long list of dicts that are all alike is a table, too.

    >>> import pyarrow as pa
    >>> [type(entry).__name__ for entry in entries(pa.table({"p": [1]}))], list(entries([{"p": 1}]))
    (['ColumnChunk'], [(b'{"p":1}',)])
    """
    rows = _from_pandas(rows)
    if not hasattr(rows, "schema") or not hasattr(rows, "to_pylist"):
        listed = _list_entries(rows, limits) if type(rows) is list and len(rows) >= MANY else None
        if listed is None:
            yield from chunks(payloads(rows, key, without, limits.most_payload), limits)
            return
        names, found = rows[0], iter(listed)
    else:
        names = rows.schema.names
        batches = rows.to_batches() if hasattr(rows, "to_batches") else [rows]
        found = (entry for batch in batches for entry in _batch_entries(batch, limits))
    for name in key:
        if name not in names:
            without(name)
    yield from found


def _list_entries(rows: list[Any], limits: PublisherSettings) -> list[tuple[bytes, ...] | ColumnChunk] | None:
    """Dicts as columns; None if they are not alike, or something is wrong with one, which `payloads` will say."""
    batch = _as_batch(rows)
    with suppress(InputError):
        return None if batch is None else list(_batch_entries(batch, limits))
    return None


def _as_batch(rows: list[Any]) -> Any:
    """Dicts as the columns that mean the same; None unless all have the same names, and a name values of one type."""
    import pyarrow as pa

    names = list(rows[0]) if type(rows[0]) is dict else []
    if {dict} != set(map(type, rows)) or {len(names)} != set(map(len, rows)) or {str} != set(map(type, names)):
        return None
    try:
        columns = [[row[name] for row in rows] for name in names]
        if all(_LISTED.issuperset(kinds := set(map(type, c))) and len(kinds - _NOTHING) < 2 for c in columns):
            return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names=names)
    except (KeyError, ValueError, TypeError, OverflowError, pa.ArrowException):  # another name, half a character, …
        pass
    return None


def _batch_entries(batch: Any, limits: PublisherSettings) -> Iterator[tuple[bytes, ...] | ColumnChunk]:
    from narrowcast.deliver.wire.columns import as_columns, split_columns

    columns = as_columns(batch)
    if columns is None:
        yield from chunks(payloads(batch, (), most=limits.most_payload), limits)
        return
    if XML in columns.schema.names:
        for text in columns.column(XML).to_pylist():
            check_document(text)
    most = min(limits.most_columns, limits.most_payload)
    for piece, data in split_columns(columns, MOST, most):
        if len(data) > limits.most_payload:
            raise InputError(
                f"message must be at most {limits.most_payload} bytes, got {len(data)}", name="message", got=len(data)
            )
        yield ColumnChunk(piece.num_rows, data)


def _from_pandas(rows: Rows) -> Rows:
    """A DataFrame as a table, without its index; NaN is null. One of mixed types is rows like any others."""
    if not (hasattr(rows, "iloc") and hasattr(rows, "to_dict") and hasattr(rows, "columns")):
        return rows
    import pyarrow as pa

    try:
        return pa.Table.from_pandas(rows, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError):
        return rows.to_dict("records")


class MessageBatch(Sequence[dict[str, Any]]):
    """Messages of a subscription, in order; a sequence of dicts, or `arrow()`.

    `position` is how far the subscription has got, by shard: stored with what was done about the
    messages, it lets `subscribe(..., position=)` go on exactly there. `gap` is None, or why some
    messages will not come: "slow", "log" (the log no longer has them) or "restored" (the log went back to an older
    copy, or was emptied; what was published since then comes). Then there are none in here.
    """

    def __init__(
        self,
        messages: Sequence[tuple[int, bytes]],
        shard: int,
        position: Mapping[int, int],
        gap: str | None = None,
    ) -> None:
        """`messages`: place and payload of each, or `ColumnRows`."""
        self.shard, self.position, self.gap = shard, position, gap
        self._messages = messages
        self._columns: Columns | None = getattr(messages, "columns", None)
        self._decoded: list[dict[str, Any]] = []

    @property
    def places(self) -> Sequence[int]:
        """Where each message stands in its shard's log."""
        return [at for at, _ in self._messages] if self._columns is None else self._columns.places

    def __repr__(self) -> str:
        why = "" if self.gap is None else f", gap {self.gap!r}"
        return f"MessageBatch({len(self)} messages of shard {self.shard}, position {dict(self.position)}{why})"

    def __len__(self) -> int:
        return len(self._messages)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if not self._decoded and len(self):
            self._decoded = self._decode()
        return self._decoded[index]

    def _decode(self) -> list[dict[str, Any]]:
        if self._columns is None:
            rows = decode_payloads([payload for _, payload in self._messages])
            return [{} if isinstance(row, Malformed) else row for row in rows]
        from narrowcast.deliver.wire.columns import rows_of

        return rows_of(self._columns.batch)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self[:])

    def arrow(self) -> Any:
        """The messages as a pyarrow.Table; attributes that a message lacks are null.

        Messages that were published as columns keep the types of those columns, and are not looked at one by one.
        """
        import pyarrow as pa

        if self._columns is not None:
            return pa.Table.from_batches([self._columns.batch])
        names = dict.fromkeys(name for row in self for name in row)
        return pa.table({name: pa.array([row.get(name) for row in self]) for name in names})
