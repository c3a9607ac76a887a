"""A table to be written: its columns, its rows in batches, and the ways a row of it can be bad."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

#: Rows per batch and per Parquet row group; part of the seeded result.
BATCH = 1 << 17

Row = dict[str, Any]
#: From a good row and a number that no other bad row has to a bad row. It has a key of its own unless the
#: key is what is bad about it: so whoever drops the bad rows is left with exactly the good ones.
Fault = Callable[[Row, int], Row]


@dataclass(frozen=True, eq=False)
class TableSource:
    """A table made batch by batch, so that its size does not matter; `rows` is None where only writing will tell."""

    name: str
    schema: pa.Schema
    rows: int | None
    batches: Callable[[], Iterator[pa.RecordBatch]]
    faults: Mapping[str, Fault] = field(default_factory=dict)
    text_faults: Mapping[str, Fault] = field(default_factory=dict)
    """Faults that only an untyped file (CSV, JSON lines) can have: a word where a number belongs."""


def table_source(
    name: str,
    columns: Mapping[str, Any],
    schema: pa.Schema,
    faults: Mapping[str, Fault],
    text_faults: Mapping[str, Fault] | None = None,
) -> TableSource:
    """A small table that is at hand as a whole."""
    arrays = [
        a if isinstance(a, pa.Array) else pa.array(a, kind)
        for a, kind in zip((columns[name] for name in schema.names), schema.types, strict=True)
    ]
    table = pa.table(arrays, schema=schema)
    return TableSource(name, schema, table.num_rows, lambda: iter(table.to_batches(BATCH)), faults, text_faults or {})


def row_batches(schema: pa.Schema, rows: Iterator[Sequence[Any]]) -> Iterator[pa.RecordBatch]:
    """Tuples gathered into batches."""
    gathered: list[Sequence[Any]] = []
    for row in rows:
        gathered.append(row)
        if len(gathered) == BATCH:
            yield _batch(schema, gathered)
            gathered = []
    if gathered:
        yield _batch(schema, gathered)


def _batch(schema: pa.Schema, rows: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)], schema=schema
    )


def pick(names: pa.Array, codes: Any) -> pa.Array:
    """names[codes] as an Arrow array."""
    return names.take(pa.array(codes))


def batch_rng(seed: int, purpose: int, batch: int) -> np.random.Generator:
    """Each batch has a stream of its own: batches do not depend on each other."""
    return np.random.default_rng([seed, purpose, batch])
