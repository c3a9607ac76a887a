"""The durable log for Spark: one connection, read and written by plain blocking calls.

It is opened where it is used, in the driver's planner or in a worker, and closed there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zlib import crc32

from narrowcast.deliver.client.blocking import Blocking
from narrowcast.deliver.client.rows import entries
from narrowcast.deliver.processes.backbone import Backbone, backbone
from narrowcast.deliver.spark.transactions import BatchSink, Pile
from narrowcast.deliver.transport import Entry
from narrowcast.deliver.transport.nats.stage import NatsStage
from narrowcast.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

READ_MOST = 256
OPEN_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class Place:
    """Which log: the URL of its server, and which system on it."""

    url: str
    system: str


class SparkLog:
    """A connection to the log, with an event loop of its own."""

    def __init__(self, place: Place) -> None:
        self._blocking = Blocking()
        self._blocking.start()
        try:
            self._backbone: Backbone = self._blocking.call(
                backbone(place.url, name="spark", system=place.system, timeout=5.0), OPEN_TIMEOUT
            )
        except BaseException:
            self._blocking.end()
            raise

    @property
    def shards(self) -> tuple[int, ...]:
        return self._backbone.system.every_shard

    def bounds(self, shard: int) -> tuple[int, int]:
        """The oldest entry the log still has, and the newest; (n + 1, n) if it has none."""
        first, last = self._blocking.call(self._backbone.log.bounds(shard))
        return max(first, 1), last

    def read(self, shard: int, after: int, upto: int) -> Iterator[Entry]:
        """All with `after < sequence <= upto`, in order. What is gone is left out."""
        return self._blocking.each(self._entries(shard, after, upto))

    async def _entries(self, shard: int, after: int, upto: int) -> AsyncGenerator[Entry, None]:
        ahead = asyncio.ensure_future(self._backbone.log.read(shard, after, most=READ_MOST, upto=upto))
        try:
            while True:
                stretch = await ahead
                after = max(stretch.upto, after)
                more = after < upto and stretch.upto > stretch.after
                if more:
                    ahead = asyncio.ensure_future(self._backbone.log.read(shard, after, most=READ_MOST, upto=upto))
                for entry in stretch.entries:
                    yield entry
                if not more:
                    return
        finally:
            ahead.cancel()

    def stage(self, name: str, batch: int, tables: Iterable[pa.RecordBatch]) -> Pile:
        """Put the rows of Arrow batches aside for a batch of the sink `name`; what `publish` needs to know of it."""
        piling = self._blocking.call(self._sink(name)).piling(batch)
        for table in tables:
            for chunk in entries(table):
                self._blocking.call(piling.add(chunk))
        return piling.pile

    def publish(self, name: str, batch: int, staged: Sequence[Pile], shard: int | None, last: bool = False) -> None:
        """Publish what was staged, unless this batch was published before; `last` if no other will ever follow."""
        self._blocking.call(self._publish(name, batch, staged, shard, last))

    async def _publish(self, name: str, batch: int, staged: Sequence[Pile], shard: int | None, last: bool) -> None:
        at = crc32(name.encode()) % len(self.shards) if shard is None else shard
        if at not in self.shards:
            raise InputError(f"shard must be from 0 to {len(self.shards) - 1}, got {at}", name="shard", got=at)
        sink = await self._sink(name)
        await sink.publish(batch, staged, shard=at)
        if last:
            await sink.forget()

    async def _sink(self, name: str) -> BatchSink:
        stage = NatsStage(self._backbone.link)
        await stage.start()
        return BatchSink(name, self._backbone.log, self._backbone.registry, stage)

    def close(self) -> None:
        try:
            self._blocking.call(self._backbone.close(), OPEN_TIMEOUT)
        finally:
            self._blocking.end()
