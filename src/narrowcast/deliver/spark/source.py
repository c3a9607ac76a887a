"""The durable log as a Spark source: `spark.readStream.format("narrowcast")`, and `spark.read` for what is there.

An offset is the last entry read of each shard, so a query that starts from its checkpoint reads every message
once. A micro-batch is cut into ranges of entries, each read by one task, in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from narrowcast.deliver.spark.log import Place, SparkLog
from narrowcast.deliver.spark.options import EARLIEST, LATEST, ReadOptions, Where
from narrowcast.deliver.spark.rows import check_schema, record_batches
from narrowcast.deliver.transport import Entry
from narrowcast.errors import TransportError

if TYPE_CHECKING:
    import pyarrow as pa

SMALL, MOST_RANGES = 64, 16  # a range of fewer entries is not worth a task of its own


@dataclass
class Range(InputPartition):
    """The entries of a shard with `after < sequence <= upto`."""

    shard: int
    after: int
    upto: int


@dataclass(frozen=True)
class Scan:
    """What reading needs to know, wherever it happens."""

    place: Place
    schema: StructType
    options: ReadOptions

    def __post_init__(self) -> None:
        check_schema(self.schema.fieldNames())

    def read(self, part: Range) -> Iterator[pa.RecordBatch]:
        schema = to_arrow_schema(self.schema, timezone="UTC")
        with closing(SparkLog(self.place)) as log:
            entries = self._without_loss(part, log.read(part.shard, part.after, part.upto))
            yield from record_batches(part.shard, entries, schema)

    def _without_loss(self, part: Range, entries: Iterator[Entry]) -> Iterator[Entry]:
        """The entries; one that is not there any more is an error, unless that was allowed."""
        at = part.after
        for entry in entries:
            self._check(part.shard, at, entry.sequence - 1)
            at = entry.sequence
            yield entry
        self._check(part.shard, at, part.upto)

    def _check(self, shard: int, at: int, should: int) -> None:
        if at < should and self.options.fail_on_loss:
            raise TransportError(
                f"entries {at + 1} to {should} of shard {shard} are no longer in the log; "
                "start at a later entry, or set failOnDataLoss to false to continue without them",
                endpoint=f"shard {shard}",
            )

    def ranges(self, start: Mapping[str, int], end: Mapping[str, int]) -> list[Range]:
        """Ranges of about the same length, no shard without one that has entries."""
        found = []
        for shard, upto in end.items():
            after = start.get(shard, 0)
            n = upto - after
            pieces = min(self.options.partitions or max(1, min(MOST_RANGES, n // SMALL)), n)
            cuts = [after + n * k // pieces for k in range(pieces + 1)] if n > 0 else []
            found += [Range(int(shard), a, b) for a, b in pairwise(cuts)]
        return found

    def before(self, log: SparkLog, where: Where) -> dict[str, int]:
        """For each shard the last entry that is not to be read, if reading starts there."""
        return {str(shard): _before(log.bounds(shard), where, shard) for shard in log.shards}


def _before(bounds: tuple[int, int], where: Where, shard: int) -> int:
    first, last = bounds
    if where == EARLIEST:
        return max(first - 1, 0)
    if where == LATEST:
        return last
    at = where if isinstance(where, int) else where.get(shard, first) if isinstance(where, Mapping) else first
    return min(max(at - 1, 0), last)


class LogReader(DataSourceReader):
    """Reads what is in the log now."""

    def __init__(self, scan: Scan) -> None:
        self.scan = scan

    def partitions(self) -> list[InputPartition]:
        with closing(SparkLog(self.scan.place)) as log:
            start = self.scan.before(log, self.scan.options.start)
            end = {shard: _last(log.bounds(int(shard)), self.scan.options.end, int(shard)) for shard in start}
        return list(self.scan.ranges(start, end)) or [Range(0, 0, 0)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Range)
        return self.scan.read(partition)


def _last(bounds: tuple[int, int], where: Where, shard: int) -> int:
    last = bounds[1]
    if isinstance(where, int):
        return min(where, last)
    return min(where.get(shard, last), last) if isinstance(where, Mapping) else last


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the log. In the driver it keeps one connection; each task opens its own."""

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self._log: SparkLog | None = None
        self._target: dict[str, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"scan": self.scan, "_log": None, "_target": None}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return self.scan.before(self._opened(), self.scan.options.start)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Entries are this source's files."""
        most = self.scan.options.most_entries
        return ReadAllAvailable() if most is None else ReadMaxFiles(most)

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        newest = self._target or self._newest()
        for shard, at in start.items():
            self._check_log(shard, at, newest.get(shard, 0))
        ends = {shard: max(newest.get(shard, 0), start.get(shard, 0)) for shard in newest | start}
        if not isinstance(limit, ReadMaxFiles):
            return ends
        return _at_most(start, ends, limit.max_files)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._newest()

    def reportLatestOffset(self) -> dict[str, int]:  # noqa: N802
        return self._newest()

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return list(self.scan.ranges(start, end))

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, Range)
        return self.scan.read(partition)

    def stop(self) -> None:
        if self._log is not None:
            self._log.close()
            self._log = None

    def _check_log(self, shard: str, at: int, newest: int) -> None:
        if newest < at and self.scan.options.fail_on_loss:
            raise TransportError(
                f"shard {shard} of the log ends at entry {newest}, and the checkpoint has read up to {at}: "
                "this is another log. Start with a new checkpoint",
                endpoint=f"shard {shard}",
            )

    def _newest(self) -> dict[str, int]:
        log = self._opened()
        return {str(shard): log.bounds(shard)[1] for shard in log.shards}

    def _opened(self) -> SparkLog:
        if self._log is None:
            self._log = SparkLog(self.scan.place)
        return self._log


def _at_most(start: Mapping[str, int], ends: Mapping[str, int], most: int) -> dict[str, int]:
    """The same step for every shard, so that none is left behind.

    >>> _at_most({"0": 0, "1": 10}, {"0": 3, "1": 90}, 20)
    {'0': 3, '1': 20}
    """
    each = max(1, most // max(len(ends), 1))
    return {shard: min(end, start.get(shard, 0) + each) for shard, end in ends.items()}
