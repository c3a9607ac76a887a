"""The client library: publish and subscribe in a few lines, from coroutines or from plain code.

async with narrowcast.connect("nats://…") as c:
    await c.publish([{"symbol": "IBM", "price": 101}])
    async for batch in c.subscribe("symbol = 'IBM' AND price > 100"):
        print(batch[0], batch.position)

with narrowcast.connect() as c:              # the same, without coroutines
    for batch in c.subscribe("price > 100"):
        print(batch.arrow())
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import secrets
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

from narrowcast.deliver.client.rows import ColumnChunk, MessageBatch, Rows, entries
from narrowcast.deliver.parts import records
from narrowcast.deliver.parts.edge import Edge, EdgeSettings
from narrowcast.deliver.parts.effects import Acked, Deliver, Effect, Gap, Rejected, Subscribed, Unsure
from narrowcast.deliver.parts.events import Consumed, Publish, PublishColumns, Subscribe, Unsubscribe
from narrowcast.deliver.parts.publisher import Publisher, PublisherSettings
from narrowcast.deliver.processes.backbone import Backbone, backbone, keys_beside, url_of
from narrowcast.deliver.processes.drive import Driver, Engines
from narrowcast.deliver.processes.overview import WAYS
from narrowcast.deliver.processes.shared.client import SharedEdge
from narrowcast.deliver.processes.statistics import report_for_ever
from narrowcast.deliver.transport.retry import PATIENCE_S
from narrowcast.deliver.transport.zmq.keys import CLIENTS
from narrowcast.deliver.wire import end_of
from narrowcast.deliver.wire.entry import ENTRY_BYTES
from narrowcast.errors import InputError, TransportError
from narrowcast.profiles import Profile

if TYPE_CHECKING:
    from narrowcast.deliver.client.plain import SyncConnection

log = logging.getLogger(__name__)

MOST_WAITING = 64  # batches published and not acknowledged before `publish` waits
PARTS = 8  # credit goes back to the edge in parts so large, for each time is a step of the edge
_ANSWERS = (Acked, Unsure, Rejected)
_OF_SUBSCRIPTION = (Deliver, Gap, Subscribed)


def connect(
    url: str | Path | None = None,
    *,
    name: str | None = None,
    system: str = "nc",
    interface: str | None = None,
    gateway: str | None = None,
    keys: str | Path | None = None,
    multicast: bool = True,
    patience: float = PATIENCE_S,
    edge: str | Path | None = None,
) -> Connection:
    """A connection to a running system: `async with` or `with`.

    Parameters
    ----------
    url : that of NATS (nats://user:password@host:port, several with commas), or the data folder of `narrowcast up`
    name : what this process is called in the system; by default host, process and a random part
    system : the name of the system, where several share a server
    interface : where multicast comes in on this host, if it has another name than elsewhere
    gateway : the broker through which overlay channels come
    keys : the folder with the key that admits us there; by default that of the data folder
    multicast : without it everything comes by unicast or from the log
    patience : for how many seconds a server that does not answer is tried again
    edge : the socket of a `narrowcast edge` on this host, through which subscriptions come that share it with others

    Returns
    -------
    Connection : `publish` and `subscribe`, once it is entered

    Raises
    ------
    InputError : the folder has no system, or the URL is none; TransportError on entering where nobody answers

    Example
    -------
        with nc.connect(".narrowcast") as client:
            client.publish([{"symbol": "IBM", "price": 101}])
    """
    folder = Path(keys) if keys is not None else keys_beside(url)
    return Connection(url_of(url), name or _new_name(), system, interface, gateway, folder, multicast, patience, edge)


def _new_name() -> str:
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}"


class Connection:
    """Publishes and subscribes. Made by `connect`."""

    def __init__(
        self,
        url: str,
        name: str,
        system: str,
        interface: str | None,
        gateway: str | None,
        keys: Path,
        multicast: bool,
        patience: float,
        edge: str | Path | None = None,
    ) -> None:
        self._shared = None if edge is None else Path(edge)
        self.name, self._keys, self._patience = name, keys, patience
        self._url, self._system, self._interface, self._gateway = url, system, interface, gateway
        self._multicast = multicast
        self._tokens = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Acked]] = {}
        self._subscriptions: dict[str, Subscription] = {}
        self._client: Driver | None = None
        self._edge: Driver | SharedEdge | None = None
        self._reports: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._sync: SyncConnection | None = None
        self._lacked: set[str] = set()

    # Life.

    async def __aenter__(self) -> Connection:
        self._backbone: Backbone = await backbone(
            self._url, name=self.name, system=self._system, interface=self._interface, patience=self._patience
        )
        self.name = self._backbone.owned(self.name)
        self._backbone.link.on_refused = self._refused
        return self

    async def __aexit__(self, *_: object) -> None:
        for subscription in list(self._subscriptions.values()):
            await subscription.close()
        if self._reports is not None:
            self._reports.cancel()
        for driver in (self._client, self._edge):
            if driver is not None:
                with suppress(TransportError):
                    await driver.stop()
        if isinstance(self._edge, Driver):
            with suppress(TransportError):
                await self._backbone.registry.delete(records.named(records.NODE, self.name))
        await self._backbone.close()

    def __enter__(self) -> SyncConnection:
        from narrowcast.deliver.client.plain import SyncConnection

        self._sync = SyncConnection(self)
        return self._sync.open()

    def __exit__(self, *_: object) -> None:
        assert self._sync is not None
        self._sync.close()

    def _refused(self, why: str) -> None:
        """The account was revoked: whoever waits is told, rather than left waiting."""
        error = TransportError(why)
        for subscription in self._subscriptions.values():
            subscription._take(error)
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)
        self._waiting.clear()

    # Publishing.

    async def publish(self, rows: Rows, *, shard: int | None = None) -> int:
        """Send dicts, an Arrow table or a pandas DataFrame; returns how many, once all of them are in the durable log.

        A row means the same whichever way it is sent. Tables go as columns, which is many times as cheap, and so do
        long lists of dicts with the same names and types.

        From then on they are promised to every subscription acknowledged before. Messages of one
        connection keep their order. If one cannot be sent, InputError says which attribute is wrong, and none is.
        """
        at, limits = self._shard(shard), self._limits()
        ready = list(entries(rows, self._backbone.system.key, self._lacks, limits))
        driver = await self._publisher()
        count = 0
        waiting: list[asyncio.Future[Acked]] = []
        for chunk in ready:
            count += chunk.n_rows if isinstance(chunk, ColumnChunk) else len(chunk)
            waiting.append(self._send(driver, at, chunk))
            if len(waiting) >= MOST_WAITING:
                await waiting.pop(0)
        for acked in waiting:
            await acked
        return count

    def _shard(self, given: int | None) -> int:
        """Where to publish: always the same shard, so that messages keep their order."""
        shards = self._backbone.system.shards
        at = crc32(self.name.encode()) % shards if given is None else given
        if at not in range(shards):
            raise InputError(f"shard must be from 0 to {shards - 1}, got {at!r}", name="shard", got=at)
        return at

    def _limits(self) -> PublisherSettings:
        """What the log takes, as the server of now has it."""
        return _limits_of(self._backbone.most_bytes - ENTRY_BYTES)

    def _lacks(self, name: str) -> None:
        """Said once: such messages are delivered, but the plan has no channel for them."""
        if name not in self._lacked:
            self._lacked.add(name)
            log.warning(
                "messages have no attribute %r, which makes a message's flow in this system's plan: "
                "they go to everybody who may want them",
                name,
            )

    @property
    def ways(self) -> dict[str, int]:
        """How many messages came which way: by a planned channel, by the rest channel, from the log."""
        counts: Mapping[str, int] = self._edge.part.counts if isinstance(self._edge, Driver) else {}
        return {way: counts.get(count, 0) for way, count in WAYS.items()}

    def _send(self, driver: Driver, shard: int, chunk: tuple[bytes, ...] | ColumnChunk) -> asyncio.Future[Acked]:
        token = next(self._tokens)
        future = self._waiting[token] = asyncio.get_running_loop().create_future()
        if isinstance(chunk, ColumnChunk):
            driver.tell(PublishColumns(token, shard, chunk.n_rows, chunk.data))
        else:
            driver.tell(Publish(token, shard, chunk))
        return future

    async def _publisher(self) -> Driver:
        async with self._starting:
            if self._client is None:
                part = Publisher(self._backbone.owned(f"{self.name}-{secrets.token_hex(4)}"), self._limits())
                engines = Engines(self._backbone.numbered, self._backbone.registry, {}, self._backbone.system.number)
                self._client = Driver(part, engines, application=self._told)
                await self._client.start()
        return self._client

    # Subscribing.

    def subscribe(
        self,
        profile: str | Profile,
        *,
        name: str | None = None,
        position: Mapping[int, int] | None = None,
        from_start: bool = False,
        credit: int = 20_000,
    ) -> Subscription:
        """What matches a profile from now on, as batches, without an end.

        With a `name` and the `position` of its last batch, a subscription goes on where it was. `from_start`
        begins with the oldest message that the log still has, where no `position` says otherwise.
        `credit` is how many messages may wait here; more stay in the log until these are dealt with.
        """
        text = profile.text if isinstance(profile, Profile) else Profile.parse(profile).text
        if from_start and not position:
            position = dict.fromkeys(self._backbone.system.every_shard, end_of(0))
        called = self._backbone.owned(name or f"{self.name}-{next(self._tokens)}")
        return Subscription(self, called, text, position, credit)

    async def _open(self, subscription: Subscription) -> None:
        subscription.profile = await self._backbone.allowed(subscription.profile)
        async with self._starting:
            if self._edge is None and self._shared is not None:
                self._edge = SharedEdge(self._shared, self._told)
                await self._edge.start()
            elif self._edge is None:
                part = Edge(self.name, self._backbone.system.every_shard, EdgeSettings(), gateway=self._gateway)
                self._backbone.sealing(part)
                links = self._backbone.overlay(self.name, self._keys, key=CLIENTS) if self._gateway else None
                engines = self._backbone.engines(self.name, multicast=self._multicast, overlay=links)
                self._edge = driver = Driver(part, engines, application=self._told)
                await driver.start()
                self._reports = asyncio.ensure_future(report_for_ever(self._backbone, driver))
        self._subscriptions[subscription.name] = subscription
        self._edge.tell(
            Subscribe(subscription.name, subscription.profile, subscription.position or None, subscription.credit)
        )

    # What the parts tell the application.

    def _told(self, effect: Effect | tuple[str, TransportError]) -> None:
        if isinstance(effect, _OF_SUBSCRIPTION):
            subscription = self._subscriptions.get(effect.subscription)
            if subscription is not None:
                subscription._take(effect)
        elif isinstance(effect, _ANSWERS):
            future = self._waiting.pop(effect.token, None)
            if future is not None and not future.done():
                _answer(future, effect)
        elif isinstance(effect, tuple):
            name, error = effect
            if name in self._subscriptions:
                self._subscriptions[name]._take(error)

    async def _close(self, subscription: Subscription) -> None:
        if self._subscriptions.pop(subscription.name, None) is None or self._edge is None:
            return
        self._edge.tell(Unsubscribe(subscription.name))
        if self._shared is not None:
            return  # the edge sees to it
        with suppress(TransportError):
            await self._backbone.registry.delete(records.named(records.SUBSCRIPTION, subscription.name))


@cache
def _limits_of(entry: int) -> PublisherSettings:
    usual = PublisherSettings()
    return replace(usual, most_bytes=min(usual.most_bytes, entry * 3 // 4), most_payload=min(usual.most_payload, entry))


def _answer(future: asyncio.Future[Acked], effect: Acked | Unsure | Rejected) -> None:
    """Tell whoever waits for an acknowledgement what came of it."""
    if isinstance(effect, Acked):
        future.set_result(effect)
    elif isinstance(effect, Rejected):
        future.set_exception(TransportError(effect.reason))
    else:
        future.set_exception(
            TransportError("the log did not answer in time: it is unknown whether it has the messages")
        )


class Subscription(AsyncIterator[MessageBatch]):
    """Batches as they come. `await ready()` returns once it is acknowledged, which iterating does too."""

    def __init__(
        self, connection: Connection, name: str, profile: str, position: Mapping[int, int] | None, credit: int
    ) -> None:
        self.name, self.profile, self.credit = name, profile, credit
        self.position: dict[int, int] = dict(position or {})
        self.start: Mapping[int, int] = {}
        self._connection = connection
        self._queue: asyncio.Queue[Deliver | Gap | TransportError] = asyncio.Queue()
        self._acknowledged: asyncio.Event = asyncio.Event()
        self._opened = False
        self._owed = 0

    async def ready(self, timeout: float | None = None) -> Subscription:
        """Everything acknowledged from now on, and that matches, will come."""
        if not self._opened:
            self._opened = True
            await self._connection._open(self)
        await asyncio.wait_for(self._acknowledged.wait(), timeout)
        return self

    async def __anext__(self) -> MessageBatch:
        if not self._acknowledged.is_set():
            await self.ready()
        while True:
            self._pay()
            effect = await self._queue.get()
            if isinstance(effect, TransportError):
                raise effect
            if isinstance(effect, Gap):
                self.position[effect.shard] = effect.upto
                return MessageBatch((), effect.shard, dict(self.position), effect.reason)
            self.position[effect.shard] = effect.position
            if effect.messages:
                self._owed += len(effect.messages)
                return MessageBatch(effect.messages, effect.shard, dict(self.position))

    async def close(self) -> None:
        await self._connection._close(self)

    def _pay(self) -> None:
        """All that was handed over has been dealt with."""
        if self._owed and PARTS * self._owed >= self.credit and self._connection._edge is not None:
            self._connection._edge.tell(Consumed(self.name, self._owed))
            self._owed = 0

    def _take(self, effect: Any) -> None:
        if isinstance(effect, Subscribed):
            self.start = dict(effect.start)
            for shard, at in effect.start.items():
                self.position.setdefault(shard, at)
            self._acknowledged.set()
        else:
            if isinstance(effect, TransportError):
                self._acknowledged.set()
            self._queue.put_nowait(effect)
