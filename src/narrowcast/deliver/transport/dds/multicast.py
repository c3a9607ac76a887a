"""LAN multicast on Cyclone DDS: a session is a partition, a group an address that IGMP keeps to its members."""

from __future__ import annotations

import asyncio
import os
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import Any

from narrowcast.deliver.routing.address import Address, Multicast
from narrowcast.deliver.transport.bounded import PATIENCE_S, ended
from narrowcast.deliver.transport.dds.config import DdsSettings, packet_bytes, partition
from narrowcast.deliver.transport.dds.node import DdsNode
from narrowcast.deliver.transport.protocols import Receive, ReceiveMany
from narrowcast.deliver.wire.bundle import bundled, unbundled
from narrowcast.errors import TransportError

MOST_WAITING, MOST_WAITING_BYTES = 100_000, 64 << 20  # packets between the receiving thread and the loop
BURST, BURST_BYTES = 256, 256 << 10  # at a time; in between the loop passes it on, as much as sockets take at once


class DdsMulticast:
    """`Carrier` for `Multicast` addresses.

    A thread takes what arrives, so that a busy loop holds nobody else up; frames that the loop cannot
    keep up with are dropped and counted, and the edge repairs them from the log. A sender waits while
    the slowest receiver is behind, but not longer than `patience`.
    """

    def __init__(self, settings: DdsSettings | None = None, *, patience: float = 0.25, discovery: float = 0.3) -> None:
        self.settings = settings or DdsSettings()
        self.counts: Counter[str] = Counter()
        self.receive_many: ReceiveMany | None = None
        self._most = packet_bytes(self.settings)
        self._patience, self._discovery = patience, discovery
        self._readers: dict[Multicast, tuple[Any, Any]] = {}
        self._writers: dict[Multicast, Any] = {}
        self._stuck_until = 0.0
        self._frames: deque[tuple[int, bytes]] = deque()
        self._came = self._gone = self._overrun = (
            0  # bytes that the thread took and the loop passed on; packets left out
        )
        self._scheduled = False
        self._bell: int | None = None  # what the thread wakes the loop with, for less than the loop's own way
        self._closing = False
        self._lock = Lock()

    @property
    def behind(self) -> bool:
        """Whether more stands ready than was taken at once."""
        return bool(self._frames)

    async def start(self, receive: Receive) -> None:
        self._receive = receive
        self._loop = asyncio.get_running_loop()
        self._node = DdsNode(self.settings)
        if hasattr(os, "eventfd"):
            self._bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
            self._loop.add_reader(self._bell, self._rung)
        self._thread = Thread(target=self._take_all, name="narrowcast-multicast", daemon=True)
        self._thread.start()

    async def join(self, address: Address) -> None:
        """Returns once a sender has been found; if there is none, after a moment, for it may come later."""
        session = self._mine(address)
        if session in self._readers:
            return
        with self._lock:
            self._readers[session] = self._node.reader(partition(session))
            self._node.wake()
        reader = self._readers[session][0]
        await self._until(lambda: self._node.has_sender(reader))

    async def leave(self, address: Address) -> None:
        with self._lock:
            found = self._readers.pop(self._mine(address), None)
            if found is not None:
                self._node.drop(*found)

    async def prepare(self, address: Address) -> None:
        """Be ready to send to an address: receivers find the writer before the first frame."""
        session = self._mine(address)
        if session not in self._writers:
            self._writers[session] = self._node.writer(partition(session))

    async def forget(self, address: Address) -> None:
        """The opposite of `prepare`. What is still to be repaired goes with it; the log has it."""
        writer = self._writers.pop(self._mine(address), None)
        if writer is not None:
            _delete(writer)

    async def send(self, address: Address, data: bytes) -> None:
        await self.send_many(address, (data,))

    async def send_many(self, address: Address, frames: Sequence[bytes]) -> None:
        """Frames for one session that stand ready together, as few packets as they fit in."""
        session = address if address in self._writers else self._mine(address)
        if not self.settings.pack:
            for frame in frames:
                await self._send(session, frame, 1)
            return
        for packet, count in bundled(frames, self._most):
            await self._send(session, packet, count)

    def send_now(self, address: Address, frames: Sequence[bytes]) -> int:
        """The same as far as it goes without waiting: how many frames went."""
        session = address if address in self._writers else self._mine(address)
        writer, sent = self._writers.get(session), 0
        if writer is not None and self.settings.pack:
            for packet, count in bundled(frames, self._most):
                if not self._node.write(writer, packet):
                    break
                self._count_sent(session, packet, count)
                sent += count
        return sent

    async def _send(self, session: Multicast, data: bytes, frames: int) -> None:
        writer = self._writers.get(session)
        if writer is None:
            await self.prepare(session)
            writer = self._writers[session]
        if self._node.write(writer, data) or await self._try_again(writer, data):
            self._count_sent(session, data, frames)
        else:
            self.counts["frames dropped"] += frames
            self.counts[f"group {session.group} frames dropped"] += frames

    def _count_sent(self, session: Multicast, data: bytes, frames: int) -> None:
        self.counts["frames sent"] += frames
        self.counts["bytes sent"] += len(data)
        self.counts[f"group {session.group} frames sent"] += frames

    async def _try_again(self, writer: Any, data: bytes) -> bool:
        """The slowest receiver is behind. Wait for it, but after one wait in vain not for every frame."""
        self.counts["waits"] += 1
        end = self._loop.time() + self._patience
        if self._loop.time() < self._stuck_until:
            end = 0.0
        while self._loop.time() < end:
            await asyncio.sleep(0.001)
            if self._node.write(writer, data):
                return True
        self._stuck_until = self._loop.time() + self._patience
        return False

    async def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        try:
            await ended("multicast", self._end)
        finally:
            if self._bell is not None:
                self._loop.remove_reader(self._bell)
                if not self._thread.is_alive():
                    os.close(self._bell)
                self._bell = None

    def _end(self) -> None:
        """Deleting what a thread still waits at may never return: then all of it is left as it is."""
        self._node.wake()
        self._thread.join(PATIENCE_S - 1)
        if self._thread.is_alive():
            raise TransportError("the receiving thread did not stop", endpoint=self.settings.interface)
        for found in self._readers.values():
            self._node.drop(*found)
        for writer in self._writers.values():
            _delete(writer)
        self._readers.clear()
        self._writers.clear()
        self._node.close()

    # The receiving thread.

    def _take_all(self) -> None:
        while not self._closing:
            self._node.wait()
            taken = 0
            with self._lock:
                self._node.woken()
                for session, (reader, _) in self._readers.items():
                    taken += self._keep(session.group, self._node.take(reader, BURST))
            if taken and not self._scheduled and not self._closing:
                self._scheduled = True
                if self._bell is not None:
                    os.eventfd_write(self._bell, 1)
                else:
                    self._loop.call_soon_threadsafe(self._hand_over)

    def _keep(self, group: int, packets: list[bytes]) -> int:
        """Those that came for a group, until the loop has them; none beyond what may wait: its edge reads the log."""
        for packet in packets:
            if len(self._frames) < MOST_WAITING and self._came - self._gone < MOST_WAITING_BYTES:
                self._frames.append((group, packet))
                self._came += len(packet)
            else:
                self._overrun += 1
        return len(packets)

    def _rung(self) -> None:
        with suppress(BlockingIOError):
            os.eventfd_read(self._bell or 0)
        self._hand_over()

    def _hand_over(self) -> None:
        """In the loop: a burst at a time, so that others get their turn."""
        self._scheduled = False
        if self._overrun != self.counts["frames overrun"]:
            self.counts["frames overrun"] = self._overrun
        burst: list[bytes] = []
        size = 0
        while self._frames and len(burst) < BURST and size < BURST_BYTES:
            group, data = self._frames.popleft()
            size += len(data)
            self._gone += len(data)
            frames = unbundled(data)
            burst += frames
            self.counts["frames"] += len(frames)
            self.counts["packets"] += 1
            self.counts["bytes"] += len(data)
            self.counts[f"group {group} frames"] += len(frames)
        self._pass_on(burst)
        if self._frames:
            self._scheduled = True
            self._loop.call_soon(self._hand_over)

    def _pass_on(self, frames: list[bytes]) -> None:
        if self.receive_many is not None:
            self.receive_many(frames)
        else:
            for frame in frames:
                self._receive(frame)

    async def _until(self, found: Callable[[], bool]) -> None:
        end = self._loop.time() + self._discovery
        while not found() and self._loop.time() < end:
            await asyncio.sleep(0.005)

    def _mine(self, address: Address) -> Multicast:
        if not isinstance(address, Multicast):
            raise TransportError(f"multicast carries sessions only, not {address}", endpoint=str(address))
        self.settings.address(address.group)  # raises if it is not mapped
        return address


def _delete(writer: Any) -> None:
    publisher = writer.publisher
    writer.__del__()
    publisher.__del__()
