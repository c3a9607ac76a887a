"""Writing a table batch by batch as Parquet, CSV or JSON lines, with bad rows where they are asked for."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from narrowcast.workloads.tables.source import Row

#: (place in the batch, row): the row goes before the batch's row of that number.
Inserts = Sequence[tuple[int, Row]]


class TableSink(Protocol):
    """One open file."""

    typed: bool

    def write(self, batch: pa.RecordBatch, inserts: Inserts) -> None: ...

    def close(self) -> None: ...


class ParquetSink:
    """One row group per batch."""

    typed = True

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.schema = schema
        self.writer = pq.ParquetWriter(path, schema, compression="zstd", compression_level=1)

    def write(self, batch: pa.RecordBatch, inserts: Inserts) -> None:
        self.writer.write_table(_merged(batch, inserts, self.schema))

    def close(self) -> None:
        self.writer.close()


class CsvSink:
    """An empty cell is null. With bad rows every column is text, so that a cell may hold anything."""

    typed = False

    def __init__(self, path: Path, schema: pa.Schema, *, as_text: bool) -> None:
        self.as_text = as_text
        self.schema = pa.schema([(name, pa.string()) for name in schema.names]) if as_text else schema
        self.writer = pa_csv.CSVWriter(path, self.schema)

    def write(self, batch: pa.RecordBatch, inserts: Inserts) -> None:
        if self.as_text:
            batch = batch.cast(self.schema)
            inserts = [(at, {k: _word(v) for k, v in row.items()}) for at, row in inserts]
        self.writer.write_table(_merged(batch, inserts, self.schema))

    def close(self) -> None:
        self.writer.close()


class JsonlSink:
    """One object per line; nulls are written, so that every line has every column."""

    typed = False

    def __init__(self, path: Path) -> None:
        self.file = path.open("w", encoding="utf-8")

    def write(self, batch: pa.RecordBatch, inserts: Inserts) -> None:
        lines, done = json_lines(batch).to_pylist(), 0
        for at, row in inserts:
            self.file.writelines(line + "\n" for line in lines[done:at])
            whole = {name: _finite(value) for name, value in row.items()}
            self.file.write(json.dumps(whole, default=_iso, ensure_ascii=False) + "\n")
            done = at
        self.file.writelines(line + "\n" for line in lines[done:])

    def close(self) -> None:
        self.file.close()


def open_sink(path: Path, schema: pa.Schema, *, planting: bool) -> TableSink:
    """The sink for a file's ending."""
    if path.suffix == ".parquet":
        return ParquetSink(path, schema)
    if path.suffix == ".csv":
        return CsvSink(path, schema, as_text=planting)
    return JsonlSink(path)


def json_lines(batch: pa.RecordBatch) -> pa.Array:
    """Each row as a JSON object, made column by column: a dozen times as fast as row by row."""
    pieces: list[Any] = []
    for i, name in enumerate(batch.schema.names):
        pieces += [f"{', ' if i else '{'}{json.dumps(name)}: ", _json_column(batch.column(i))]
    return pc.binary_join_element_wise(*pieces, "}", "")


def _json_column(column: pa.Array) -> pa.Array:
    if not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
        encoded = column.cast(pa.string()).dictionary_encode()
        texts = [json.dumps(value, ensure_ascii=False) for value in encoded.dictionary.to_pylist()]
        column = pa.array(texts, pa.string()).take(encoded.indices)
    return column.cast(pa.string()).fill_null("null")


def _merged(batch: pa.RecordBatch, inserts: Inserts, schema: pa.Schema) -> pa.Table:
    good = pa.Table.from_batches([batch], schema=schema)
    if not inserts:
        return good
    bad = pa.Table.from_pylist([row for _, row in inserts], schema=schema)
    at = [place for place, _ in inserts]
    order = np.insert(np.arange(batch.num_rows), at, batch.num_rows + np.arange(len(inserts)))
    return pa.concat_tables([good, bad]).take(pa.array(order)).combine_chunks()


def _word(value: Any) -> str | None:
    if isinstance(value, bool):
        return str(value).lower()
    return None if value is None else _iso(value) if isinstance(value, datetime.datetime) else str(value)


def _finite(value: Any) -> Any:
    """JSON has no word for infinite or not a number: they become text."""
    return str(value) if isinstance(value, float) and not isfinite(value) else value


def _iso(value: Any) -> str:
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ", timespec="microseconds").replace("+00:00", "Z")
    raise TypeError(f"{type(value).__name__} has no JSON form")
