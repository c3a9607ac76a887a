"""Answer merged queries over a table in one scan, each channel's rows in files of its own.

    queries + table --plan (sizes from a grid)--> headers --answered (one scan)--> rows with their channel --> folder

Workers match a batch of rows against all channels at once and give out a row for each channel that wants
it; Spark writes them apart by channel. The table is read once however many queries there are.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import LongType, StructField, StructType

from narrowcast.data.answer.apart import CHANNEL, write_apart, write_nothing
from narrowcast.data.answer.state import Earlier, earlier, write_state
from narrowcast.data.ingest.read import BROKEN, FILE, ROW, read
from narrowcast.data.ingest.take_in import Ingested, ingest
from narrowcast.data.spark.home import is_local, job_named, map_arrow, share, with_settings
from narrowcast.data.spark.output import Output, TableStep, write_manifest, writing
from narrowcast.data.spark.progress import TaskReporter, watched
from narrowcast.data.statistics.query_sizes import grid
from narrowcast.errors import InputError, PlanError
from narrowcast.model.quarantine import Quarantine
from narrowcast.plans.queries.api import (
    Constants,
    GridHistogram,
    Header,
    QueriesPlan,
    Query,
    QueryDemand,
    QueryService,
    headers,
    range_boxes,
)
from narrowcast.plans.queries.intake import read_queries, shared_attributes
from narrowcast.plans.queries.judge import faults
from narrowcast.plans.queries.plan import make
from narrowcast.plans.queries.service.delivery import channel_header, channel_rows
from narrowcast.profiles import Matcher
from narrowcast.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa

MOST_CELLS = 4e6


@dataclass(frozen=True)
class Merging:
    """How queries are merged: the parameters of `queries.merge`, and the attributes to merge along."""

    attributes: tuple[str, ...] | None = None
    method: str = "pair"
    procedure: str = "rectangle"
    constants: Constants = field(default_factory=Constants)
    seed: int = 0
    planned: str = ""
    """What the plan says that is followed instead, as a digest; empty where the queries are planned for here."""


@dataclass(frozen=True)
class Answered:
    """What was written: channels, rows over all channels, rows that are gone since the last run, times.

    `fresh` is True where an incremental run had nothing earlier to compare with and sent everything.
    """

    folder: Path
    queries: int
    channels: int
    rows: int
    gone: int
    fresh: bool
    set_aside: int
    steps: tuple[TableStep, ...]


def answer(
    spark: SparkSession,
    queries: str | Path,
    table: str | Path,
    out: str | Path,
    merging: Merging | None = None,
    *,
    plan: QueriesPlan | None = None,
    incremental: str | Path | None = None,
    strict: bool = False,
    overwrite: bool = False,
    explain: Callable[[TableStep], None] | None = None,
    progress: TaskReporter | None = None,
) -> Answered:
    """Merge the queries, run them over the table in one scan, and write each channel's answer and header.

    With a `plan` its sets are kept: queries that it does not know join the set where they gain most, those that are
    gone leave theirs, and nothing else is planned. Without one, sizes come from a grid of the table.

    Bad rows of the queries go to `quarantine.parquet`, those of a table of text to `table_quarantine.parquet`.

    With `incremental`, a folder that keeps what was answered last, a channel carries only rows that are new:
    those beyond the earlier answer's, counted with their repeats, so that adding them to it holds every row
    of the new one. Rows that are gone are counted, not taken back. While queries and parameters stay the
    same so do the channels; when they change, everything is sent again.

    The folder is complete or not there. It is put in place before the state moves on: a run that dies in
    between is repeated with `overwrite` and writes the same again.
    """
    merging, aside = merging or Merging(), Quarantine(strict=strict)
    check_incremental(incremental, here=is_local(spark))
    if plan is not None:
        tables = plan.to_tables()
        said = [{name: t.to_pydict() for name, t in sorted(tables.tables.items())}, dict(tables.parameters)]
        digest = hashlib.sha256(json.dumps(said, default=str).encode()).hexdigest()
        merging = replace(merging, method=plan.method, procedure=plan.procedure, planned=digest)
    asked = read_queries(queries, aside)
    if not asked:
        raise InputError(f"{queries}: queries must have at least one valid row, got none", name="queries")
    whole = writing(out, overwrite=overwrite, explain=explain)
    with watched(spark, progress), with_settings(spark, {}) as spark, job_named(spark, "answering"), whole as output:
        rows, bad = table_rows(spark, table, asked, strict=strict)
        last = None if incremental is None else earlier(incremental, asked, merging, rows.schema)
        channels = last.headers if last is not None else _planned(rows, asked, merging, output, plan)
        found = answered(rows, channels)
        gone, state = 0, None
        if incremental is None:
            counts = _write(found, channels, output)
        else:
            state = write_state(found, incremental, asked, merging, channels)
            counts, gone = _write_new(spark, state.rows(spark), last, channels, output)
        if aside.rows:
            aside.write(output.folder / "quarantine.parquet")
        if bad is not None and bad.n_quarantined:
            output.write("table_quarantine", bad.quarantine, ("table", "file", "row"))
        set_aside = len(aside.rows) + (0 if bad is None else bad.n_quarantined)
        write_manifest(output, _about(asked, channels, counts, gone, merging, last, incremental, set_aside))
        steps = tuple(output.steps)
    if state is not None:
        state.keep()
    fresh = incremental is not None and last is None
    return Answered(Path(out), len(asked), len(channels), sum(counts.values()), gone, fresh, set_aside, steps)


def check_incremental(folder: str | Path | None, *, here: bool) -> None:
    """Refuse a folder of state for a Spark that does not run on this machine, and could not read it back."""
    if folder is not None and not here:
        message = "incremental must be left out unless Spark runs on this machine: its workers read the state"
        raise InputError(message, name="incremental", got=str(folder), hint="use --master local[*]")


def table_rows(
    spark: SparkSession, table: str | Path, queries: Sequence[Query], *, strict: bool = False
) -> tuple[DataFrame, Ingested | None]:
    """The table that is asked: Parquet and Spark tables as they are; text typed as messages are, bad rows apart."""
    raw, taken = read(spark, table, "table"), None
    if raw.kind == "typed":
        rows = raw.frame.drop(FILE, ROW, BROKEN)
    else:
        taken = ingest(spark, table, "messages", strict=strict)
        rows = taken.rows.drop(FILE, ROW)
    for query in queries:
        for name in query.profile.attributes:
            if name not in rows.columns:
                raise InputError(
                    f"{table}: no column {name!r}, which query {query.query} of {query.client} asks for",
                    name=name,
                    allowed=tuple(rows.columns),
                )
    if CHANNEL in rows.columns:
        raise InputError(f"{table}: the column name {CHANNEL!r} is reserved", name=CHANNEL, hint="rename it")
    return rows, taken


def answered(rows: DataFrame, channels: Sequence[Header]) -> DataFrame:
    """Each row once for every channel that carries it, with the channel's place in the column `_channel`."""
    shared = share(rows.sparkSession, Matcher([header.content for header in channels]))
    schema = StructType([*rows.schema.fields, StructField(CHANNEL, LongType())])

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        for batch in batches:
            at, channel = shared.value.match(batch, threads=1)
            if at.size:
                taken = batch.take(pa.array(at))
                yield pa.RecordBatch.from_arrays(
                    [*taken.columns, pa.array(channel, pa.int64())], names=[*taken.schema.names, CHANNEL]
                )

    return map_arrow(rows, work, schema)


