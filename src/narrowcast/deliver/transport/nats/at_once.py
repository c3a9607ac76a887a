"""NATS without detours: what is sent is written at once, what arrives is handed over where it is read.

The library has a task that writes, one for each subscription that hands over, and one for each answer that somebody
waits for: turns of the loop that a message waits for, and half of what it costs. These calls do what the library does
inside, in its own order, and go back to its way where it has changed.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from typing import Any

from narrowcast.deliver.transport.extra import engine

log = logging.getLogger(__name__)
HEAD = b"NATS/1.0\r\n"


async def listen_at_once(connection: Any, subject: str, heard: Callable[[Any], None]) -> Any:
    """Have `heard` called for each message of a subject, before the next one is read. It must not take long."""
    subscription = await connection.subscribe(subject, pending_bytes_limit=0)
    before = getattr(subscription, "_pending_queue", None)
    if not isinstance(before, asyncio.Queue):
        await subscription.unsubscribe()

        async def take(message: Any) -> None:
            heard(message)

        return await connection.subscribe(subject, cb=take)
    subscription._pending_queue = _AtOnce(heard)
    while not before.empty():
        subscription._pending_queue.put_nowait(before.get_nowait())
    return subscription


class _AtOnce(asyncio.Queue[Any]):
    """A queue that never holds anything: whoever puts something in has it dealt with."""

    def __init__(self, heard: Callable[[Any], None]) -> None:
        super().__init__()
        self._heard = heard

    def put_nowait(self, item: Any) -> None:
        try:
            self._heard(item)
        except Exception:  # the library's reader would end with it
            log.exception("a message of NATS could not be dealt with")


class Requests:
    """Questions over one connection, whose answers come to one inbox."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._numbers = itertools.count()
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._inbox = ""
        self._starting = asyncio.Lock()

    async def ask(self, subject: str, data: bytes, timeout: float, headers: dict[str, str] | None = None) -> bytes:
        """The answer's data. Raises what the library's own `request` does."""
        if not self._inbox:
            await self._start()
        loop = asyncio.get_running_loop()
        token = str(next(self._numbers))
        answer = self._waiting[token] = loop.create_future()
        late = loop.call_later(timeout, self._give_up, token)
        try:
            await _write(self._connection, subject, f"{self._inbox}.{token}", data, headers or {})
            found = await answer
        finally:
            late.cancel()
            self._waiting.pop(token, None)
        if found.headers and found.headers.get("Status") == "503":
            raise engine("nats").errors.NoRespondersError
        result: bytes = found.data
        return result

    async def _start(self) -> None:
        async with self._starting:
            if not self._inbox:
                inbox = self._connection.new_inbox()
                await listen_at_once(self._connection, f"{inbox}.*", self._heard)
                self._inbox = inbox

    def _heard(self, message: Any) -> None:
        answer = self._waiting.get(message.subject.rpartition(".")[2])
        if answer is not None and not answer.done():
            answer.set_result(message)

    def _give_up(self, token: str) -> None:
        answer = self._waiting.get(token)
        if answer is not None and not answer.done():
            answer.set_exception(engine("nats").errors.TimeoutError())


def header_lines(raw: bytes) -> dict[str, str]:
    """Headers as the library reads them, in a fifth of its time.

    >>> header_lines(b"Nats-Sequence: 7\\r\\nNats-Subject:a.b\\r\\n\\r\\n")
    {'Nats-Sequence': '7', 'Nats-Subject': 'a.b'}
    """
    lines = (line.partition(":") for line in raw.decode("utf-8", "replace").split("\r\n"))
    return {name.strip(): value.strip() for name, colon, value in lines if colon}


async def _write(connection: Any, subject: str, reply: str, data: bytes, headers: dict[str, str]) -> None:
    """Publish, behind all that waits to be written. Without a connection it waits for one, as the library has it."""
    errors, command = engine("nats").errors, engine("nats.protocol.command")
    if connection.is_closed:
        raise errors.ConnectionClosedError
    if len(data) > connection.max_payload:
        raise errors.MaxPayloadError
    if headers:
        lines = b"".join(f"{name}: {value}\r\n".encode() for name, value in headers.items())
        text = command.hpub_cmd(subject, reply, b"".join((HEAD, lines, b"\r\n")), data)
    else:
        text = command.pub_cmd(subject, reply, data)
    waiting = [*connection._pending, text]
    if connection.is_connected and isinstance(connection._transport, engine("nats.aio.transport").TcpTransport):
        connection._pending, connection._pending_data_size = [], 0
        connection._transport.writelines(waiting)
    else:
        await connection._send_command(text)
        await connection._flush_pending()
