"""Rows in, payloads out, and back: dicts one by one, or Arrow tables whole."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

from narrowcast.deliver.parts.publisher import PublisherSettings
from narrowcast.deliver.wire import MOST_PAYLOAD, Malformed, decode_payloads, encode_payload
from narrowcast.errors import InputError

LIMITS = PublisherSettings()
Rows = Any  # a Mapping, an iterable of them, or pyarrow's Table or RecordBatch


def payloads(
    rows: Rows,
    key: Sequence[str] = (),
    without: Callable[[str], None] = lambda name: None,
    most: int = MOST_PAYLOAD,
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
        raise InputError(f"rows must be dicts or an Arrow table, got {type(rows).__name__}", name="rows")
    for row in rows:
        if not isinstance(row, Mapping):
            raise InputError(f"a row must be a dict of attributes, got {type(row).__name__}", name="rows", got=row)
        for name in key:
            if name not in row:
                without(name)
        key = ()
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


@dataclass(frozen=True)
class MessageBatch(Sequence[dict[str, Any]]):
    """Messages of a subscription, in order; a sequence of dicts, or `arrow()`.

    `position` is how far the subscription has got, by shard: stored with what was done about the
    messages, it lets `subscribe(..., position=)` go on exactly there. `gap` is None, or why some
    messages will not come: "slow", "log" (the log no longer has them) or "restored" (the log went back to an older
    copy, or was emptied; what was published since then comes). Then there are none in here.
    """

    rows: tuple[bytes, ...]
    shard: int
    places: tuple[int, ...]
    position: Mapping[int, int]
    gap: str | None = None
    _decoded: list[dict[str, Any]] = field(default_factory=list, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if not self._decoded and self.rows:
            found = decode_payloads(self.rows)
            self._decoded.extend({} if isinstance(row, Malformed) else row for row in found)
        return self._decoded[index]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self[:])

    def arrow(self) -> Any:
        """The messages as a pyarrow.Table; attributes that a message lacks are null."""
        import pyarrow as pa

        names = dict.fromkeys(name for row in self for name in row)
        return pa.table({name: pa.array([row.get(name) for row in self]) for name in names})
