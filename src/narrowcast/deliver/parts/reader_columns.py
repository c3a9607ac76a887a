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

UNKNOWN = 255  # in place of what a flow says


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


def rows_by_flow(reader: Reader, routing: Routing, flows: Indices) -> Indices | None:
    """The rows that a subscription wants, where their flows alone decide it; None if a row has to be looked at."""
    if reader.verdict_of[0] is not routing:
        reader.verdict_of = (routing, np.full(len(routing.flows) + 1, UNKNOWN, np.uint8))
    table = reader.verdict_of[1]
    known = np.minimum(flows, len(table) - 1)  # rows of no flow are alike
    says = table[known]
    if (says == UNKNOWN).any():
        new = np.unique(known[says == UNKNOWN]).tolist()
        verdicts = reader.verdicts(routing, new)
        table[new] = [verdicts[number] for number in new]
        says = table[known]
    return None if (says == PERHAPS).any() else np.flatnonzero(says == YES)


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
