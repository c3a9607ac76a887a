"""A log that was emptied, read in the moment between its first entry being there and anybody knowing of its birth."""

from __future__ import annotations

import asyncio

from narrowcast.deliver.transport import Entry, Stretch
from narrowcast.deliver.transport.generations import NumberedLog
from narrowcast.deliver.wire import Batch, encode_entry, in_generation
from narrowcast.deliver.wire.entry import Birth, Born
from narrowcast.deliver.wire.lineage import Lineage


class Emptied:
    """What generations there are is read before the entries, and the first of them says of one more."""

    most_bytes = 1 << 20

    def __init__(self, known: Lineage, entries: list[bytes]) -> None:
        self.known, self._entries = known, entries

    async def lineage(self, shard: int, *, fresh: bool = False) -> Lineage:
        return self.known

    def learn(self, shard: int, lineage: Lineage) -> None:
        self.known = lineage

    async def read(self, shard: int, after: int, *, most: int, upto: int | None = None) -> Stretch:
        entries = tuple(Entry(k + 1, data) for k, data in enumerate(self._entries) if k + 1 > after)
        return Stretch(after, max(after, len(self._entries)), entries)


def test_whoever_stood_in_the_old_log_hears_that_it_went_back() -> None:
    birth = encode_entry(Birth((Born(9, 0, b"12345678"),)))
    log = NumberedLog(Emptied(Lineage(), [birth, encode_entry(Batch("p", 0, (b"{}",)))]))  # type: ignore[arg-type]
    found = asyncio.run(log.read(0, in_generation(7, 52), most=10))
    assert found.back
    assert found.first == in_generation(9, 1)
    assert [entry.sequence for entry in found.entries] == [in_generation(9, 1), in_generation(9, 2)]
