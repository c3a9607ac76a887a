"""Tables that several workloads share: flows, interest, topology, message times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, islice
from typing import Any

import numpy as np
import pyarrow as pa

from narrowcast.model import Interest, Topology
from narrowcast.model.arrays import Floats, Ints
from narrowcast.model.tables import with_key
from narrowcast.workloads.overlay_clients import START_US, names_of
from narrowcast.workloads.tables import faults, schemas
from narrowcast.workloads.tables.source import BATCH, TableSource, pick, table_source


def interest_sources(interest: Interest, sizes: Floats, *, rate: float, key: str) -> list[TableSource]:
    """The flows, at `rate` messages a second in all, and who wants them; `key` is the attribute that names a flow."""
    flow_names = pa.array(interest.flow_names or [f"flow{k}" for k in range(interest.n_flows)])
    user_names = pa.array(interest.user_names or [f"user{u}" for u in range(interest.n_users)])
    flows = {"flow": flow_names, "rate": interest.rates * (rate / interest.rates.sum()), "size": sizes}

    def pairs() -> Iterator[pa.RecordBatch]:
        for at in range(0, interest.n_pairs, BATCH):
            end = min(at + BATCH, interest.n_pairs)
            flow = np.searchsorted(interest.offsets, np.arange(at, end), side="right") - 1
            columns = [pick(flow_names, flow), pick(user_names, interest.users[at:end])]
            yield pa.RecordBatch.from_arrays(columns, schema=schemas.INTEREST)

    return [
        table_source("flows", flows, with_key(schemas.FLOWS, [key]), faults.FLOW_FAULTS, faults.FLOW_TEXT_FAULTS),
        TableSource("interest", schemas.INTEREST, interest.n_pairs, pairs, faults.INTEREST_FAULTS),
    ]


def topology_sources(topology: Topology) -> list[TableSource]:
    """The links and the brokers' roles."""
    names = names_of(topology)
    ends = names[topology.edges]
    links = {"u": ends[:, 0], "v": ends[:, 1], "cost": topology.cost, "delay": topology.delay}
    linked = set(map(tuple, topology.edges.tolist()))
    free = [
        (str(names[u]), str(names[v]))
        for u, v in islice((p for p in combinations(range(topology.n_brokers), 2) if p not in linked), 1000)
    ]
    nodes = {"node": names, "role": topology.roles or ("interior",) * topology.n_brokers}
    return [
        table_source("topology", links, schemas.TOPOLOGY, faults.link_faults(free)),
        table_source("nodes", nodes, schemas.NODES, faults.NODE_FAULTS),
    ]


def message_source(schema: pa.Schema, n: int, columns: Callable[[int, int], Sequence[Any]]) -> TableSource:
    """Messages whose columns after `ts` come from `columns(batch number, rows)`; times from `ts_column`."""

    def batches() -> Iterator[pa.RecordBatch]:
        for number, at in enumerate(range(0, n, BATCH)):
            arrays = columns(number, min(BATCH, n - at))
            cast = [a if isinstance(a, pa.Array) else pa.array(a, t) for a, t in zip(arrays, schema.types, strict=True)]
            yield pa.RecordBatch.from_arrays(cast, schema=schema)

    return TableSource("messages", schema, n, batches, faults.MESSAGE_FAULTS, faults.MESSAGE_TEXT_FAULTS)


def times(rng: np.random.Generator, batch: int, rows: int, rate: float) -> pa.Array:
    """Arrival times of a batch, ascending, `rate` messages a second; batches follow one another."""
    start = START_US + round(batch * BATCH * 1e6 / rate)
    span = max(1, round(rows * 1e6 / rate))
    return pa.array(start + np.sort(rng.integers(0, span, rows)), schemas.TIME)


def by_rate(rng: np.random.Generator, cumulative: Floats, rows: int) -> Ints:
    """Flows drawn in proportion to their rates; `cumulative` ends in 1."""
    drawn = np.searchsorted(cumulative, rng.random(rows), side="right")
    return np.minimum(drawn, cumulative.size - 1)


def shares(rates: Floats) -> Floats:
    """Cumulative shares, for `by_rate`."""
    total: Floats = np.cumsum(rates)
    total /= total[-1]
    return total
