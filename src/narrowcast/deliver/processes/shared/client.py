"""The side of a process that shares an edge."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from narrowcast.deliver.parts.effects import Deliver, Subscribed
from narrowcast.deliver.parts.events import Consumed, Subscribe, Unsubscribe
from narrowcast.deliver.processes.shared.notes import effect_of, note_bytes, read_note
from narrowcast.errors import TransportError

AGAIN_S = 0.2


class SharedEdge:
    """To a connection what the driver of an edge of its own is. Goes on by itself when the edge starts again."""

    def __init__(self, path: Path, application: Callable[[Any], None]) -> None:
        self._path, self._application = path, application
        self._wanted: dict[str, Subscribe] = {}
        self._at: dict[str, dict[int, int]] = {}  # how far each subscription has got
        self._owed: Counter[str] = Counter()  # messages that came and were not consumed
        self._writer: asyncio.StreamWriter | None = None
        self._task: asyncio.Task[None] | None = None
        self.counts: Counter[str] = Counter()

    async def start(self) -> None:
        """TransportError: nobody listens there."""
        self._task = asyncio.ensure_future(self._run(await self._connect()))

    async def _connect(self) -> asyncio.StreamReader:
        try:
            reader, self._writer = await asyncio.open_unix_connection(self._path, limit=1 << 20)
        except OSError as error:
            why = error.strerror or error
            raise TransportError(
                f"no edge listens at {self._path}: {why}. Start narrowcast edge with socket under [edge] in its FILE",
                endpoint=str(self._path),
            ) from None
        return reader

    def tell(self, event: Subscribe | Unsubscribe | Consumed) -> None:
        """As to the driver of an edge."""
        if isinstance(event, Subscribe):
            self._wanted[event.subscription] = event
            self._at[event.subscription] = dict(event.position or {})
        elif isinstance(event, Unsubscribe):
            self._wanted.pop(event.subscription, None)
            self._at.pop(event.subscription, None)
            self._owed.pop(event.subscription, None)
        else:
            self._owed[event.subscription] -= event.messages
        self._write(event)

    def _write(self, event: Subscribe | Unsubscribe | Consumed) -> None:
        if isinstance(event, Subscribe):
            credit = (event.credit or 1 << 31) - self._owed[event.subscription]
            at = list(self._at[event.subscription].items())
            head: dict[str, Any] = {
                "subscribe": event.subscription,
                "profile": event.profile,
                "position": at,
                "credit": credit,
            }
        elif isinstance(event, Unsubscribe):
            head = {"unsubscribe": event.subscription}
        else:
            head = {"consumed": event.subscription, "messages": event.messages}
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(note_bytes(head))

    async def _run(self, reader: asyncio.StreamReader) -> None:
        while True:
            with suppress(asyncio.IncompleteReadError, OSError, ValueError, KeyError, TypeError):
                while True:
                    self._take(*await read_note(reader))
            self.counts["edge lost"] += 1
            await self._hang_up()
            while True:
                await asyncio.sleep(AGAIN_S)
                with suppress(TransportError):
                    reader = await self._connect()
                    break
            for event in self._wanted.values():
                self._write(event)

    def _take(self, head: dict[str, Any], body: bytes) -> None:
        if "refused" in head:
            self._application((head["refused"], TransportError(head["why"])))
            return
        effect = effect_of(head, body)
        known = self._at.get(effect.subscription)
        if known is None:
            return
        if isinstance(effect, Subscribed):
            for shard, at in effect.start.items():
                known.setdefault(shard, at)
        else:
            known[effect.shard] = effect.position if isinstance(effect, Deliver) else effect.upto
            if isinstance(effect, Deliver):
                self._owed[effect.subscription] += len(effect.messages)
                self.counts["delivered"] += len(effect.messages)
        self._application(effect)

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        await self._hang_up()

    async def _hang_up(self) -> None:
        if self._writer is not None:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()
