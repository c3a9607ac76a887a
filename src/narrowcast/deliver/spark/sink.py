"""The durable log as a Spark sink: `df.writeStream.format("narrowcast")` and `df.write` send rows to who wants them.

Tasks stage their rows beside the log; the driver publishes them when all tasks of a micro-batch are done. A
micro-batch is known by the query's id, which its checkpoint keeps, and its number: run again it is published
once, whatever the tasks came up with the second time (docs/decisions/0120).
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamArrowWriter, WriterCommitMessage

from narrowcast.deliver.spark.log import Place, SparkLog
from narrowcast.deliver.spark.options import WriteOptions
from narrowcast.deliver.spark.transactions import Pile
from narrowcast.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

JOB = "job-"  # a batch job without a name, which is a new one each time
QUERY, BATCH = "sql.streaming.queryId", "streaming.sql.batchId"


@dataclass
class Staged(WriterCommitMessage):
    """What a task staged, for which sink, and the partition it had."""

    sink: str
    partition: int
    pile: Pile


class LogWriter(DataSourceArrowWriter):
    """Publishes a DataFrame. With a `name` and a `batch` number it does so once, however often it is run."""

    def __init__(self, place: Place, options: WriteOptions) -> None:
        self.place, self.options = place, options
        self.sink = f"name-{options.name}" if options.name else f"{JOB}{secrets.token_hex(8)}"

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        return stage(self.place, self.sink, self.options.batch, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        publish(self.place, self.options, messages, self.options.batch)


class LogStreamWriter(DataSourceStreamArrowWriter):
    """Publishes micro-batches, each once."""

    def __init__(self, place: Place, options: WriteOptions) -> None:
        if options.name is not None:
            raise InputError("name must not be set for a streaming query: its checkpoint identifies it", name="name")
        self.place, self.options = place, options

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Staged:
        query, batch = _property(QUERY), _property(BATCH)
        return stage(self.place, f"query-{query}", int(batch), iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        publish(self.place, self.options, messages, batchId)


def stage(place: Place, sink: str, batch: int, tables: Iterator[pa.RecordBatch]) -> Staged:
    """Put a task's rows aside, in their order."""
    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    with closing(SparkLog(place)) as log:
        return Staged(sink, partition, log.stage(sink, batch, tables))


def publish(place: Place, options: WriteOptions, messages: Sequence[WriterCommitMessage | None], batch: int) -> None:
    """Publish what all tasks staged, in the order of their partitions."""
    staged = sorted((m for m in messages if isinstance(m, Staged)), key=lambda m: m.partition)
    if not staged:
        return
    with closing(SparkLog(place)) as log:
        last = staged[0].sink.startswith(JOB)
        log.publish(staged[0].sink, batch, [each.pile for each in staged], options.shard, last)


def _property(name: str) -> str:
    context = TaskContext.get()
    found = context.getLocalProperty(name) if context is not None else None
    if found is None:
        raise InputError(f"Spark did not set {name} for this task, so its micro-batch is not known", name=name)
    return str(found)
