"""The durable log on JetStream: one stream per shard, its sequence numbers are ours.

Ranges are read by direct get in batches: no consumer to make, to keep or to lose, and twice as fast as
an ordered consumer (20,000 entries/s against 9,400, 5 kB each, in one run). The stream republishes
each entry once it is durable, with its number, so a tail hears of it without asking.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator
from typing import Any

from narrowcast.errors import TransportError
from narrowcast.transport.extra import engine
from narrowcast.transport.nats_link import NatsLink
from narrowcast.transport.protocols import Entry, Stretch

WINDOW = 120.0  # seconds for which the server knows repeats
MOST_READ_BYTES = 4 << 20


class NatsLog:
    """`Log` on JetStream. `max_bytes` bounds each shard on disk; the oldest entries go first."""

    def __init__(self, link: NatsLink, *, replicas: int = 1, max_bytes: int = -1, timeout: float = 2.0) -> None:
        self._link = link
        self._replicas, self._max_bytes, self._timeout = replicas, max_bytes, timeout
        self._inbox = ""
        self._open: dict[str, _Batch] = {}
        self._numbers = itertools.count()
        self._look_at: dict[int, float] = {}

    async def start(self, shards: tuple[int, ...]) -> None:
        """Make the streams that are not there yet, and the inbox for what is read."""
        api, errors = engine("nats.js.api"), engine("nats.js.errors")
        for shard in shards:
            config = api.StreamConfig(
                name=self._stream(shard),
                subjects=[self._subject(shard)],
                storage=api.StorageType.FILE,
                allow_direct=True,
                duplicate_window=WINDOW,
                deny_delete=True,
                max_bytes=self._max_bytes,
                num_replicas=self._replicas,
                republish=api.RePublish(src=self._subject(shard), dest=self._live(shard)),
            )
            try:
                await self._link.js.add_stream(config)
            except errors.BadRequestError as error:
                if error.err_code != 10058:  # there already, set up in another way: leave it as it is
                    raise TransportError(f"NATS refused the log: {error.description}", endpoint=config.name) from None
            except (errors.Error, engine("nats").errors.Error, TimeoutError) as error:
                raise TransportError(f"NATS refused the log: {_why(error)}", endpoint=config.name) from None
        await self._listen()

    async def append(self, shard: int, data: bytes, *, dedup: str) -> int:
        nats = engine("nats")
        try:
            ack = await self._link.js.publish(
                self._subject(shard), data, timeout=self._timeout, headers={"Nats-Msg-Id": dedup}
            )
        except (nats.errors.Error, TimeoutError, OSError) as error:
            raise TransportError(f"the log took no entry: {_why(error)}", endpoint=self._stream(shard)) from None
        return int(ack.seq)

    async def read(self, shard: int, after: int, *, most: int, upto: int | None = None) -> Stretch:
        wanted = most if upto is None else min(most, upto - after)
        if wanted <= 0:
            return Stretch(after, after, ())
        entries = await self._batch(shard, after + 1, wanted)
        if upto is not None:
            entries = [entry for entry in entries if entry.sequence <= upto]
        if not entries:
            return await self._nothing(shard, after, upto)
        first = entries[0].sequence
        return Stretch(after, entries[-1].sequence, tuple(entries), first if first > after + 1 else 1)

    async def last(self, shard: int) -> int:
        return (await self._state(shard))[1]

    async def tail(self, shard: int, after: int) -> AsyncGenerator[Entry, None]:
        """Live entries as the server republishes them; whatever is missing between two is read."""
        queue: asyncio.Queue[Entry] = asyncio.Queue(4096)

        async def heard(message: Any) -> None:
            entry = Entry(int(message.headers["Nats-Sequence"]), message.data)
            if not queue.full():  # what does not fit is read again
                queue.put_nowait(entry)

        subscription = await self._link.nc.subscribe(self._live(shard), cb=heard)
        try:
            while True:
                entry = await _next(queue, 0.25)
                if entry is not None and entry.sequence == after + 1:
                    after = entry.sequence
                    yield entry
                elif entry is None or entry.sequence > after:
                    async for missed in self._catch_up(shard, after):
                        after = missed.sequence
                        yield missed
        finally:
            await subscription.unsubscribe()

    async def _catch_up(self, shard: int, after: int) -> AsyncGenerator[Entry, None]:
        while True:
            try:
                stretch = await self.read(shard, after, most=256)
            except TransportError:
                return
            for entry in stretch.entries:
                yield entry
            if not stretch.entries:
                return
            after = stretch.upto

    async def _nothing(self, shard: int, after: int, upto: int | None) -> Stretch:
        """Nothing there: the end of the log, or, if somebody emptied the stream, a stretch that is gone.

        The stream's own limits never take its newest entry, so it is enough to look now and then.
        """
        now = asyncio.get_running_loop().time()
        if now < self._look_at.get(shard, 0.0):
            return Stretch(after, after, ())
        self._look_at[shard] = now + 1.0
        first, last = await self._state(shard)
        end = last if upto is None else min(last, upto)
        if first > after + 1 and end > after:
            return Stretch(after, min(end, first - 1), (), first)
        return Stretch(after, after, ())

    async def _state(self, shard: int) -> tuple[int, int]:
        nats = engine("nats")
        try:
            state = (await self._link.js.stream_info(self._stream(shard))).state
        except (nats.errors.Error, TimeoutError, OSError) as error:
            raise TransportError(f"the log does not answer: {_why(error)}", endpoint=self._stream(shard)) from None
        return int(state.first_seq), int(state.last_seq)

    # Direct get: one request, many answers to one inbox, told apart by the last part of their subject.

    async def _listen(self) -> None:
        self._inbox = self._link.nc.new_inbox()
        await self._link.nc.subscribe(f"{self._inbox}.*", cb=self._answer)

    async def _answer(self, message: Any) -> None:
        batch = self._open.get(message.subject.rpartition(".")[2])
        if batch is not None:
            batch.take(message)

    async def _batch(self, shard: int, sequence: int, count: int) -> list[Entry]:
        nats = engine("nats")
        token = str(next(self._numbers))
        batch = self._open[token] = _Batch()
        request = {"seq": sequence, "batch": count, "max_bytes": MOST_READ_BYTES}
        try:
            await self._link.nc.publish(
                f"$JS.API.DIRECT.GET.{self._stream(shard)}",
                json.dumps(request).encode(),
                reply=f"{self._inbox}.{token}",
            )
            await asyncio.wait_for(batch.done, self._timeout)
        except (nats.errors.Error, TimeoutError, OSError) as error:
            raise TransportError(f"the log does not answer: {_why(error)}", endpoint=self._stream(shard)) from None
        finally:
            del self._open[token]
        return batch.entries

    def _stream(self, shard: int) -> str:
        return f"{self._link.system}-log-{shard}"

    def _subject(self, shard: int) -> str:
        return f"{self._link.system}.log.{shard}"

    def _live(self, shard: int) -> str:
        return f"{self._link.system}.live.{shard}"


async def _next(queue: asyncio.Queue[Entry], timeout: float) -> Entry | None:
    if not queue.empty():
        return queue.get_nowait()
    try:
        return await asyncio.wait_for(queue.get(), timeout)
    except TimeoutError:
        return None


class _Batch:
    """The answers to one direct get: entries, then a message with a status."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def take(self, message: Any) -> None:
        status = message.headers.get("Status") if message.headers else "503"
        if status is None:
            self.entries.append(Entry(int(message.headers["Nats-Sequence"]), message.data))
        elif not self.done.done():
            if status in ("204", "404"):
                self.done.set_result(None)
            else:
                self.done.set_exception(TransportError(f"the log refused to be read (status {status})"))


def _why(error: BaseException) -> str:
    return str(error) or type(error).__name__
