"""The durable log on JetStream: one stream per shard, its sequence numbers are ours.

Ranges are read by direct get in batches. The stream republishes each entry once it is durable, with its
number, so a tail hears of it without asking. An entry may belong to a *chain*, a subject of its own below
the shard's: then it is appended only if the chain ends where its writer thinks, which holds for ever, where
the server knows names of entries for `WINDOW` only (docs/decisions/0120).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from narrowcast.deliver.transport.extra import engine
from narrowcast.deliver.transport.nats.direct import DirectGet, why
from narrowcast.deliver.transport.nats.link import IN_USE, NatsLink, refusal
from narrowcast.deliver.transport.protocols import ConflictError, Entry, FinalError, Stretch
from narrowcast.errors import TransportError

WINDOW = 120.0  # seconds for which the server knows repeats
WRONG_LAST, TOO_LARGE = 10071, 10054
HEADERS = 1024  # bytes of a message to NATS that its headers may take


class NatsLog:
    """`Log` on JetStream. `max_bytes` bounds each shard on disk; the oldest entries go first."""

    def __init__(self, link: NatsLink, *, replicas: int = 1, max_bytes: int = -1, timeout: float = 2.0) -> None:
        self._link = link
        self._replicas, self._max_bytes, self._timeout = replicas, max_bytes, timeout
        self._direct = DirectGet(link, timeout)
        self._look_at: dict[int, float] = {}

    async def start(self, shards: tuple[int, ...]) -> None:
        """Make the streams that are not there yet, and the inbox for what is read."""
        api, errors = engine("nats.js.api"), engine("nats.js.errors")
        for shard in shards:
            config = api.StreamConfig(
                name=self._stream(shard),
                subjects=[self._subject(shard), f"{self._subject(shard)}.*"],
                storage=api.StorageType.FILE,
                allow_direct=True,
                duplicate_window=WINDOW,
                deny_delete=True,
                max_bytes=self._max_bytes,
                num_replicas=self._replicas,
                republish=api.RePublish(src=">", dest=f"{self._live(shard)}.>"),
            )
            try:
                await self._make(config)
            except (errors.Error, engine("nats").errors.Error, TimeoutError) as error:
                raise refusal("the log", error, config.name) from None
        await self._direct.start()

    async def _make(self, config: Any) -> None:
        """Make a stream. One that is there, set up in another way, stays as it is, but learns of chains."""
        try:
            await self._link.js.add_stream(config)
        except engine("nats.js.errors").BadRequestError as error:
            if error.err_code != IN_USE:
                raise
            await self._link.replicate(config.name, self._replicas)
            found = (await self._link.js.stream_info(config.name)).config
            if set(found.subjects or ()) != set(config.subjects):
                found.subjects, found.republish = config.subjects, config.republish
                await self._link.js.update_stream(found)

    @property
    def most_bytes(self) -> int:
        """As the server we are connected to says."""
        return int(self._link.nc.max_payload) - HEADERS

    async def append(self, shard: int, data: bytes, *, dedup: str) -> int:
        nats = engine("nats")
        self._check_size(shard, data)
        try:
            ack = await self._link.js.publish(
                self._subject(shard), data, timeout=self._timeout, headers={"Nats-Msg-Id": dedup}
            )
        except (nats.errors.Error, TimeoutError, OSError) as error:
            kind = FinalError if getattr(error, "err_code", None) == TOO_LARGE else TransportError
            raise kind(f"the log did not accept the entry: {why(error)}", endpoint=self._stream(shard)) from None
        return int(ack.seq)

    def _check_size(self, shard: int, data: bytes) -> None:
        if len(data) > self.most_bytes:
            raise FinalError(
                f"an entry of the log must be at most {self.most_bytes} bytes, got {len(data)}",
                endpoint=self._stream(shard),
                limit=self.most_bytes,
            )

    async def append_next(self, shard: int, data: bytes, *, chain: str, after: int) -> int:
        """Append to a chain whose last entry is `after` (0: it has none); ConflictError if it is not.

        TransportError: it may or may not be there; `end_of_chain` tells.
        """
        errors = engine("nats.js.errors")
        headers = {"Nats-Expected-Last-Subject-Sequence": str(after)}
        subject = f"{self._subject(shard)}.{chain}"
        try:
            ack = await self._link.js.publish(subject, data, timeout=self._timeout, headers=headers)
        except errors.APIError as error:
            if error.err_code == WRONG_LAST:
                raise ConflictError(f"the chain {chain} does not end at {after}", endpoint=subject) from None
            raise TransportError(f"the log did not accept the entry: {error.description}", endpoint=subject) from None
        except (engine("nats").errors.Error, TimeoutError, OSError) as error:
            raise TransportError(f"the log did not accept the entry: {why(error)}", endpoint=subject) from None
        return int(ack.seq)

    async def end_of_chain(self, shard: int, chain: str) -> Entry | None:
        """The last entry of a chain, if the log holds any of it."""
        try:
            found = await self._link.js.get_last_msg(
                self._stream(shard), f"{self._subject(shard)}.{chain}", direct=True
            )
        except engine("nats.js.errors").NotFoundError:
            return None
        except (engine("nats").errors.Error, TimeoutError, OSError) as error:
            raise TransportError(f"the log does not answer: {why(error)}", endpoint=self._stream(shard)) from None
        return Entry(int(found.seq), found.data or b"")

    async def read(self, shard: int, after: int, *, most: int, upto: int | None = None) -> Stretch:
        wanted = most if upto is None else min(most, upto - after)
        if wanted <= 0:
            return Stretch(after, after, ())
        entries = await self._direct.fetch(self._stream(shard), after + 1, wanted)
        if upto is not None:
            entries = [entry for entry in entries if entry.sequence <= upto]
        if not entries:
            return await self._nothing(shard, after, upto)
        first = entries[0].sequence
        return Stretch(after, entries[-1].sequence, tuple(entries), first if first > after + 1 else 1)

    async def last(self, shard: int) -> int:
        return (await self.bounds(shard))[1]

    async def tail(self, shard: int, after: int) -> AsyncGenerator[Entry, None]:
        """Live entries as the server republishes them; whatever is missing between two is read."""
        queue: asyncio.Queue[Entry] = asyncio.Queue(4096)

        async def heard(message: Any) -> None:
            entry = Entry(int(message.headers["Nats-Sequence"]), message.data)
            if not queue.full():  # what does not fit is read again
                queue.put_nowait(entry)

        subscription = await self._link.nc.subscribe(f"{self._live(shard)}.>", cb=heard)
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
        first, last = await self.bounds(shard)
        end = last if upto is None else min(last, upto)
        if first > after + 1 and end > after:
            return Stretch(after, min(end, first - 1), (), first)
        return Stretch(after, after, ())

    async def bounds(self, shard: int) -> tuple[int, int]:
        """The oldest and the newest sequence number that the log holds; (1, 0) or (n + 1, n) if it holds nothing."""
        nats = engine("nats")
        try:
            state = (await self._link.js.stream_info(self._stream(shard))).state
        except (nats.errors.Error, TimeoutError, OSError) as error:
            raise TransportError(f"the log does not answer: {why(error)}", endpoint=self._stream(shard)) from None
        return int(state.first_seq), int(state.last_seq)

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
