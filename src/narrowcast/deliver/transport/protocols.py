"""The three things the runtime needs from an engine. Asynchronous here; the simulator has its own.

What each must promise, no more:

* `Log`: an acknowledged entry is never lost and never changes its number; numbers ascend, by one within a
  generation; the same `dedup` id within the engine's window gives the same number again.
* `Registry`: a write with a stale revision fails; watchers see the last value of every key in the end.
* `Carrier`: may lose, repeat, reorder and delay frames. It may not alter one unnoticed; the checksum sees to that.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from narrowcast.deliver.routing.address import Address
from narrowcast.errors import TransportError

Receive = Callable[[bytes], None]
ReceiveMany = Callable[[list[bytes]], None]
Done = Callable[[int | TransportError], None]  # of an append
TakeAtOnce = Callable[["Entry", bool], bool]  # an entry, and whether more has come with it: whether it was taken


class Entry(NamedTuple):
    """One entry of a shard's log; `stamp` is when the log took it, in ISO 8601, where the engine says so."""

    sequence: int
    data: bytes
    stamp: str = ""


@dataclass(frozen=True, slots=True)
class Stretch:
    """All entries with `after < sequence <= upto`.

    `first` is the oldest sequence number the log still holds: where `after + 1 < first`, entries are
    gone for good, and the stretch starts at `first`.
    """

    after: int
    upto: int
    entries: tuple[Entry, ...]
    first: int = 1
    back: bool = False  # the log went back to before `first`: it was restored from an older copy, or begun anew


class Value(NamedTuple):
    """A key of the registry; `data` None: it is not there. Revisions only grow."""

    key: str
    data: bytes | None
    revision: int


class ConflictError(TransportError):
    """The key has another revision than the writer thought: somebody else wrote first."""


class FinalError(TransportError):
    """The answer is no, however often one asks."""


class Log(Protocol):
    """The durable log, one sequence of entries per shard.

    One that gains by it may also have `append_at_once(shard, data, dedup, done)`: it sends an entry before it returns
    True, and calls `done` with the number or the error as soon as it is known; False if there is more to do first.
    """

    @property
    def most_bytes(self) -> int:
        """The largest entry it takes."""
        ...

    async def append(self, shard: int, data: bytes, *, dedup: str) -> int:
        """Write one entry; its sequence number once it is durable. TransportError: it may or may not be there.

        FinalError: it is not there and never will be.
        """
        ...

    async def read(self, shard: int, after: int, *, most: int, upto: int | None = None) -> Stretch:
        """At most `most` entries after a sequence number, not beyond `upto`; what is not there is not waited for."""
        ...

    async def last(self, shard: int) -> int:
        """The newest sequence number; 0 for an empty log."""
        ...

    def tail(self, shard: int, after: int, at_once: TakeAtOnce | None = None) -> AsyncGenerator[Entry, None]:
        """Every entry after a sequence number, in order, as it comes, for ever.

        Where an entry is the next and nothing waits before it, `at_once` may be called with it where it is read, a
        turn of the loop earlier; what it does not take is yielded.
        """
        ...


class Registry(Protocol):
    """Small values under revision control. Keys hold letters, digits, `-`, `_`, `.` only."""

    async def get(self, key: str) -> Value: ...

    async def put(self, key: str, data: bytes, *, revision: int | None = None) -> int:
        """Write; `revision` 0 means "only if absent", None "whatever is there". Raises ConflictError."""
        ...

    async def delete(self, key: str, *, revision: int | None = None) -> None: ...

    def watch(self, prefix: str) -> AsyncGenerator[Value, None]:
        """The present value of every key with the prefix, then every change; only the last of many may be seen."""
        ...


class Carrier(Protocol):
    """Takes frames to whoever joined their address.

    One that gains by it may also have `send_many(address, frames)`, for what stands ready together, `send_now`, which
    does the same before it returns, as far as nothing has to be waited for, and says how many frames that were, and
    an attribute `receive_many`, set before it starts, to which it gives what arrives by the handful.
    """

    async def start(self, receive: Receive) -> None:
        """Begin; `receive` is called with the bytes of each frame that arrives at an address joined."""
        ...

    async def join(self, address: Address) -> None:
        """Returns once frames sent from now on arrive. Joining twice is joining once."""
        ...

    async def leave(self, address: Address) -> None: ...

    async def send(self, address: Address, data: bytes) -> None:
        """Pass on one frame. Waits when the way is full; never drops silently what it could have kept."""
        ...

    async def close(self) -> None: ...
