"""A folder of result tables that is there complete or not at all."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from narrowcast.data.spark.home import job_named
from narrowcast.errors import InputError
from narrowcast.model.tables import MANIFEST
from narrowcast.model.whole_folder import whole_folder

if TYPE_CHECKING:
    import pyarrow as pa

PIECE = 1_000_000


@dataclass(frozen=True, slots=True)
class TableStep:
    """A table that was made: its name, its rows, and the time that took."""

    table: str
    rows: int
    seconds: float


@dataclass
class Output:
    """Tables on their way into a folder."""

    folder: Path
    explain: Callable[[TableStep], None] | None = None
    steps: list[TableStep] = field(default_factory=list)
    _one_at_a_time: Any = field(default_factory=threading.Lock, repr=False)

    def write(
        self,
        name: str,
        rows: DataFrame | pa.Table,
        order: Sequence[str],
        *,
        large: bool = False,
        metadata: Mapping[str, str] | None = None,
        in_order: bool = False,
    ) -> None:
        """One Parquet file in the order of columns that no two rows share: the same rows, the same bytes.

        A table at the driver may be said to be `in_order` already.
        """
        start, path = time.perf_counter(), self.folder / f"{name}.parquet"
        if isinstance(rows, DataFrame):
            with job_named(rows.sparkSession, f"making {name}"):
                n = write_pieces(pieces(rows, list(order), large=large), path, metadata)
        else:
            n = write_pieces(iter([_plain(rows) if in_order else _ordered(rows, list(order))]), path, metadata)
        self.note(name, n, time.perf_counter() - start)

    def rows_of(self, name: str) -> int:
        """How many rows a table has that was written."""
        return next(step.rows for step in self.steps if step.table == name)

    def note(self, name: str, rows: int, seconds: float) -> None:
        """Remember a step, and say so if asked to explain."""
        step = TableStep(name, rows, seconds)
        with self._one_at_a_time:
            self.steps.append(step)
            if self.explain is not None:
                self.explain(step)


def write_pieces(tables: Iterator[Any], path: Path, metadata: Mapping[str, str] | None = None) -> int:
    """Tables with the same columns, in order, as one Parquet file; how many rows it has."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer: Any = None
    held: Any = None
    rows = 0
    for table in tables:
        rows += table.num_rows
        schema = table.schema if metadata is None else table.schema.with_metadata(metadata)
        writer = writer or pq.ParquetWriter(path, schema, compression="zstd")
        held = table if held is None else pa.concat_tables([held, table])
        # Row groups of the same rows however Spark cut the table.
        while held.num_rows > PIECE:
            writer.write_table(held.slice(0, PIECE).combine_chunks())
            held = held.slice(PIECE)
    writer.write_table(held.combine_chunks())
    writer.close()
    return rows


def pieces(frame: DataFrame, order: list[str], *, large: bool = False) -> Iterator[Any]:
    """The rows in order as Arrow tables, never much more than PIECE of them at the driver at once.

    A table of one piece, which most are, takes one job: it is sorted here. A larger one is made twice, the
    first time no further than that; unless it is said to be `large`: Python's workers complain on stderr when
    nobody reads on.
    """
    if not large:
        first = frame.limit(PIECE + 1).toArrow()
        if first.num_rows <= PIECE:
            yield _ordered(first, order)
            return
        del first
    kept = frame.persist(StorageLevel.DISK_ONLY)
    try:
        yield from _ranges(kept, order)
    finally:
        kept.unpersist()


def _ranges(kept: DataFrame, order: list[str]) -> Iterator[Any]:
    """A large table piece by piece: Spark sorts it into ranges, and each is fetched by itself."""
    columns = [F.col(f"`{c}`") for c in order]
    n = -(-kept.count() // PIECE)
    ranges = kept.repartitionByRange(n, *columns).sortWithinPartitions(*columns)
    numbered = ranges.withColumn("_piece", F.spark_partition_id()).persist(StorageLevel.DISK_ONLY)
    try:
        for piece in range(n):
            yield _plain(numbered.where(F.col("_piece") == piece).drop("_piece").toArrow())
    finally:
        numbered.unpersist()


def _ordered(table: Any, order: list[str]) -> Any:
    return _plain(table.sort_by([(name, "ascending") for name in order]))


def _plain(table: Any) -> Any:
    """Without Spark's notes, so that the file depends on the rows alone."""
    return table.replace_schema_metadata(None).combine_chunks()


@contextmanager
def writing(
    out: str | Path, *, overwrite: bool, explain: Callable[[TableStep], None] | None = None
) -> Iterator[Output]:
    """A folder to write tables into; it takes its name when the block ends well and is removed if not."""
    with whole_folder(out, marker=MANIFEST, overwrite=overwrite) as half:
        yield Output(half, explain)


def write_manifest(output: Output, content: dict[str, Any]) -> None:
    """The last file: what was measured from what, and when."""
    tables = {step.table: step.rows for step in output.steps if (output.folder / f"{step.table}.parquet").is_file()}
    times = {step.table: round(step.seconds, 3) for step in output.steps}
    whole = content | {
        "tables": tables,
        "written_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": times,
    }
    text = json.dumps(whole, indent=2, sort_keys=True, allow_nan=False, default=str)
    (output.folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """What a result folder says about itself; a folder without a manifest is not complete."""
    path = Path(folder) / MANIFEST
    if not path.is_file():
        raise InputError(f"{folder}: no complete result here (no {MANIFEST} in it)", name="folder", got=str(folder))
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result
