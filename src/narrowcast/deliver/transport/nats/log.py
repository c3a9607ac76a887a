"""The durable log on JetStream: one stream per shard, its sequence numbers are ours.

Ranges are read by direct get in batches. The stream republishes each entry once it is durable, with its
number, so a tail hears of it without asking. An entry may belong to a *chain*, a subject of its own below
the shard's: then it is appended only if the chain ends where its writer thinks, which holds for ever, where
the server knows names of entries for `WINDOW` only (docs/decisions/0120).

Generations (`wire.lineage`) are a chain too. Whoever appends for the first time since a server started begins one,
so that no entry stands in the log whose numbers somebody could take for those of a log that was there before. The
stream's metadata has the same list, for when its entries are gone.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from narrowcast.deliver.transport.extra import engine
from narrowcast.deliver.transport.nats.at_once import listen_at_once, more_was_read
from narrowcast.deliver.transport.nats.direct import DirectGet, why
from narrowcast.deliver.transport.nats.link import IN_USE, NatsLink, refusal
from narrowcast.deliver.transport.protocols import ConflictError, Done, Entry, FinalError, Stretch, TakeAtOnce
from narrowcast.deliver.wire.entry import Birth, decode_entry, encode_entry
from narrowcast.deliver.wire.lineage import Lineage
from narrowcast.errors import TransportError

WINDOW = 120.0  # seconds for which the server knows repeats
WRONG_LAST, TOO_LARGE = 10071, 10054
GENERATIONS = "generations"  # the chain of births, and their key in the stream's metadata
MOST_WAITING_BYTES = 32 << 20  # of a tail, before whoever follows it has taken them
HEADERS = 1024  # bytes of a message to NATS that its headers may take
DISK, DISK_FULL, DISK_FREE = "disk", b"full", b"free"  # the subject on which whoever runs the server tells of its disk
LOOK_S = 0.25  # without an entry before a tail asks whether it missed some
BELIEVED_S = 2.0  # it says so five times a second
FULL = "the log's disk is full: free space on it, or keep less with narrowcast up --retention"


class NatsLog:
    """`Log` on JetStream. `max_bytes` and `max_age` (seconds) bound each shard; the oldest entries go first.

    0: without a bound. None: as it is, for whoever does not set the log up.
    """

    def __init__(
        self,
        link: NatsLink,
        *,
        replicas: int = 1,
        max_bytes: int | None = None,
        max_age: float | None = None,
        timeout: float = 2.0,
    ) -> None:
        self._link = link
        self._replicas, self._timeout = replicas, timeout
        self._limits = {"max_bytes": max_bytes or -1, "max_age": max_age or 0}
        self._limited = max_bytes is not None or max_age is not None
        self._full_until = 0.0
        self._keeps = True  # the list of generations in the stream's metadata
        self._kept: dict[int, Lineage] = {}  # what we wrote there
        self._direct = DirectGet(link, timeout)
        self._look_at: dict[int, float] = {}
        self._lineages: dict[int, tuple[bytes, Lineage]] = {}  # by shard: as seen at which server
        self._latest: dict[int, int] = {}  # by shard: the latest generation ever seen, also of a log that is gone

    async def start(self, shards: tuple[int, ...], *, make: bool = True) -> None:
        """Make the streams that are not there yet, if it is for us to do, and the inbox for what is read."""
        api, errors = engine("nats.js.api"), engine("nats.js.errors")
        self._keeps = make
        for shard in shards if make else ():
            config = api.StreamConfig(
                name=self._stream(shard),
                subjects=[self._subject(shard), f"{self._subject(shard)}.*"],
                storage=api.StorageType.FILE,
                allow_direct=True,
                duplicate_window=WINDOW,
                deny_delete=True,
                **self._limits,
                num_replicas=self._replicas,
                republish=api.RePublish(src=">", dest=f"{self._live(shard)}.>"),
            )
            try:
                await self._make(config)
            except (errors.Error, engine("nats").errors.Error, TimeoutError) as error:
                raise refusal("the log", error, config.name) from None
        await self._direct.start()
        await self._link.listen(DISK, self._heard_disk)

    def _heard_disk(self, data: bytes) -> None:
        self._full_until = asyncio.get_running_loop().time() + BELIEVED_S if data == DISK_FULL else 0.0

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
            if self._limited and (found.max_bytes, found.max_age or 0) != (config.max_bytes, config.max_age):
                found.max_bytes, found.max_age = config.max_bytes, config.max_age
                await self._link.js.update_stream(found)

    @property
    def most_bytes(self) -> int:
        """As the server we are connected to says."""
        return int(self._link.nc.max_payload) - HEADERS

    async def append(self, shard: int, data: bytes, *, dedup: str) -> int:
        nats = engine("nats")
        self._check_size(shard, data)
        self._refuse_full(shard)
        await self._bear(shard)
        self._refuse_unconnected(shard)
        try:
            return await self._link.append(self._subject(shard), data, self._timeout, {"Nats-Msg-Id": dedup})
        except (nats.errors.Error, TimeoutError, OSError) as error:
            raise self._not_accepted(shard, error) from None

    def append_at_once(self, shard: int, data: bytes, dedup: str, done: Done) -> bool:
        """`append` where nothing stands in its way and nothing has to be asked first."""
        known, now = self.known(shard), asyncio.get_running_loop().time()
        if known is None or (self._keeps and self._kept.get(shard) != known):
            return False
        if now < self._full_until or len(data) > self.most_bytes:
            return False

        def answered(found: int | Exception) -> None:
            done(self._not_accepted(shard, found) if isinstance(found, Exception) else found)

        return self._link.append_now(self._subject(shard), data, self._timeout, {"Nats-Msg-Id": dedup}, answered)

    def _not_accepted(self, shard: int, error: Exception) -> TransportError:
        self._lineages.pop(shard, None)  # there may be another server, or another stream
        kind = FinalError if getattr(error, "err_code", None) == TOO_LARGE else TransportError
        return kind(f"the log did not accept the entry: {why(error)}", endpoint=self._stream(shard))

    def _refuse_unconnected(self, shard: int) -> None:
        """An entry that waits for a connection could reach a log whose generation nobody has begun."""
        if not self._link.nc.is_connected:
            raise TransportError("the log does not answer: not connected", endpoint=self._stream(shard))

    def _refuse_full(self, shard: int) -> None:
        """A server that met the end of its disk answers nothing: it is not asked."""
        if asyncio.get_running_loop().time() < self._full_until:
            raise FinalError(FULL, endpoint=self._stream(shard))

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
        self._refuse_full(shard)
        await self._bear(shard)
        self._refuse_unconnected(shard)
        return await self._append_next(shard, data, chain, after)

    async def _append_next(self, shard: int, data: bytes, chain: str, after: int) -> int:
        errors = engine("nats.js.errors")
        headers = {"Nats-Expected-Last-Subject-Sequence": str(after)}
        subject = f"{self._subject(shard)}.{chain}"
        try:
            return await self._link.append(subject, data, self._timeout, headers)
        except errors.APIError as error:
            if error.err_code == WRONG_LAST:
                raise ConflictError(f"the chain {chain} does not end at {after}", endpoint=subject) from None
            raise TransportError(f"the log did not accept the entry: {error.description}", endpoint=subject) from None
        except (engine("nats").errors.Error, TimeoutError, OSError) as error:
            raise TransportError(f"the log did not accept the entry: {why(error)}", endpoint=subject) from None

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

    # Generations.

    async def lineage(self, shard: int, *, fresh: bool = False) -> Lineage:
        """The generations of a shard. Until this server's start is among them they are asked for every time."""
        known = None if fresh else self.known(shard)
        if known is not None:
            return known
        found, _ = await self._read_lineage(shard)
        self.learn(shard, found)
        return found

    def known(self, shard: int) -> Lineage | None:
        """The generations, if this server's start is known to be among them."""
        server = self._server()
        at, found = self._lineages.get(shard, (b"", None))
        return found if found is not None and at == server and found.has(server) else None

    def learn(self, shard: int, lineage: Lineage) -> None:
        """An entry that was read says of a generation that is not known yet."""
        self._lineages[shard] = (self._server(), lineage)
        self._latest[shard] = max(self._latest.get(shard, 0), lineage.latest)

    async def _read_lineage(self, shard: int) -> tuple[Lineage, int]:
        """The generations, and which entry says so: the end of their chain."""
        found = await self.end_of_chain(shard, GENERATIONS)
        birth = None if found is None else decode_entry(found.data)
        if found is not None and isinstance(birth, Birth):
            return Lineage.of(birth, found.sequence), found.sequence
        try:
            config = (await self._link.js.stream_info(self._stream(shard))).config
        except (engine("nats").errors.Error, TimeoutError, OSError) as error:
            raise TransportError(f"the log does not answer: {why(error)}", endpoint=self._stream(shard)) from None
        kept = decode_entry(_unhex((config.metadata or {}).get(GENERATIONS, "")))
        return Lineage(kept.born) if isinstance(kept, Birth) else Lineage(), 0 if found is None else found.sequence

    async def begin(self, shards: Iterable[int]) -> None:
        """What the first entry after a server's start would do: for whoever keeps the list, to be there before others.

        Where it fails, the next entry does it.
        """
        for shard in shards:
            with suppress(TransportError):
                await self._bear(shard)

    async def _bear(self, shard: int) -> None:
        """Begin a generation, if none has begun since this server started.

        It is later than all that were ever seen here: the clock may have gone back, and the log too.
        """
        while not (known := await self.lineage(shard)).has(server := self._server()):
            lineage, last = await self._read_lineage(shard)
            clock = time.time_ns() // 1_000_000 << 20 | secrets.randbits(20)
            birth = lineage.next_birth(max(clock, self._latest.get(shard, 0) + 1), server)
            with suppress(ConflictError):  # somebody else has begun one
                if not lineage.has(server):
                    await self._append_next(shard, encode_entry(birth), GENERATIONS, last)
        await self._keep(shard, known)

    async def _keep(self, shard: int, lineage: Lineage) -> None:
        """In the metadata too, whoever began the latest one. If that fails, the next entry sees to it."""
        if not self._keeps or self._kept.get(shard) == lineage:
            return
        with suppress(engine("nats").errors.Error, TimeoutError, OSError):
            config = (await self._link.js.stream_info(self._stream(shard))).config
            config.metadata = (config.metadata or {}) | {GENERATIONS: encode_entry(Birth(lineage.born)).hex()}
            await self._link.js.update_stream(config)
            self._kept[shard] = lineage

    def _server(self) -> bytes:
        """Which start of which server this is: a server takes a new id whenever it starts."""
        return _digest(str(self._link.nc._server_info.get("server_id", "")))

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

    async def tail(self, shard: int, after: int, at_once: TakeAtOnce | None = None) -> AsyncGenerator[Entry, None]:
        """Live entries as the server republishes them; whatever is missing between two is read."""
        queue: asyncio.Queue[Entry | None] = asyncio.Queue(4096)
        waiting = 0  # bytes
        idle = False  # all that came before has been dealt with
        loop = asyncio.get_running_loop()
        heard_at = loop.time()

        def heard(message: Any) -> None:
            nonlocal waiting, heard_at, after
            heard_at = loop.time()
            entry = Entry(int(message.headers["Nats-Sequence"]), message.data)
            next_ = idle and queue.empty() and entry.sequence == after + 1 and self._link.reconnects == connected
            if next_ and at_once is not None and at_once(entry, more_was_read(self._link.nc)):
                after = entry.sequence
            elif not queue.full() and waiting < MOST_WAITING_BYTES:  # what does not fit is read again
                waiting += len(entry.data)
                queue.put_nowait(entry)

        subscription = await listen_at_once(self._link.nc, f"{self._live(shard)}.>", heard)
        connected = self._link.reconnects
        looking = loop.call_later(LOOK_S, lambda: look())

        def look() -> None:
            nonlocal looking
            looking = loop.call_later(LOOK_S, look)
            if queue.empty() and loop.time() > heard_at + LOOK_S:
                queue.put_nowait(None)

        try:
            while True:
                idle = True
                entry = await queue.get()
                idle = False
                waiting -= len(entry.data) if entry is not None else 0
                if self._link.reconnects != connected:  # it may be another log
                    with suppress(TransportError):
                        after = min(after, await self.last(shard))
                        connected = self._link.reconnects
                if entry is not None and entry.sequence == after + 1:
                    after = entry.sequence
                    yield entry
                elif entry is None or entry.sequence > after:
                    async for missed in self._catch_up(shard, after):
                        after = missed.sequence
                        yield missed
        finally:
            idle = False
            looking.cancel()
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
        return max(1, int(state.first_seq)), int(state.last_seq)  # of a new one the server says 0

    def _stream(self, shard: int) -> str:
        return f"{self._link.system}-log-{shard}"

    def _subject(self, shard: int) -> str:
        return f"{self._link.system}.log.{shard}"

    def _live(self, shard: int) -> str:
        return f"{self._link.system}.live.{shard}"


@lru_cache(maxsize=16)
def _digest(name: str) -> bytes:
    return blake2b(name.encode(), digest_size=8).digest()


def _unhex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""
