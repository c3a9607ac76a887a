"""A log whose numbers never come back: sequence numbers of an engine, each with the generation it belongs to.

Parts see one row of numbers that only grows. Where the engine's log went back, a read says so (`Stretch.back`), and
goes on with the first entry that is new.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from typing import Protocol

from narrowcast.deliver.transport.protocols import Done, Entry, Log, Stretch, TakeAtOnce
from narrowcast.deliver.wire.entry import Birth, decode_entry, is_birth
from narrowcast.deliver.wire.lineage import Lineage, Reading
from narrowcast.deliver.wire.place import bare_of
from narrowcast.errors import TransportError

log = logging.getLogger(__name__)


class GenerationsLog(Log, Protocol):
    """A log by sequence numbers that knows its generations."""

    async def lineage(self, shard: int, *, fresh: bool = False) -> Lineage: ...

    def known(self, shard: int) -> Lineage | None:
        """The generations, if they need not be asked for."""
        ...

    def learn(self, shard: int, lineage: Lineage) -> None:
        """What an entry that was read says, where it is not known yet."""
        ...


class NumberedLog:
    """`Log` by numbers, on one by sequence numbers."""

    def __init__(self, inner: GenerationsLog) -> None:
        self._inner = inner
        self._acknowledged: dict[int, int] = {}  # the last number of each shard that was promised here

    @property
    def most_bytes(self) -> int:
        return self._inner.most_bytes

    async def append(self, shard: int, data: bytes, *, dedup: str) -> int:
        sequence = await self._inner.append(shard, data, dedup=dedup)
        return self._promised(shard, sequence, await self._inner.lineage(shard))

    def append_at_once(self, shard: int, data: bytes, dedup: str, done: Done) -> bool:
        """As `append`, where the log within can."""

        def numbered(found: int | TransportError) -> None:
            if isinstance(found, TransportError):
                done(found)
            elif (lineage := self._inner.known(shard)) is not None:
                done(self._promised(shard, found, lineage))
            else:  # another server since then: the entry counts, once it has a number among its generations
                done(TransportError("the log's server changed", endpoint=str(shard)))

        start = getattr(self._inner, "append_at_once", None)
        return start is not None and start(shard, data, dedup, numbered)

    def _promised(self, shard: int, sequence: int, lineage: Lineage) -> int:
        number, before = lineage.number(sequence), self._acknowledged.get(shard, 0)
        self._acknowledged[shard] = max(before, number)
        if not lineage.holds(before):
            log.warning(
                "shard %d of the log went back: of what was published here up to entry %d, some is gone",
                shard,
                bare_of(before),
            )
        return number

    async def read(self, shard: int, after: int, *, most: int, upto: int | None = None) -> Stretch:
        lineage = await self._inner.lineage(shard)
        if not lineage.holds(after):  # by the newest list there is
            lineage = await self._inner.lineage(shard, fresh=True)
        asked = lineage.reading(after, upto)
        found = await self._inner.read(shard, asked.after, most=most, upto=asked.upto)
        newer = newest(found.entries)
        if newer is not None and newer.born[-1] not in lineage.born:
            self._inner.learn(shard, newer)
            lineage = newer
            if asked.back:  # where it begins, by the list that knows: else nobody would hear that the log went back
                asked = asked._replace(first=lineage.number(asked.after + 1))
        return numbered_stretch(found, lineage, after, asked)

    async def last(self, shard: int) -> int:
        sequence = await self._inner.last(shard)
        return (await self._inner.lineage(shard, fresh=True)).number(sequence)

    async def tail(self, shard: int, after: int, at_once: TakeAtOnce | None = None) -> AsyncGenerator[Entry, None]:
        def numbered(entry: Entry, more: bool) -> bool:
            lineage = None if is_birth(entry.data) else self._inner.known(shard)
            if at_once is None or lineage is None:
                return False
            return at_once(entry._replace(sequence=lineage.number(entry.sequence)), more)

        async for entry in self._inner.tail(shard, bare_of(after), None if at_once is None else numbered):
            lineage = None if is_birth(entry.data) else self._inner.known(shard)
            if lineage is None:
                lineage = await self._inner.lineage(shard, fresh=is_birth(entry.data))
            yield entry._replace(sequence=lineage.number(entry.sequence))


def newest(entries: tuple[Entry, ...]) -> Lineage | None:
    """The generations as the last birth among some entries has them."""
    for entry in reversed(entries):
        if is_birth(entry.data):
            birth = decode_entry(entry.data)
            if isinstance(birth, Birth):
                return Lineage.of(birth, entry.sequence)
    return None


def numbered_stretch(found: Stretch, lineage: Lineage, after: int, asked: Reading) -> Stretch:
    """What was read by sequence numbers, by numbers.

    >>> from narrowcast.deliver.wire import in_generation
    >>> from narrowcast.deliver.wire.entry import Born
    >>> lineage = Lineage((Born(7, 1, b""), Born(9, 401, b"")))
    >>> lost = in_generation(7, 500)
    >>> found = numbered_stretch(Stretch(400, 401, (Entry(401, b""),)), lineage, lost, lineage.reading(lost, None))
    >>> found.back, found.first == found.upto == in_generation(9, 401)
    (True, True)
    """
    entries = tuple(entry._replace(sequence=lineage.number(entry.sequence)) for entry in found.entries)
    moved = found.upto > asked.after
    first = asked.first
    if found.first > asked.after + 1:  # and what was first is not there any more
        first = lineage.number(found.first)
    if asked.back:
        upto = lineage.number(found.upto) if moved else first - 1
    else:
        upto = lineage.number(found.upto) if moved else after
    return Stretch(after, upto, entries, first, asked.back)
