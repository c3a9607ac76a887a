"""A place for entries that are not in the log yet, on JetStream: one stream, a subject for each pile.

A pile's name has parts joined by dots, so that all piles whose names begin alike can be dropped at once.
Nobody else reads it, nothing in it has an order between piles, and what is dropped is gone.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from narrowcast.deliver.transport.extra import engine
from narrowcast.deliver.transport.nats.direct import DirectGet, why
from narrowcast.deliver.transport.nats.link import NatsLink
from narrowcast.deliver.transport.protocols import Entry
from narrowcast.errors import TransportError


class NatsStage:
    """Piles of entries, kept until they are dropped."""

    def __init__(self, link: NatsLink, *, replicas: int = 1, timeout: float = 5.0) -> None:
        self._link, self._replicas, self._timeout = link, replicas, timeout
        self._stream = f"{link.system}-stage"
        self._direct = DirectGet(link, timeout)

    async def start(self) -> None:
        """Make the stream unless it is there."""
        api, errors, nats = engine("nats.js.api"), engine("nats.js.errors"), engine("nats")
        config = api.StreamConfig(
            name=self._stream,
            subjects=[f"{self._link.system}.stage.>"],
            storage=api.StorageType.FILE,
            allow_direct=True,
            num_replicas=self._replicas,
        )
        try:
            await self._link.js.add_stream(config)
        except errors.BadRequestError:
            pass  # it is there, set up in another way
        except (nats.errors.Error, TimeoutError) as error:
            raise TransportError(f"NATS refused the stage: {why(error)}", endpoint=self._stream) from None
        await self._direct.start()

    async def put(self, pile: str, data: bytes, *, dedup: str) -> int:
        """Put an entry on a pile; its number once it is durable. The same `dedup` soon after gives it again."""
        subject, headers = self._subject(pile), {"Nats-Msg-Id": dedup}
        try:
            return await self._link.append(subject, data, self._timeout, headers)
        except (engine("nats").errors.Error, TimeoutError, OSError) as error:
            raise TransportError(f"the stage did not accept the entry: {why(error)}", endpoint=self._stream) from None

    async def read(self, pile: str, first: int, *, most: int = 64) -> AsyncGenerator[Entry, None]:
        """The entries of a pile from a number on, in the order in which they were put there."""
        while True:
            entries = await self._direct.fetch(self._stream, first, most, subject=self._subject(pile))
            for entry in entries:
                yield entry
            if not entries:
                return
            first = entries[-1].sequence + 1

    async def drop(self, piles: str) -> None:
        """Remove every pile whose name begins with these parts."""
        try:
            await self._link.js.purge_stream(self._stream, subject=f"{self._subject(piles)}.>")
        except (engine("nats").errors.Error, TimeoutError, OSError) as error:
            raise TransportError(f"the stage could not be cleared: {why(error)}", endpoint=self._stream) from None

    def _subject(self, pile: str) -> str:
        return f"{self._link.system}.stage.{pile}"
