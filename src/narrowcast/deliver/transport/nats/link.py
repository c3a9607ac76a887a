"""One connection to NATS, shared by log, registry and unicast carrier. It comes back by itself."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from narrowcast.deliver.transport.extra import engine
from narrowcast.deliver.transport.protocols import FinalError
from narrowcast.deliver.transport.retry import PATIENCE_S, retried
from narrowcast.errors import TransportError

log = logging.getLogger(__name__)
CLOSE_S = 5.0
ANSWER_S = 5  # for each step of connecting
IN_USE, NO_CLUSTER = 10058, 10074


class NatsLink:
    """A connection; `system` keeps several narrowcast systems on one server apart."""

    def __init__(self, connection: Any, system: str) -> None:
        self.nc = connection
        self.js = connection.jetstream(timeout=2.0)
        self.system = system
        self.reconnects = 0
        self._again: list[Callable[[], None]] = []

    def on_reconnect(self, call: Callable[[], None]) -> Callable[[], None]:
        """Have `call` called after each reconnection; returns how to stop that."""
        self._again.append(call)
        return lambda: self._again.remove(call) if call in self._again else None

    async def publish(self, subject: str, data: bytes) -> None:
        """Tell whoever listens, if anybody does."""
        try:
            await self.nc.publish(f"{self.system}.{subject}", data)
        except (engine("nats").errors.Error, OSError) as error:
            raise TransportError(f"NATS did not accept the message: {error}", endpoint=subject) from None

    async def listen(self, subject: str, heard: Callable[[bytes], None]) -> None:
        async def take(message: Any) -> None:
            heard(message.data)

        await self.nc.subscribe(f"{self.system}.{subject}", cb=take)

    async def replicate(self, stream: str, replicas: int) -> None:
        """Keep a stream that is there on at least so many servers."""
        found = (await self.js.stream_info(stream)).config
        if (found.num_replicas or 1) < replicas:
            found.num_replicas = replicas
            await self.js.update_stream(found)

    async def _reconnected(self) -> None:
        self.reconnects += 1
        for call in list(self._again):
            call()

    async def close(self) -> None:
        if not self.nc.is_closed:
            with suppress(TimeoutError):  # a server that is stopped takes nothing and refuses nothing
                await asyncio.wait_for(self.nc.close(), CLOSE_S)


async def connect_nats(url: str, *, system: str = "nc", name: str = "", patience: float = PATIENCE_S) -> NatsLink:
    """Connect, trying for `patience` seconds, or say in one line why not. Once connected it reconnects for ever."""
    return await retried(lambda: dial(url, system=system, name=name), endpoint(url), patience)


async def dial(url: str, *, system: str = "nc", name: str = "") -> NatsLink:
    """Try once to connect. FinalError: NATS answers and does not let us in."""
    nats = engine("nats")
    place = endpoint(url)
    link: list[NatsLink] = []

    async def reconnected() -> None:
        if link:
            await link[0]._reconnected()

    async def failed(error: Exception) -> None:
        if not link:
            raise error  # the library would go on for ever, without a pause that grows
        log.info("NATS connection error at %s: %s", place, error or type(error).__name__)

    async def disconnected() -> None:
        # What was not sent goes to no other server: that one may have another log. Whoever waits asks again.
        connection._pending, connection._pending_data_size = [], 0

    connection = nats.NATS()
    try:
        await connection.connect(
            servers=[part.strip() for part in url.split(",")],
            name=name,
            allow_reconnect=True,
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.1,
            connect_timeout=ANSWER_S,
            ping_interval=5,
            max_outstanding_pings=2,
            pending_size=64 << 20,
            disconnected_cb=disconnected,
            reconnected_cb=reconnected,
            error_cb=failed,
        )
    except BaseException as error:
        with suppress(Exception):
            await connection.close()
        if not isinstance(error, TimeoutError | OSError | nats.errors.Error):
            raise
        why = str(error) or "no answer"
        kind = FinalError if "authorization" in why.lower() else TransportError
        raise kind(f"cannot reach NATS at {place}: {why}", endpoint=place) from None
    link.append(NatsLink(connection, system))
    return link[0]


def refusal(what: str, error: BaseException, place: str) -> TransportError:
    """That NATS refused to set something up, and whether it is worth another try."""
    why = getattr(error, "description", None) or str(error) or type(error).__name__
    kind = FinalError if getattr(error, "err_code", None) == NO_CLUSTER else TransportError
    return kind(f"NATS refused {what}: {why}", endpoint=place)


def endpoint(url: str) -> str:
    """Host and port of a URL, without its credentials.

    >>> endpoint("nats://me:secret@10.0.0.1:4222")
    '10.0.0.1:4222'
    """
    parts = [urlsplit(part.strip() if "//" in part else f"//{part.strip()}") for part in url.split(",")]
    return ",".join(f"{part.hostname}:{part.port or 4222}" for part in parts)
