"""The side of the edge."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from narrowcast.deliver.parts.effects import Deliver, Effect, Gap, Subscribed
from narrowcast.deliver.parts.events import Consumed, Subscribe, Unsubscribe
from narrowcast.deliver.processes.drive import Driver
from narrowcast.deliver.processes.shared.notes import effect_notes, note_bytes, read_note
from narrowcast.errors import InputError, NarrowcastError, TransportError

log = logging.getLogger(__name__)

MOST_UNSENT = 64 << 20  # bytes that wait for a process which does not read; credit ends it sooner
WINDOW = 1 << 17  # messages of a subscription on their way to its process; more stay with the edge, whatever its credit
MOST_WAITING = 16 << 20  # bytes that wait for a process before no more is given to it


class EdgeServer:
    """Serves an edge to whoever connects to a socket. `allowed` narrows a profile to what the edge may see."""

    def __init__(
        self, path: Path, driver: Driver, allowed: Callable[[str], Any], others: Callable[[Effect], None]
    ) -> None:
        self._path, self._driver, self._allowed, self._others = path, driver, allowed, others
        self._owner: dict[str, asyncio.StreamWriter] = {}  # of each subscription
        self._served: set[asyncio.StreamWriter] = set()
        self._room: Counter[str] = Counter()  # of each subscription's window, that the edge may not use
        self._reserve: Counter[str] = Counter()  # credit that the edge has not been told of
        self._due: set[str] = set()
        self._draining: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self._server: asyncio.AbstractServer | None = None
        self.counts: Counter[str] = driver.counts

    async def start(self) -> None:
        """Listen. TransportError: the socket cannot be made."""
        with suppress(OSError):
            self._path.unlink()
        before = os.umask(0o177)
        try:
            self._server = await asyncio.start_unix_server(self._serve, self._path)
        except OSError as error:
            raise TransportError(f"the edge's socket cannot be made: {error}", endpoint=str(self._path)) from None
        finally:
            os.umask(before)

    def told(self, effect: Effect) -> None:
        """What the edge tells its applications: to whoever has the subscription."""
        writer = self._owner.get(getattr(effect, "subscription", ""))
        if writer is None or not isinstance(effect, Deliver | Gap | Subscribed):
            self._others(effect)
            return
        if writer.transport.get_write_buffer_size() > MOST_UNSENT:
            writer.transport.abort()  # it reads nothing, and asked for more than it has credit for
            return
        writer.writelines(effect_notes(effect))
        if isinstance(effect, Deliver) and effect.messages:
            self._room[effect.subscription] += len(effect.messages)
            self._renew_soon(effect.subscription)

    def _renew_soon(self, name: str) -> None:
        """Not now: the edge may have told more than this, which comes first."""
        if not self._due:
            asyncio.get_running_loop().call_soon(self._renew)
        self._due.add(name)

    def _renew(self) -> None:
        """Let the edge go on with those whose processes have taken what there was, as far as their credit goes."""
        due, self._due = self._due, set()
        for name in due:
            writer = self._owner.get(name)
            if writer is None or writer in self._draining:
                continue
            if writer.transport.get_write_buffer_size() > MOST_WAITING:
                self._draining[writer] = asyncio.ensure_future(self._drained(writer))
                continue
            more = min(self._room[name], self._reserve[name])
            if more > 0:
                self._room[name] -= more
                self._reserve[name] -= more
                self._driver.tell(Consumed(name, more))

    async def _drained(self, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await writer.drain()
        del self._draining[writer]
        for name, owner in self._owner.items():
            if owner is writer:
                self._renew_soon(name)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.counts["processes served"] += 1
        writer.transport.set_write_buffer_limits(MOST_WAITING)
        self._served.add(writer)
        mine: set[str] = set()
        try:
            while True:
                await self._take(*await read_note(reader), writer, mine)
        except (asyncio.IncompleteReadError, OSError):
            pass  # it went
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            self.counts["malformed notes"] += 1
            log.warning("%s: a process sent what is no note: %s", self._driver.part.name, error)
        finally:
            self._served.discard(writer)
            for name in mine:
                if self._owner.get(name) is writer:
                    self._disown(name)
            writer.close()

    async def _take(self, head: dict[str, Any], body: bytes, writer: asyncio.StreamWriter, mine: set[str]) -> None:
        if "subscribe" in head:
            name, credit = str(head["subscribe"]), int(head["credit"])
            position = {int(shard): int(at) for shard, at in head["position"]} or None
            try:
                profile = await self._allowed(str(head["profile"]))
                self._own(name, writer)
                self._room[name], self._reserve[name] = WINDOW - min(credit, WINDOW), max(credit - WINDOW, 0)
                self._driver.tell(Subscribe(name, profile, position, min(credit, WINDOW)))
            except NarrowcastError as error:
                writer.write(note_bytes({"refused": name, "why": str(error)}))
                return
            mine.add(name)
        elif "unsubscribe" in head:
            if self._owner.get(head["unsubscribe"]) is writer:
                mine.discard(head["unsubscribe"])
                self._disown(head["unsubscribe"])
        elif self._owner.get(head["consumed"]) is writer:
            self._reserve[head["consumed"]] += int(head["messages"])
            self._renew_soon(head["consumed"])

    def _own(self, name: str, writer: asyncio.StreamWriter) -> None:
        """A name is one process's; after a quick restart the one before it may still look alive."""
        before = self._owner.get(name)
        if before is not None and before is not writer and not before.is_closing():
            raise InputError(
                f"subscription must have a name of its own, got {name!r}, which another process has", name="name"
            )
        self._owner[name] = writer

    def _disown(self, name: str) -> None:
        del self._owner[name], self._room[name], self._reserve[name]
        self._driver.tell(Unsubscribe(name))

    def stop(self) -> None:
        """Nobody is served any more; whoever was may connect to the next edge."""
        if self._server is not None:
            self._server.close()
        for task in self._draining.values():
            task.cancel()
        for writer in tuple(self._served):
            writer.transport.abort()
        with suppress(OSError):
            self._path.unlink()
