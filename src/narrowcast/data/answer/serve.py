"""The service: the merged queries of a period over a table in one scan, and their answers as messages.

service.headers(period) --one scan--> rows by physical channel --> messages with headers, channel by channel
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, IntegerType, LongType, StructField, StructType

from narrowcast.data.answer.answer import table_rows
from narrowcast.data.answer.apart import CHANNEL, exact_times
from narrowcast.data.spark.home import map_arrow, share
from narrowcast.errors import InputError
from narrowcast.model.quarantine import Quarantine
from narrowcast.plans.queries.api import Answer, Header, Query, QueryService
from narrowcast.plans.queries.intake import read_queries
from narrowcast.plans.queries.service.messages import CHANNEL as ANSWERED
from narrowcast.plans.queries.service.messages import (
    TAGS,
    answer_messages,
    directory_messages,
    end_messages,
    stamped,
)
from narrowcast.profiles import Matcher

if TYPE_CHECKING:
    import pyarrow as pa

PHYSICAL = "_physical"
TOGETHER = 64  # messages that are handed over at once: a few megabytes


def answered_on(rows: DataFrame, headers: Sequence[Header], *, tags: bool = False) -> DataFrame:
    """Each row once for every set that answers with it: `_physical` says where it goes, `_channel` for which header.

    With `tags` a row goes only where a query wants it, and `_tags` has the places of these queries in the header.
    """
    for name in (CHANNEL, PHYSICAL, TAGS):
        if name in rows.columns:
            raise InputError(f"table: the column name {name!r} is reserved", name=name, hint="rename it")
    contents = [query.profile for header in headers for query in header.queries] if tags else None
    matcher = Matcher(contents if contents is not None else [header.content for header in headers])
    physical = np.array([h.channel if h.physical is None else h.physical for h in headers], np.int64)
    held = np.array([len(h.queries) for h in headers], np.int64)
    of_query = np.repeat(np.arange(len(headers)), held)
    place = np.arange(of_query.size) - np.repeat(np.cumsum(held) - held, held)
    shared = share(rows.sparkSession, (matcher, physical, of_query, place))
    extra = [StructField(CHANNEL, LongType()), StructField(PHYSICAL, LongType())]
    if tags:
        extra.append(StructField(TAGS, ArrayType(IntegerType())))
    names = [*rows.columns, *(each.name for each in extra)]

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        matcher, physical, of_query, place = shared.value
        for batch in batches:
            at, found = matcher.match(batch, threads=1)
            if not at.size:
                continue
            lists: list[pa.Array] = []
            if tags:
                at, found, lists = tagged(at, of_query[found], place[found])
            taken = batch.take(pa.array(at))
            columns = [*taken.columns, pa.array(found, pa.int64()), pa.array(physical[found], pa.int64()), *lists]
            yield pa.RecordBatch.from_arrays(columns, names=names)

    return map_arrow(rows, work, StructType([*rows.schema.fields, *extra]))


def tagged(at: Any, header: Any, place: Any) -> tuple[Any, Any, list[pa.Array]]:
    """Matches of rows with queries as (row, header) pairs, each with the places of its queries.

    >>> at, header, (tags,) = tagged(np.array([4, 4, 4]), np.array([0, 1, 0]), np.array([0, 0, 2]))
    >>> at.tolist(), header.tolist(), tags.to_pylist()
    ([4, 4], [0, 1], [[0, 2], [0]])
    """
    import pyarrow as pa

    order = np.lexsort((place, header, at))
    at, header, place = at[order], header[order], place[order]
    first = np.flatnonzero(np.concatenate([[True], (np.diff(at) != 0) | (np.diff(header) != 0)]))
    starts = np.append(first, at.size).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(starts), pa.array(place.astype(np.int32)))
    return at[first], header[first], [lists]


class ServedPeriod:
    """One period's answers, scanned once and kept in a scratch folder until they have been sent."""

    def __init__(self, rows: DataFrame, headers: Sequence[Header], period: int, *, tags: bool = False) -> None:
        self.headers, self.period, self.tags, self.rows_sent = tuple(headers), period, tags, 0
        self._empty = rows.limit(0)
        self._scratch = Path(tempfile.mkdtemp(prefix="narrowcast-period-"))
        try:
            if headers:
                with exact_times(rows.sparkSession):
                    found = answered_on(rows, headers, tags=tags)
                    found.write.partitionBy(PHYSICAL).parquet(str(self._scratch / "rows"))
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> ServedPeriod:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        shutil.rmtree(self._scratch, ignore_errors=True)

    def answers(self) -> Iterator[Answer]:
        """The answers, physical channel by physical channel; one at a time is in memory."""
        by_channel: dict[int, list[Header]] = {}
        for header in self.headers:
            by_channel.setdefault(header.channel if header.physical is None else header.physical, []).append(header)
        nothing = self._nothing()
        for channel in sorted(by_channel):
            whole = self._rows(channel)
            at = np.zeros(0, np.int64) if whole is None else whole[CHANNEL].to_numpy()
            order = np.argsort(at, kind="stable")
            sorted_at = at[order]
            for header in by_channel[channel]:
                first, last = np.searchsorted(sorted_at, [header.channel, header.channel + 1])
                table = nothing if whole is None else whole.drop_columns([CHANNEL]).take(order[first:last])
                self.rows_sent += table.num_rows
                yield Answer(header, table)

    def messages(self) -> Iterator[dict[str, Any]]:
        """Everything that goes out in the period: answers by channel, each channel's end after its answers."""
        sets: Counter[int] = Counter(h.channel if h.physical is None else h.physical for h in self.headers)
        last: int | None = None
        for answer in self.answers():
            channel = answer.header.channel if answer.header.physical is None else answer.header.physical
            if last is not None and channel != last:
                yield from end_messages(self.period, {last: sets[last]})
            last = channel
            yield from answer_messages(self.period, answer, tags=self.tags)
        if last is not None:
            yield from end_messages(self.period, {last: sets[last]})

    def _rows(self, channel: int) -> pa.Table | None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        parts = sorted((self._scratch / "rows" / f"{PHYSICAL}={channel}").glob("part-*.parquet"))
        if not parts:
            return None
        tables = [pq.read_table(part, partitioning=None).replace_schema_metadata(None) for part in parts]
        return pa.concat_tables(tables).combine_chunks()

    def _nothing(self) -> pa.Table:
        """A table of the same columns without a row, for a set that nothing matches."""
        for folder in sorted((self._scratch / "rows").glob(f"{PHYSICAL}=*")):
            found = self._rows(int(folder.name.split("=")[1]))
            if found is not None:
                return found.drop_columns([CHANNEL]).slice(0, 0)
        import pyarrow as pa

        found = self._empty.toArrow()
        return found.append_column(TAGS, pa.array([], pa.list_(pa.int32()))) if self.tags else found


