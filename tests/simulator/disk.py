"""What survives every crash: the log and the registry."""

from __future__ import annotations

from narrowcast.deliver.transport import Entry, Stretch
from narrowcast.deliver.transport.generations import newest, numbered_stretch
from narrowcast.deliver.wire import encode_entry
from narrowcast.deliver.wire.lineage import Lineage


class SimLog:
    """Entries by shard; a repeated dedup id within `window` gives the number it had.

    Whoever is first to append after the server started begins a generation, as real clients do.
    """

    def __init__(self, shards: int, window: float) -> None:
        self.entries: list[list[bytes]] = [[] for _ in range(shards)]
        self.window = window
        self.first = [1] * shards
        self.starts = 0  # of the server
        self._known: dict[tuple[int, str], tuple[int, float]] = {}

    def append(self, shard: int, data: bytes, dedup: str, now: float) -> int:
        known = self._known.get((shard, dedup))
        if known is not None and now < known[1] + self.window:
            return self.number(shard, known[0])
        self.bear(shard, now)
        self.entries[shard].append(data)
        sequence = len(self.entries[shard])
        self._known[shard, dedup] = (sequence, now)
        return self.number(shard, sequence)

    def bear(self, shard: int, now: float) -> None:
        lineage, server = self.lineage(shard), self.starts.to_bytes(8, "big")
        if not lineage.has(server):
            self.entries[shard].append(encode_entry(lineage.next_birth(1 + int(now * 1e6), server)))

    def lineage(self, shard: int) -> Lineage:
        return newest(tuple(Entry(q + 1, data) for q, data in enumerate(self.entries[shard]))) or Lineage()

    def number(self, shard: int, sequence: int) -> int:
        return self.lineage(shard).number(sequence)

    def last(self, shard: int) -> int:
        return self.number(shard, len(self.entries[shard]))

    def read(self, shard: int, after: int, upto: int | None, most: int) -> Stretch:
        lineage = self.lineage(shard)
        asked = lineage.reading(after, upto)
        return numbered_stretch(self._read(shard, asked.after, asked.upto, most), lineage, after, asked)

    def _read(self, shard: int, after: int, upto: int | None, most: int) -> Stretch:
        first, last = self.first[shard], len(self.entries[shard])
        start = max(after, first - 1)
        end = min(last if upto is None else min(upto, last), start + most)
        entries = tuple(Entry(q, self.entries[shard][q - 1]) for q in range(start + 1, end + 1))
        return Stretch(after, max(end, start), entries, first)

    def go_back(self, shard: int, upto: int) -> None:
        """An older copy takes the log's place, while the server is down."""
        self.entries[shard] = self.entries[shard][:upto]
        self.first[shard] = min(self.first[shard], upto + 1)
        self._known = {k: v for k, v in self._known.items() if k[0] != shard or v[0] <= upto}

    def forget(self, shard: int, upto: int) -> None:
        """Entries up to a sequence number are gone, as when the log's space is limited."""
        self.first[shard] = max(self.first[shard], upto + 1)


class SimRegistry:
    """Keys with revisions. `changed` collects the keys written since it was last emptied."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[bytes | None, int]] = {}
        self.revision = 0

    def get(self, key: str) -> tuple[bytes | None, int]:
        return self.values.get(key, (None, 0))

    def put(self, key: str, data: bytes | None, revision: int | None) -> int | None:
        """The new revision, or None if the key has another one than was thought. 0: it must be absent."""
        now, at = self.get(key)
        if revision is not None and revision != (0 if now is None and revision == 0 else at):
            return None
        self.revision += 1
        self.values[key] = (data, self.revision)
        return self.revision

    def keys(self, prefix: str) -> list[str]:
        return sorted(key for key in self.values if key.startswith(prefix))
