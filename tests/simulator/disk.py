"""What survives every crash: the log and the registry."""

from __future__ import annotations

from narrowcast.deliver.transport import Entry, Stretch


class SimLog:
    """Entries by shard; a repeated dedup id within `window` gives the sequence number it had."""

    def __init__(self, shards: int, window: float) -> None:
        self.entries: list[list[bytes]] = [[] for _ in range(shards)]
        self.window = window
        self.first = [1] * shards
        self._known: dict[tuple[int, str], tuple[int, float]] = {}

    def append(self, shard: int, data: bytes, dedup: str, now: float) -> int:
        known = self._known.get((shard, dedup))
        if known is not None and now < known[1] + self.window:
            return known[0]
        self.entries[shard].append(data)
        sequence = len(self.entries[shard])
        self._known[shard, dedup] = (sequence, now)
        return sequence

    def last(self, shard: int) -> int:
        return len(self.entries[shard])

    def read(self, shard: int, after: int, upto: int | None, most: int) -> Stretch:
        first = self.first[shard]
        start = max(after, first - 1)
        end = min(self.last(shard) if upto is None else min(upto, self.last(shard)), start + most)
        entries = tuple(Entry(q, self.entries[shard][q - 1]) for q in range(start + 1, end + 1))
        return Stretch(after, max(end, start), entries, first)

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
