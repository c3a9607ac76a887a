"""JetStream's direct get in batches: one request, many answers to one inbox, told apart by their subject's last part.

No consumer to make, to keep or to lose, and twice as fast as an ordered consumer (20,000 entries/s
against 9,400, 5 kB each, in one run).
"""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

from narrowcast.deliver.transport.extra import engine
from narrowcast.deliver.transport.nats.at_once import listen_at_once
from narrowcast.deliver.transport.nats.link import NatsLink
from narrowcast.deliver.transport.protocols import Entry
from narrowcast.errors import TransportError

MOST_READ_BYTES = 4 << 20


class DirectGet:
    """Reads stretches of streams. `start` once before the first."""

    def __init__(self, link: NatsLink, timeout: float) -> None:
        self._link, self._timeout = link, timeout
        self._inbox = ""
        self._open: dict[str, _Batch] = {}
        self._numbers = itertools.count()

    async def start(self) -> None:
        self._inbox = self._link.nc.new_inbox()
        await listen_at_once(self._link.nc, f"{self._inbox}.*", self._answer)

    async def fetch(self, stream: str, sequence: int, count: int, *, subject: str | None = None) -> list[Entry]:
        """At most `count` entries from a sequence number on, of one subject or of all."""
        nats = engine("nats")
        token = str(next(self._numbers))
        batch = self._open[token] = _Batch()
        request: dict[str, Any] = {"seq": sequence, "batch": count, "max_bytes": MOST_READ_BYTES}
        if subject is not None:
            request["next_by_subj"] = subject
        try:
            await self._link.nc.publish(
                f"$JS.API.DIRECT.GET.{stream}", json.dumps(request).encode(), reply=f"{self._inbox}.{token}"
            )
            await asyncio.wait_for(batch.done, self._timeout)
        except (nats.errors.Error, TimeoutError, OSError) as error:
            raise TransportError(f"the log does not answer: {why(error)}", endpoint=stream) from None
        finally:
            del self._open[token]
        return batch.entries

    def _answer(self, message: Any) -> None:
        batch = self._open.get(message.subject.rpartition(".")[2])
        if batch is not None:
            batch.take(message)


class _Batch:
    """The answers to one direct get: entries, then a message with a status."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def take(self, message: Any) -> None:
        headers = message.headers
        status = headers.get("Status") if headers else "503"
        if status is None:
            self.entries.append(Entry(int(headers["Nats-Sequence"]), message.data, headers.get("Nats-Time-Stamp", "")))
        elif not self.done.done():
            if status in ("204", "404"):
                self.done.set_result(None)
            else:
                self.done.set_exception(TransportError(f"the log refused the read (status {status})"))


def why(error: BaseException) -> str:
    """What an error says, or at least what it is."""
    return str(error) or type(error).__name__
