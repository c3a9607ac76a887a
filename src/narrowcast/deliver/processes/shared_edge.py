"""An edge that other processes of its host share, by a socket: frames are taken, opened and matched once for all of them.

Whoever connects says what it wants, as the application of an edge of its own would, and gets what that would get. What
it stored lets it go on exactly, so nothing is lost when either side starts anew. The socket is a file that only its owner
may open; on it, each note is the sizes of a JSON text and of the bytes that belong to it, and those.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from array import array
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, Any

from narrowcast.deliver.parts.effects import Deliver, Effect, Gap, Subscribed
from narrowcast.deliver.parts.events import Consumed, Subscribe, Unsubscribe
from narrowcast.errors import InputError, NarrowcastError, TransportError

if TYPE_CHECKING:
    from narrowcast.deliver.processes.drive import Driver

log = logging.getLogger(__name__)

_SIZES = Struct(">II")
MOST_NOTE = 64 << 20
MOST_UNSENT = 64 << 20  # bytes that wait for a process which does not read; credit ends it sooner
AGAIN_S = 0.2
_LOW = 64

Note = tuple[dict[str, Any], bytes]


# Notes.


def note_bytes(head: Mapping[str, Any], body: bytes = b"") -> bytes:
    """A note as bytes."""
    text = json.dumps(head, separators=(",", ":")).encode()
    return b"".join((_SIZES.pack(len(text), len(body)), text, body))


async def read_note(stream: asyncio.StreamReader) -> Note:
    """The next note. IncompleteReadError at the end, ValueError for what is none."""
    text, size = _SIZES.unpack(await stream.readexactly(_SIZES.size))
    if text + size > MOST_NOTE:
        raise ValueError(f"a note must have at most {MOST_NOTE} bytes, got {text + size}")
    head = json.loads(await stream.readexactly(text))
    if not isinstance(head, dict):
        raise ValueError("a note must be an object")
    return head, await stream.readexactly(size)


def effect_notes(effect: Deliver | Gap | Subscribed) -> list[bytes]:
    """What an edge tells an application, as notes."""
    if isinstance(effect, Subscribed):
        return [note_bytes({"subscribed": effect.subscription, "start": list(effect.start.items())})]
    if isinstance(effect, Gap):
        told = [effect.subscription, effect.shard, effect.after, effect.upto, effect.reason]
        return [note_bytes({"gap": told})]
    head = {"of": effect.subscription, "shard": effect.shard}
    columns = getattr(effect.messages, "columns", None)
    if columns is not None:
        indices = columns.indices.astype("<u2").tobytes()
        more = {"base": columns.base, "rows": len(columns), "position": effect.position}
        return [note_bytes(head | more, indices + columns.data)]
    found = []
    runs = [(born, list(some)) for born, some in groupby(effect.messages, key=lambda message: message[0] >> _LOW)]
    for k, (born, some) in enumerate(runs or [(0, [])]):
        places = array("Q", (at & ((1 << _LOW) - 1) for at, _ in some))
        sizes = array("I", (len(payload) for _, payload in some))
        position = effect.position if k >= len(runs) - 1 else some[-1][0]
        more = {"born": born, "count": len(some), "position": position}
        found.append(note_bytes(head | more, b"".join((places.tobytes(), sizes.tobytes(), *(p for _, p in some)))))
    return found


def effect_of(head: Mapping[str, Any], body: bytes) -> Deliver | Gap | Subscribed:
    """The opposite. ValueError, KeyError or TypeError for what is no such note."""
    if "subscribed" in head:
        return Subscribed(head["subscribed"], {int(shard): int(at) for shard, at in head["start"]})
    if "gap" in head:
        return Gap(*head["gap"])
    if "base" in head:
        import numpy as np

        from narrowcast.deliver.wire.columns import ColumnRows, Columns

        n = head["rows"]
        rows = Columns(head["base"], np.frombuffer(body, "<u2", n).astype(np.int64), None, body[2 * n :])
        if not rows.is_whole():
            raise ValueError("the columns are damaged")
        return Deliver(head["of"], head["shard"], ColumnRows(rows), head["position"])
    n, born = head["count"], head["born"] << _LOW
    places, sizes = array("Q", body[: 8 * n]), array("I", body[8 * n : 12 * n])
    messages, start = [], 12 * n
    for at, size in zip(places, sizes, strict=True):
        messages.append((at | born, body[start : start + size]))
        start += size
    return Deliver(head["of"], head["shard"], tuple(messages), head["position"])


# The edge's side.


class EdgeServer:
    """Serves an edge's subscriptions to whoever connects to a socket. `allowed` narrows a profile to what may be seen."""

    def __init__(
        self, path: Path, driver: Driver, allowed: Callable[[str], Any], others: Callable[[Effect], None]
    ) -> None:
        self._path, self._driver, self._allowed, self._others = path, driver, allowed, others
        self._owner: dict[str, asyncio.StreamWriter] = {}  # of each subscription
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
        for note in effect_notes(effect):
            writer.write(note)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.counts["processes served"] += 1
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
            for name in mine:
                if self._owner.get(name) is writer:
                    del self._owner[name]
                    self._driver.tell(Unsubscribe(name))
            writer.close()

    async def _take(self, head: dict[str, Any], body: bytes, writer: asyncio.StreamWriter, mine: set[str]) -> None:
        if "subscribe" in head:
            name, credit = str(head["subscribe"]), int(head["credit"])
            position = {int(shard): int(at) for shard, at in head["position"]} or None
            try:
                profile = await self._allowed(str(head["profile"]))
                self._own(name, writer)
                self._driver.tell(Subscribe(name, profile, position, credit))
            except NarrowcastError as error:
                writer.write(note_bytes({"refused": name, "why": str(error)}))
                return
            mine.add(name)
        elif "unsubscribe" in head:
            if self._owner.get(head["unsubscribe"]) is writer:
                del self._owner[head["unsubscribe"]]
                mine.discard(head["unsubscribe"])
                self._driver.tell(Unsubscribe(head["unsubscribe"]))
        elif self._owner.get(head["consumed"]) is writer:
            self._driver.tell(Consumed(head["consumed"], int(head["messages"])))

    def _own(self, name: str, writer: asyncio.StreamWriter) -> None:
        """A name is one process's; after a quick restart the one before it may still look alive."""
        before = self._owner.get(name)
        if before is not None and before is not writer and not before.is_closing():
            raise InputError(
                f"subscription must have a name of its own, got {name!r}, which another process has", name="name"
            )
        self._owner[name] = writer

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for writer in set(self._owner.values()):
                writer.transport.abort()
        with suppress(OSError):
            self._path.unlink()


# The side of a process that shares it.


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
                f"no edge listens at {self._path}: {why}. Start one: narrowcast edge --config FILE, with socket under [edge]",
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
        if self._writer is not None:
            self._writer.close()
