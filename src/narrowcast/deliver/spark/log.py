"""The durable log for Spark: found by a URL or data folder, read and written by plain blocking calls.

`format("narrowcast")` works wherever narrowcast is installed, since Spark looks for packages named
`pyspark_…`; `register(spark)` does it for a session that was started before.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

from narrowcast.deliver.client.blocking import Blocking
from narrowcast.deliver.client.rows import payloads
from narrowcast.deliver.processes.backbone import Backbone, backbone, url_of
from narrowcast.deliver.spark.data_source import LogDataSource
from narrowcast.deliver.spark.port import LogEntry, Place
from narrowcast.deliver.spark.transactions import Pile, Sink, chunks
from narrowcast.deliver.transport.nats.stage import NatsStage
from narrowcast.deliver.wire import Batch, Malformed, decode_entry, decode_payload
from narrowcast.errors import InputError

READ_MOST = 256
OPEN_TIMEOUT = 30.0


class SparkLog:
    """A `LogPort`: one connection with its own loop, wherever Spark needs one."""

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
        first, last = self._blocking.call(self._backbone.log.bounds(shard))
        return max(first, 1), last

    def read(self, shard: int, after: int, upto: int) -> Iterator[LogEntry]:
        return self._blocking.each(self._entries(shard, after, upto))

    async def _entries(self, shard: int, after: int, upto: int) -> AsyncGenerator[LogEntry, None]:
        ahead = asyncio.ensure_future(self._backbone.log.read(shard, after, most=READ_MOST, upto=upto))
        try:
            while True:
                stretch = await ahead
                after = max(stretch.upto, after)
                if after < upto and stretch.upto > stretch.after:
                    ahead = asyncio.ensure_future(self._backbone.log.read(shard, after, most=READ_MOST, upto=upto))
                for entry in stretch.entries:
                    batch = decode_entry(entry.data)
                    held = batch.payloads if isinstance(batch, Batch) else ()
                    yield LogEntry(entry.sequence, entry.stamp, held)
                if after >= upto or stretch.upto <= stretch.after:
                    return
        finally:
            ahead.cancel()

    def decode(self, payload: bytes) -> Mapping[str, Any]:
        if b'"$' not in payload:  # no tagged type in it: the short way
            try:
                found = json.loads(payload)
            except ValueError:
                return {}
            return found if isinstance(found, dict) else {}
        tagged = decode_payload(payload)
        return {} if isinstance(tagged, Malformed) else tagged

    def stage(self, name: str, batch: int, tables: Iterable[Any]) -> Pile:
        piling = self._blocking.call(self._sink(name)).piling(batch)
        for chunk in chunks(payload for table in tables for payload in payloads(table)):
            self._blocking.call(piling.add(chunk))
        return piling.pile

    def publish(self, name: str, batch: int, staged: Sequence[Pile], shard: int | None, last: bool = False) -> None:
        self._blocking.call(self._publish(name, batch, staged, shard, last))

    async def _publish(self, name: str, batch: int, staged: Sequence[Pile], shard: int | None, last: bool) -> None:
        at = crc32(name.encode()) % len(self.shards) if shard is None else shard
        if at not in self.shards:
            raise InputError(f"there is no shard {at}; the log has {len(self.shards)}", name="shard", got=at)
        sink = await self._sink(name)
        await sink.publish(batch, staged, shard=at)
        if last:
            await sink.forget()

    async def _sink(self, name: str) -> Sink:
        stage = NatsStage(self._backbone.link)
        await stage.start()
        return Sink(name, self._backbone.log, self._backbone.registry, stage)

    def close(self) -> None:
        try:
            self._blocking.call(self._backbone.close(), OPEN_TIMEOUT)
        finally:
            self._blocking.end()


class NarrowcastSource(LogDataSource):
    """`format("narrowcast")`."""

    @staticmethod
    def locate(url: str | None) -> str:
        return url_of(url if url is None or "://" in url else Path(url).absolute())

    @staticmethod
    def open(place: Place) -> SparkLog:
        return SparkLog(place)


def register(spark: Any) -> None:
    """Make `format("narrowcast")` known to a Spark session that does not find it by itself."""
    spark.dataSource.register(NarrowcastSource)
