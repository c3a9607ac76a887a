"""The client library for plain code: the same connection, its loop in a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import TimeoutError as LateError
from typing import TYPE_CHECKING

from narrowcast.deliver.client.blocking import Blocking
from narrowcast.deliver.client.rows import MessageBatch, Rows
from narrowcast.profiles import Profile

if TYPE_CHECKING:
    from narrowcast.deliver.client.connect import Connection, Subscription


class SyncConnection:
    """What `with connect(...) as c` gives."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._blocking = Blocking()
        self._call = self._blocking.call

    def open(self) -> SyncConnection:
        self._blocking.start()
        try:
            self._call(self._connection.__aenter__())
        except BaseException:
            self._blocking.end()
            raise
        return self

    def close(self) -> None:
        try:
            self._call(self._connection.__aexit__())
        finally:
            self._blocking.end()

    def publish(self, rows: Rows, *, shard: int | None = None) -> int:
        """As `Connection.publish`."""
        return self._call(self._connection.publish(rows, shard=shard))

    @property
    def ways(self) -> dict[str, int]:
        """As `Connection.ways`."""
        return self._connection.ways

    def subscribe(
        self,
        profile: str | Profile,
        *,
        name: str | None = None,
        position: Mapping[int, int] | None = None,
        from_start: bool = False,
        credit: int = 20_000,
        timeout: float | None = None,
    ) -> SyncSubscription:
        """As `Connection.subscribe`, acknowledged when this returns. With a `timeout` it ends after such a silence."""

        async def open_it() -> Subscription:
            found = self._connection.subscribe(
                profile, name=name, position=position, from_start=from_start, credit=credit
            )
            return await found.ready()

        return SyncSubscription(self, self._call(open_it()), timeout)


class SyncSubscription(Iterator[MessageBatch]):
    """Batches as they come, in a plain `for` loop."""

    def __init__(self, connection: SyncConnection, inner: Subscription, timeout: float | None) -> None:
        self._connection, self._inner, self._timeout = connection, inner, timeout

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def position(self) -> dict[int, int]:
        return self._inner.position

    def __next__(self) -> MessageBatch:
        try:
            return self._connection._call(self._inner.__anext__(), self._timeout)
        except LateError:
            raise StopIteration from None

    def close(self) -> None:
        self._connection._call(self._inner.close())
