"""Log, registry and carrier in memory: for tests and for trying things out in one process.

Nothing survives the process. Frames are neither lost nor reordered; for that there is the simulator.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from narrowcast.deliver.routing.address import Address, Link, Overlay
from narrowcast.deliver.transport.protocols import (
    ConflictError,
    Entry,
    FinalError,
    Receive,
    Stretch,
    TakeAtOnce,
    Value,
)


class MemoryLog:
    """A log for each shard that is asked for. Every dedup id is known for ever."""

    def __init__(self, most_bytes: int = 8 << 20) -> None:
        self.most_bytes = most_bytes
        self._entries: dict[int, list[bytes]] = {}
        self._known: dict[tuple[int, str], int] = {}
        self._grown = asyncio.Condition()

    async def append(self, shard: int, data: bytes, *, dedup: str) -> int:
        if len(data) > self.most_bytes:
            raise FinalError(f"an entry must be at most {self.most_bytes} bytes, got {len(data)}")
        async with self._grown:
            known = self._known.get((shard, dedup))
            if known is None:
                entries = self._entries.setdefault(shard, [])
                entries.append(bytes(data))
                known = self._known[shard, dedup] = len(entries)
                self._grown.notify_all()
        return known

    async def read(self, shard: int, after: int, *, most: int, upto: int | None = None) -> Stretch:
        entries = self._entries.get(shard, [])
        end = min(len(entries) if upto is None else min(upto, len(entries)), after + most)
        return Stretch(after, max(end, after), tuple(Entry(q, entries[q - 1]) for q in range(after + 1, end + 1)))

    async def last(self, shard: int) -> int:
        return len(self._entries.get(shard, []))

    async def tail(self, shard: int, after: int, at_once: TakeAtOnce | None = None) -> AsyncGenerator[Entry, None]:
        while True:
            entries = self._entries.get(shard, [])
            while after < len(entries):
                after += 1
                yield Entry(after, entries[after - 1])
            async with self._grown:
                while len(self._entries.get(shard, [])) <= after:
                    await self._grown.wait()


class MemoryRegistry:
    """Keys with revisions; a deleted key keeps its revision growing."""

    def __init__(self) -> None:
        self._values: dict[str, Value] = {}
        self._revision = 0
        self._watchers: dict[asyncio.Queue[Value], str] = {}

    async def get(self, key: str) -> Value:
        return self._values.get(key, Value(key, None, 0))

    async def put(self, key: str, data: bytes, *, revision: int | None = None) -> int:
        return self._set(key, bytes(data), revision)

    async def delete(self, key: str, *, revision: int | None = None) -> None:
        self._set(key, None, revision)

    def _set(self, key: str, data: bytes | None, revision: int | None) -> int:
        now = self._values.get(key, Value(key, None, 0))
        fits = now.data is None if revision == 0 else revision == now.revision
        if revision is not None and not fits:
            raise ConflictError(f"{key} has revision {now.revision}, not {revision}", limit=now.revision)
        self._revision += 1
        value = self._values[key] = Value(key, data, self._revision)
        for queue, prefix in self._watchers.items():
            if key.startswith(prefix):
                queue.put_nowait(value)
        return self._revision

    async def watch(self, prefix: str) -> AsyncGenerator[Value, None]:
        queue: asyncio.Queue[Value] = asyncio.Queue()
        for key in sorted(self._values):
            if key.startswith(prefix) and self._values[key].data is not None:
                queue.put_nowait(self._values[key])
        self._watchers[queue] = prefix
        try:
            while True:
                yield await queue.get()
        finally:
            del self._watchers[queue]


class MemoryNetwork:
    """What memory carriers share: who has joined what."""

    def __init__(self) -> None:
        self.members: dict[Address, dict[MemoryCarrier, None]] = {}

    def carrier(self, node: str) -> MemoryCarrier:
        """A carrier for a node; its `Link` is joined as long as it runs."""
        return MemoryCarrier(self, node)


class MemoryCarrier:
    """Takes frames to those who joined, through the event loop, in order."""

    def __init__(self, network: MemoryNetwork, node: str) -> None:
        self._network, self._node = network, node
        self._receive: Receive | None = None

    async def start(self, receive: Receive) -> None:
        self._receive = receive
        await self.join(Link(self._node))

    async def join(self, address: Address) -> None:
        self._network.members.setdefault(address, {})[self] = None

    async def leave(self, address: Address) -> None:
        self._network.members.get(address, {}).pop(self, None)

    async def send(self, address: Address, data: bytes) -> None:
        target = Link(address.root) if isinstance(address, Overlay) else address
        loop = asyncio.get_running_loop()
        for carrier in self._network.members.get(target, {}):
            loop.call_soon(carrier._take, data)
        await asyncio.sleep(0)

    def _take(self, data: bytes) -> None:
        if self._receive is not None:
            self._receive(data)

    async def close(self) -> None:
        self._receive = None
        for members in self._network.members.values():
            members.pop(self, None)
