"""A sample of what the log has taken since the last look, for plans that go by content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from narrowcast.deliver.transport import Log
from narrowcast.deliver.wire import Batch, ColumnBatch, Malformed, decode_entry, decode_payloads

MOST = 1000  # messages of a look
MOST_READ = 1024  # entries that a look reads, the newest
AT_ONCE = 256


class LogSample:
    """Reads the end of every shard, look after look.

    Only some attributes are kept, those that profiles name and what says where a message comes from: what else is in
    messages may be of any type. A value of another type than those before it counts as absent.
    """

    def __init__(self, log: Log, shards: Sequence[int]) -> None:
        self._log, self._shards = log, shards
        self._at: dict[int, int] = {}

    async def take(self, attributes: Iterable[str]) -> Any:
        """At most `MOST` messages, evenly spread over the look, as an Arrow table; None if there are none."""
        found: list[Mapping[str, Any]] = []
        for shard in self._shards:
            last = await self._log.last(shard)
            at = max(self._at.get(shard, 0), last - MOST_READ)
            while at < last and (entries := (await self._log.read(shard, at, most=AT_ONCE, upto=last)).entries):
                for entry in entries:
                    found += _messages(entry.data)
                at = entries[-1].sequence
            self._at[shard] = last
        some = np.unique(np.linspace(0, len(found) - 1, min(MOST, len(found))).astype(np.int64))
        return table_of([found[k] for k in some.tolist()], attributes) if found else None


def table_of(rows: Sequence[Mapping[str, Any]], attributes: Iterable[str]) -> Any:
    """Messages as an Arrow table of those attributes that any of them has.

    >>> table_of([{"x": 1}, {"x": "one", "y": 2.5}], ["x", "y", "z"]).to_pydict()
    {'x': [1, None], 'y': [None, 2.5]}
    """
    import pyarrow as pa

    columns = {name: [row.get(name) for row in rows] for name in sorted(set(attributes))}
    return pa.table({name: _column(values) for name, values in columns.items() if any(v is not None for v in values)})


def _column(values: list[Any]) -> Any:
    """Of one type, which is that of the first value, or of all numbers together."""
    import pyarrow as pa

    first = next(type(value) for value in values if value is not None)
    kinds = (int, float) if first in (int, float) else (first,)
    return pa.array([value if type(value) in kinds else None for value in values])


def _messages(data: bytes) -> Iterable[Mapping[str, Any]]:
    batch = decode_entry(data)
    if isinstance(batch, ColumnBatch):
        from narrowcast.deliver.wire.columns import decode_columns, rows_of

        columns = decode_columns(batch.data, batch.count)
        found: Iterable[Any] = () if isinstance(columns, Malformed) else rows_of(columns)
    else:
        found = decode_payloads(batch.payloads) if isinstance(batch, Batch) else ()
    return [message for message in found if not isinstance(message, Malformed)]