def _planned(
    rows: DataFrame, asked: Sequence[Query], merging: Merging, output: Output, given: QueriesPlan | None
) -> tuple[Header, ...]:
    start = time.perf_counter()
    if given is not None:
        channels = _by_plan(given, asked)
        output.note("channels (by the plan)", len(channels), time.perf_counter() - start)
        return channels
    along = shared_attributes(asked, merging.attributes)
    names, clients = zip(*((query.query, query.client) for query in asked), strict=True)
    demand = QueryDemand(range_boxes([query.profile for query in asked], along), along, names, clients)
    constants = asdict(merging.constants)
    plan = make(demand, merging.method, merging.procedure, size=histogram(rows, along), seed=merging.seed, **constants)
    refuse_unsound(plan)
    channels = headers(asked, demand.boxes, plan, along)
    output.note("channels (planned)", len(channels), time.perf_counter() - start)
    return channels


def _by_plan(plan: QueriesPlan, asked: Sequence[Query]) -> tuple[Header, ...]:
    """The channels of a plan, for the queries of now."""
    service = QueryService(plan)
    service.follow(asked)
    made = service.plan()
    refuse_unsound(made)
    return headers(service.queries, made.demand.boxes, made, service.attributes)


def refuse_unsound(plan: QueriesPlan) -> None:
    """A plan that would cut an answer short is not run; who judges it had no part in making it."""
    found = faults(plan.to_tables())
    if found:
        raise PlanError(f"the plan is unsound and was not run: {found[0]}")


