"""Unicast and links on core NATS subjects: one subject per subscriber or node; a tree is entered at its root."""

from __future__ import annotations

from collections import Counter
from typing import Any

from narrowcast.deliver.routing.address import Address, Link, Overlay, Unicast
from narrowcast.deliver.transport.extra import engine
from narrowcast.deliver.transport.nats.link import NatsLink, tokens
from narrowcast.deliver.transport.protocols import Receive
from narrowcast.errors import TransportError


class NatsUnicast:
    """`Carrier` for `Unicast`, `Link` and `Overlay` addresses; with a `node`, links to it arrive here."""

    def __init__(self, link: NatsLink, node: str | None = None) -> None:
        self._link, self._node = link, node
        self._receive: Receive | None = None
        self._joined: dict[Address, Any] = {}
        self._subjects: dict[Address, str] = {}
        self.counts: Counter[str] = Counter()

    async def start(self, receive: Receive) -> None:
        self._receive = receive
        if self._node is not None:
            try:
                await self.join(Link(self._node))
            except TransportError:  # asked for, and not confirmed in time: no reason not to begin
                if Link(self._node) not in self._joined or self._link.nc.is_closed:
                    raise

    async def join(self, address: Address) -> None:
        if address in self._joined or isinstance(address, Overlay):  # a tree's frames come by links
            return
        subscription = await self._asked(self._link.nc.subscribe(self._subject(address), cb=self._heard), address)
        self._joined[address] = subscription
        await self._asked(self._link.nc.flush(timeout=2), address)

    async def leave(self, address: Address) -> None:
        subscription = self._joined.pop(address, None)
        if subscription is not None and not self._link.nc.is_closed:
            await self._asked(subscription.unsubscribe(), address)

    async def send(self, address: Address, data: bytes) -> None:
        subject = self._subjects.get(address) or self._subject(address)
        self.counts["frames sent"] += 1
        self.counts["bytes sent"] += len(data)
        await self._asked(self._link.nc.publish(subject, data), address)

    async def close(self) -> None:
        for address in list(self._joined):
            await self.leave(address)

    async def _heard(self, message: Any) -> None:
        assert self._receive is not None
        self.counts["frames"] += 1
        self.counts["bytes"] += len(message.data)
        self._receive(message.data)

    def _subject(self, address: Address) -> str:
        if isinstance(address, Unicast):
            subject = f"{self._link.system}.to.{tokens(address.name)}"
        elif isinstance(address, Link | Overlay):
            node = address.node if isinstance(address, Link) else address.root
            subject = f"{self._link.system}.node.{tokens(node)}"
        else:
            raise TransportError(f"NATS carries unicast only, not {address}", endpoint=str(address))
        self._subjects[address] = subject
        return subject

    async def _asked(self, asked: Any, address: Address) -> Any:
        try:
            return await asked
        except (engine("nats").errors.Error, TimeoutError, OSError) as error:
            why = str(error) or type(error).__name__
            raise TransportError(f"NATS does not carry {address}: {why}", endpoint=str(address)) from None