@dataclass(frozen=True)
class PeriodReport:
    """What happened in a period. `scan_s` is the one pass over the table, `plan_s` following the queries."""

    period: int
    queries: int
    new: int
    gone: int
    retuned: int
    sets: int
    rows: int
    messages: int
    set_aside: int
    plan_s: float
    scan_s: float
    seconds: float
    kept: str = ""
    """Why the queries of the period before were answered again, if the table could not be read."""


def serve_periods(
    spark: SparkSession,
    queries: str | Path,
    table: str | Path,
    service: QueryService,
    publish: Callable[[list[dict[str, Any]]], object],
    *,
    first: int | None = None,
    tags: bool = False,
    key: Sequence[str] = (),
) -> Iterator[PeriodReport]:
    """Answer the queries of a table again and again: each step of the iterator is one period.

    Parameters
    ----------
    spark : the session that scans
    queries : the queries table, read anew in every period: queries come and go by changing it
    table : the data, scanned once in every period
    service : the sets and physical channels to begin with; it follows the queries
    publish : takes messages for the clients, in order; that of a connection to a running system
    first : the number of the first period; the seconds of the clock by default, so that numbers grow over restarts
    tags : mark rows with the queries they answer instead of sending extractors
    key : the attributes that make a flow, where a network carries each channel as one

    Returns
    -------
    Iterator : a PeriodReport for each period, as soon as everything of it is published

    Raises
    ------
    InputError : the queries cannot be read at the start, or name a column that the table lacks
    """
    number = int(time.time()) if first is None else first
    asked: list[Query] = []
    told: set[str] = set()
    for index in count():
        begun, aside, kept = time.perf_counter(), Quarantine(), ""
        try:
            asked = read_queries(queries, aside)
        except InputError as error:
            if index == 0:
                raise
            kept = str(error)
        rows, _ = table_rows(spark, table, asked)
        changed = service.follow(asked)
        headers = service.headers(index)
        followed = time.perf_counter()
        clients = service.clients if index == 0 else (*changed.retuned, *(c for c in service.clients if c not in told))
        told.update(clients)
        where = directory_messages(number + index, {client: service.listens(client) for client in clients}, key)
        with ServedPeriod(rows, headers, number + index, tags=tags) as period:
            scanned = time.perf_counter()
            sent = 0
            # Channels without a query that is due end too: their clients wait for them.
            heard = {channel for client in service.clients for channel in service.listens(client)}
            quiet = end_messages(number + index, dict.fromkeys(heard - {h.physical for h in headers}, 0))
            whole = (stamped(each, each[ANSWERED], key) for each in chain(where, period.messages(), quiet))
            while chunk := list(islice(whole, TOGETHER)):
                publish(chunk)
                sent += len(chunk)
            yield PeriodReport(
                number + index, len(asked), changed.new, changed.gone, len(changed.retuned), len(headers),
                period.rows_sent, sent, len(aside.rows), followed - begun, scanned - followed,
                time.perf_counter() - begun, kept,
            )  # fmt: skip
