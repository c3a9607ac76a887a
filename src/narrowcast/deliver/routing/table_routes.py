"""`Routing.route` for columns: the rows of a record batch by the channels they go to, without a look at each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.routing.table_tests import Rows, TableTests
from narrowcast.deliver.wire.columns import rows_of
from narrowcast.deliver.wire.frame import NO_FLOW
from narrowcast.profiles.flow_key import flow_name
from narrowcast.profiles.parsed import parsed


class TableRoutes:
    """The routes of one plan, made ready for columns.

    >>> from narrowcast.deliver.transport import Unicast
    >>> routing = Routing({1: Unicast("a"), 2: Unicast("b")}, key=("s",), flows=(("IBM", (1,)),), rest=(2,))
    >>> flows, found = TableRoutes(routing)(pa.record_batch({"s": ["IBM", "GE", "IBM"]}))
    >>> flows[0], {channel: rows.tolist() for channel, rows in found.items()}
    (np.int64(0), {1: [0, 2], 2: [1]})
    """

    def __init__(self, routing: Routing) -> None:
        self._routing = routing
        self._flows = {name: (k, channels) for k, (name, channels) in enumerate(routing.flows)}
        self._everything = [channel for channel, text in sorted(routing.content.items()) if not text]
        self._content = [channel for channel, text in sorted(routing.content.items()) if text]
        self._tests = TableTests([parsed(routing.content[channel]) for channel in self._content])
        self._gateways = _gateways(routing)
        self._wanted = TableTests([parsed(text) for text, _ in self._gateways])

    def __call__(self, batch: pa.RecordBatch) -> tuple[Rows, dict[int, Rows]]:
        """The flow of each row, and the rows of each channel that gets some, ascending."""
        flows = np.full(batch.num_rows, NO_FLOW)
        found: dict[int, list[Rows]] = {}

        def add(channels: Iterable[int], rows: Rows) -> None:
            for channel in channels:
                if len(rows):
                    found.setdefault(channel, []).append(rows)

        if self._routing.key:
            flows, by_flow = self._by_flow(batch)
            for channels, rows in by_flow:
                add(channels, rows)
        add(self._everything, np.arange(batch.num_rows))
        for channel, rows in zip(self._content, self._tests(batch) if self._content else (), strict=True):
            add((channel,), rows)
        if self._routing.audiences is not None:
            for chosen, rows in self._by_audience(batch):
                add(chosen, rows)
        return flows, {c: _joined(parts) for c, parts in found.items()}

    def _by_flow(self, batch: pa.RecordBatch) -> tuple[Rows, list[tuple[tuple[int, ...], Rows]]]:
        """The flow of each row, and rows that go to the same channels; every different key is named once."""
        names = batch.schema.names
        codes = np.zeros(batch.num_rows, np.int64)
        for name in self._routing.key:
            if name in names:
                more = _codes(batch.column(name))
                codes = more if not codes.any() else _numbered(codes * (int(more.max()) + 1) + more)
        first = np.empty(int(codes.max()) + 1, np.int64)
        first[codes[::-1]] = np.arange(batch.num_rows)[::-1]
        known = batch.select([name for name in dict.fromkeys(self._routing.key) if name in names])
        keys = rows_of(known.take(pa.array(first))) if known.num_columns else [{}]
        rest = (NO_FLOW, self._routing.rest)
        found = [self._flows.get(flow_name(key, self._routing.key), rest) for key in keys]
        numbers = {channels: k for k, channels in enumerate(dict.fromkeys(channels for _, channels in found))}
        flow_of, where = np.array([flow for flow, _ in found]), np.array([numbers[c] for _, c in found])
        sets = list(numbers)
        groups = _grouped(where[codes])
        return flow_of[codes], [(sets[where[codes[rows[0]]]], rows) for rows in groups]

    def _by_audience(self, batch: pa.RecordBatch) -> list[tuple[tuple[int, ...], Rows]]:
        rule = self._routing.audiences
        assert rule is not None
        if not self._gateways:
            return []
        wanted = np.zeros((batch.num_rows, len(self._gateways)), np.bool_)
        for k, rows in enumerate(self._wanted(batch)):
            wanted[rows, k] = True
        packed = np.packbits(wanted, axis=1)
        groups = _grouped(_numbered(packed))
        found = []
        for rows in groups:
            at = [gateways for (_, gateways), yes in zip(self._gateways, wanted[rows[0]], strict=True) if yes]
            found.append((rule.choose(frozenset().union(*at)), rows))
        return found


def _gateways(routing: Routing) -> list[tuple[str, frozenset[str]]]:
    """Each different profile that an audience is made of, and the gateways where somebody has it."""
    if routing.audiences is None:
        return []
    at: dict[str, set[str]] = {}
    for name in routing.taken:
        gateway = routing.gateways.get(routing.edges[name], "")
        if routing.audiences.taken_at(gateway):
            at.setdefault(routing.profiles[name], set()).add(gateway)
    return [(text, frozenset(gateways)) for text, gateways in sorted(at.items())]


def _codes(column: pa.Array) -> Rows:
    """A number for each different value of a column, equal ones alike; where equal may look different, one per row."""
    if not (pa.types.is_string(column.type) or pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
        return np.zeros(len(column), np.int64) if pa.types.is_null(column.type) else np.arange(len(column))
    coded = column.dictionary_encode(null_encoding="encode")
    codes: Rows = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return codes


def _joined(parts: list[Rows]) -> Rows:
    return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))


def _numbered(values: NDArray[Any]) -> Rows:
    """Numbers from 0 on for different values, or rows of them."""
    return np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)


def _grouped(codes: Rows) -> list[Rows]:
    """The rows of each different code, ascending. Codes are fewer than rows, of which an entry has less than 2^16."""
    order = np.argsort(codes.astype(np.uint16), kind="stable")
    starts = np.flatnonzero(np.diff(codes[order])) + 1
    return np.split(order, starts)