def histogram(rows: DataFrame, attributes: Sequence[str]) -> GridHistogram:
    """Counts on a grid over the table, from two light passes over the attributes alone."""
    d = len(attributes)
    cells = min(64, int(MOST_CELLS ** (1 / d)) - 1)
    if cells < 2:
        raise InputError(f"attributes must be few enough for a grid of sizes, got {d}", name="attributes", got=d)
    found = grid(rows.select(*(F.col(f"`{name}`") for name in attributes)), attributes, cells=cells).collect()
    counts, edges = np.zeros([cells] * d), []
    for name in attributes:
        at, low, high = (found[0][f"{name}_{end}"] for end in ("cell", "low", "high")) if found else (0, 0.0, 1.0)
        step = (high - low) or 1.0
        edges.append(low + (np.arange(cells + 1) - at) * step)
    for row in found:
        counts[tuple(row[f"{name}_cell"] for name in attributes)] = row["messages"]
    return GridHistogram(counts, edges)


def _write(found: DataFrame, channels: Sequence[Header], output: Output) -> dict[int, int]:
    """The rows of each channel in a folder of their own beside its header; also where there are none."""
    import pyarrow.parquet as pq

    start, scratch, empty = time.perf_counter(), output.folder / "_rows", output.folder / "_empty"
    write_apart(found, scratch)
    counts = {}
    for header in channels:
        place, made = channel_rows(output.folder, header.channel), scratch / f"{CHANNEL}={header.channel}"
        if made.is_dir():
            made.rename(place)
        else:
            if not empty.exists():
                write_nothing(found, empty)
            place.mkdir()
            for part in empty.glob("part-*.parquet"):
                shutil.copy(part, place / part.name)
        counts[header.channel] = sum(pq.read_metadata(part).num_rows for part in place.glob("part-*.parquet"))
        channel_header(output.folder, header.channel).write_text(header.to_json() + "\n", encoding="utf-8")
    for left in (scratch, empty):
        shutil.rmtree(left, ignore_errors=True)
    output.note("answers", sum(counts.values()), time.perf_counter() - start)
    return counts


def _write_new(
    spark: SparkSession, now: DataFrame, last: Earlier | None, channels: Sequence[Header], output: Output
) -> tuple[dict[int, int], int]:
    """Only what goes beyond the earlier answer, as multisets; and how many rows of that are gone."""
    if last is None:
        return _write(now, channels, output), 0
    counts = _write(now.exceptAll(last.rows(spark).select(*now.columns)), channels, output)
    kept = now.count() - sum(counts.values())
    return counts, last.rows(spark).count() - kept


def _about(
    asked: Sequence[Query],
    channels: Sequence[Header],
    counts: Mapping[int, int],
    gone: int,
    merging: Merging,
    last: Earlier | None,
    incremental: str | Path | None,
    set_aside: int,
) -> dict[str, Any]:
    return {
        "narrowcast": __version__,
        "queries": len(asked),
        "set_aside": set_aside,
        "method": merging.method,
        "procedure": merging.procedure,
        "channels": [
            {"channel": h.channel, "clients": len(h.clients), "queries": len(h.queries), "rows": counts[h.channel]}
            for h in channels
        ],
        "incremental": incremental is not None,
        "since_last": last is not None,
        "gone": gone,
    }
