"""Publishing in batches that may be tried again, hours later, by somebody else, with other rows in another order: once.

1. *Stage.* Whoever has rows puts them on a pile beside the log, under a name that nobody else uses. Tries that
   fail leave piles that nobody reads.
2. *Decide.* One record in the registry, written only over the revision that was read, says which piles batch N is.
   From now on N is these rows, whatever a later try comes with.
3. *Publish.* The piles are appended to the sink's chain in the log, each entry numbered (batch, k), each only
   if the one before it is the chain's last. So where the chain ends says how far publishing got, for ever,
   and no second publisher can slip in between.
4. *Done.* The record says so, the piles go.

Whoever finds a batch decided and not done goes on with 3. docs/decisions/0120 has the cases.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

from narrowcast.deliver.client.rows import ColumnChunk
from narrowcast.deliver.parts import records
from narrowcast.deliver.transport import ConflictError
from narrowcast.deliver.transport.nats.log import NatsLog
from narrowcast.deliver.transport.nats.registry import NatsRegistry
from narrowcast.deliver.transport.nats.stage import NatsStage
from narrowcast.deliver.wire import Batch, ColumnBatch, decode_entry, encode_entry
from narrowcast.errors import InputError, TransportError

ENTRY_BITS = 24  # entries of one batch: 16 million, with up to 1,024 messages each, or more as columns
TRIES = 40
PAUSE = 0.25


@dataclass(frozen=True, slots=True)
class Pile:
    """Staged messages of one try: their pile, the number of its first entry, entries and messages in it."""

    name: str
    first: int
    entries: int
    messages: int


@dataclass(frozen=True, slots=True)
class _Decided:
    """What a sink has decided last. `last` is the log's newest entry at that time."""

    batch: int
    done: bool
    shard: int
    last: int
    piles: tuple[Pile, ...]

    def to_bytes(self) -> bytes:
        piles = [astuple(pile) for pile in self.piles]
        return records.pack(
            {name: getattr(self, name) for name in ("batch", "done", "shard", "last")} | {"piles": piles}
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> _Decided:
        body: dict[str, Any] = records.unpack(data)
        return cls(**body | {"piles": tuple(Pile(*each) for each in body["piles"])})


class Piling:
    """A pile that grows. An entry that the stage may or may not have is put there again under the same name."""

    def __init__(self, stage: NatsStage, name: str) -> None:
        self._stage = stage
        self.pile = Pile(name, 0, 0, 0)

    async def add(self, chunk: tuple[bytes, ...] | ColumnChunk) -> None:
        """Put messages, or columns, on top; returns once they are durable."""
        pile = self.pile
        if isinstance(chunk, ColumnChunk):
            count, entry = chunk.n_rows, encode_entry(ColumnBatch("", pile.entries, *chunk))
        else:
            count, entry = len(chunk), encode_entry(Batch("", pile.entries, chunk))
        number = await self._put(entry, f"{pile.name}.{pile.entries}")
        self.pile = Pile(pile.name, pile.first or number, pile.entries + 1, pile.messages + count)

    async def _put(self, entry: bytes, dedup: str) -> int:
        for _ in range(TRIES):
            try:
                return await self._stage.put(self.pile.name, entry, dedup=dedup)
            except TransportError:
                await asyncio.sleep(PAUSE)
        return await self._stage.put(self.pile.name, entry, dedup=dedup)


class BatchSink:
    """A publisher of numbered batches. `name` stands for it in the log and the registry, for ever."""

    def __init__(self, name: str, log: NatsLog, registry: NatsRegistry, stage: NatsStage) -> None:
        self.name = name
        self._token = name.encode().hex()
        self._log, self._registry, self._stage = log, registry, stage

    def piling(self, batch: int) -> Piling:
        """A new pile for messages of a batch. Nobody gets them until the batch is published with it."""
        return Piling(self._stage, f"{self._token}.{batch}.{secrets.token_hex(8)}")

    async def publish(self, batch: int, piles: Sequence[Pile], *, shard: int) -> None:
        """Publish batch number `batch`, unless it was. Numbers grow; one that was passed is taken for published."""
        while True:
            decided, revision = await self._decided()
            if decided is not None and not decided.done:
                await self._finish(decided, revision)
            elif decided is not None and decided.batch >= batch:
                return
            else:
                await self._decide(batch, piles, shard, revision)

    async def published(self) -> int | None:
        """The last batch that was published whole, if any."""
        decided, _ = await self._decided()
        if decided is None:
            return None
        return decided.batch if decided.done else decided.batch - 1

    async def forget(self) -> None:
        """Leave no record: for a sink that publishes nothing any more."""
        await self._registry.delete(records.named(records.SINK, self.name))

    async def _decided(self) -> tuple[_Decided | None, int]:
        found = await self._registry.get(records.named(records.SINK, self.name))
        return (None if found.data is None else _Decided.from_bytes(found.data)), found.revision

    async def _decide(self, batch: int, piles: Sequence[Pile], shard: int, revision: int) -> None:
        entries = sum(pile.entries for pile in piles)
        if entries >> ENTRY_BITS:
            raise InputError(
                f"a batch must have fewer than {1 << ENTRY_BITS} log entries, got {entries}",
                name="rows",
                hint="publish smaller batches",
            )
        kept = tuple(pile for pile in piles if pile.entries)
        decided = _Decided(batch, not kept, shard, await self._log.last(shard), kept)
        await self._write(decided, revision)

    async def _write(self, decided: _Decided, revision: int) -> None:
        """Unless somebody was faster: then what they wrote holds."""
        key = records.named(records.SINK, self.name)
        try:
            await self._registry.put(key, decided.to_bytes(), revision=revision)
        except ConflictError:
            return

    async def _finish(self, decided: _Decided, revision: int) -> None:
        number = decided.batch << ENTRY_BITS
        at, due = await self._end(decided)
        if due <= number:
            await self._surely_not_there(decided)
        async for staged in self._staged(decided):
            if number >= due:
                entry = encode_entry(replace(staged, publisher=self.name, number=number))
                at, due = await self._append(decided, entry, number, at)
            number += 1
        if number - (decided.batch << ENTRY_BITS) == sum(pile.entries for pile in decided.piles):
            await self._write(replace(decided, done=True, piles=()), revision)
        elif (await self._decided())[1] == revision:
            raise TransportError(f"the staged messages of batch {decided.batch} are missing", endpoint=self.name)
        await self._stage.drop(f"{self._token}.{decided.batch}")

    async def _append(self, decided: _Decided, entry: bytes, number: int, at: int) -> tuple[int, int]:
        """Append one entry, or find that it is there; where the chain ends then, and the number that is due."""
        for attempt in range(TRIES):
            try:
                sequence = await self._log.append_next(decided.shard, entry, chain=self._token, after=at)
            except TransportError:
                if attempt == TRIES - 1:
                    raise
                await asyncio.sleep(PAUSE * min(attempt, 4))
                at, due = await self._end(decided)
                if due > number:
                    return at, due
            else:
                return sequence, number + 1
        raise AssertionError

    async def _end(self, decided: _Decided) -> tuple[int, int]:
        """The chain's last entry, and the number of the one that should follow."""
        for attempt in range(TRIES):
            try:
                found = await self._log.end_of_chain(decided.shard, self._token)
                break
            except TransportError:
                if attempt == TRIES - 1:
                    raise
                await asyncio.sleep(PAUSE)
        if found is None:
            return 0, 0
        entry = decode_entry(found.data)
        if not isinstance(entry, Batch | ColumnBatch):
            raise TransportError(f"the last entry of sink {self.name} in the log is not a batch", endpoint=self.name)
        return found.sequence, entry.number + 1

    async def _surely_not_there(self, decided: _Decided) -> None:
        """Nothing of the batch is in the log. But was it? Not if the log still has what came after the decision."""
        first, _ = await self._log.bounds(decided.shard)
        if first > decided.last + 1:
            raise TransportError(
                f"batch {decided.batch} of {self.name} was started, and since then the log has dropped entries: "
                "it is unknown whether the batch was published. Give the log more room, or start with a new checkpoint",
                endpoint=self.name,
            )

    async def _staged(self, decided: _Decided) -> AsyncGenerator[Batch | ColumnBatch, None]:
        for pile in decided.piles:
            async for entry in self._stage.read(pile.name, pile.first):
                batch = decode_entry(entry.data)
                assert isinstance(batch, Batch | ColumnBatch)
                yield batch
