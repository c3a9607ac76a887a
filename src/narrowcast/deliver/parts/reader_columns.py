"""What a reader does with columns, apart from it, so that only those who have columns need Arrow."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from narrowcast.deliver.parts.reader import PERHAPS, YES, Reader
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.routing.table_tests import table_test
from narrowcast.deliver.wire import END, ColumnBatch, Malformed, place
from narrowcast.deliver.wire.columns import ColumnRows, Columns, Indices, decode_columns, merged
from narrowcast.profiles import Profile


def wanted_rows(profile: Profile | None, sequence: int, batch: ColumnBatch) -> Columns | None:
    """The rows of an entry that a profile matches, or all of them; None if there are none."""
    found = _decoded(batch)
    if isinstance(found, Malformed):
        return None
    whole = Columns(place(sequence, 0) - 1, np.arange(batch.count), found, batch.data)
    if profile is None:
        return whole
    rows = table_test(profile)(found)[0]
    return whole.select(rows) if len(rows) else None


@lru_cache(maxsize=16)
def _decoded(batch: ColumnBatch) -> pa.RecordBatch | Malformed:
    """Several readers read the same entries of the log."""
    return decode_columns(batch.data, batch.count)


def rows_by_flow(reader: Reader, routing: Routing, flows: pa.DictionaryArray) -> Indices | None:
    """The rows that a subscription wants, where their flows alone decide it; None if a row has to be looked at."""
    numbers = flows.dictionary.to_pylist()
    known = reader.verdicts(routing, numbers)
    says = [known[number] for number in numbers]
    if PERHAPS in says:
        return None
    wanted = np.array([verdict == YES for verdict in says], np.bool_)
    return np.flatnonzero(wanted[flows.indices.to_numpy()])


def in_order(messages: Mapping[int, bytes], columns: Mapping[int, list[Columns]], upto: int) -> list[Any]:
    """Messages and columns up to a place, in the order of the log.

    If an entry came both ways, its rows become messages like the others.
    """
    held = sorted(messages.items())
    found: list[Any] = []
    start = 0
    for base in sorted(columns):
        rows = merged(columns[base])
        rows = rows.part(0, rows.upto(upto))
        if not len(rows):
            continue
        begin, end = bisect_left(held, (base,)), bisect_left(held, (base + END,))
        found += held[start:begin]
        found += sorted({**dict(ColumnRows(rows)), **dict(held[begin:end])}.items()) if begin < end else [rows]
        start = end
    return found + held[start:]
