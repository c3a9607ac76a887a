"""What can happen to a part. Everything a part ever learns comes through one of these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Entry
from narrowcast.deliver.wire import Attach, Frame, Pulse

LARGE_ANSWER = 2 << 20  # bytes of entries; a log may end an answer at twice as many, and no entry is as large


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed: `now` has reached the part's `wake_at`. A tick too many does no harm.

    `busy`: the process did not get round to all that has come in, so what seems to be missing may stand ready.
    """

    busy: bool = False


@dataclass(frozen=True, slots=True)
class Arrived:
    """A frame, a pulse, or an edge's attachment, came in from a carrier, whole and in any order."""

    what: Frame | Attach | Pulse


@dataclass(frozen=True, slots=True)
class Appended:
    """The log made an entry durable: the answer to `Append`."""

    request: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Failed:
    """An `Append`, `Read` or `Locate` got no answer; an append may have happened all the same.

    `final`: it did not happen and never will, however often it is tried.
    """

    request: int
    reason: str = ""
    final: bool = False


@dataclass(frozen=True, slots=True)
class WasRead:
    """All entries with `after < sequence <= upto`; the log's oldest is `first`.

    The answer to `Read`; to a source it may also come unasked, from a tail of the log, as request 0.
    """

    request: int
    shard: int
    after: int
    upto: int
    entries: tuple[Entry, ...]
    first: int = 1
    back: bool = False  # the log went back to before `first`

    def goes_on(self, most: int) -> bool:
        """Whether the log may have more: with so many entries, or bytes, an answer ends, but not the log."""
        return len(self.entries) >= most or sum(len(entry.data) for entry in self.entries) >= LARGE_ANSWER


@dataclass(frozen=True, slots=True)
class Located:
    """The answer to `Locate`: the newest sequence number of a shard."""

    request: int
    shard: int
    sequence: int


@dataclass(frozen=True, slots=True)
class Noted:
    """A key of the registry has this value (None: it is not there). From a watch, newest last, some may be skipped."""

    key: str
    data: bytes | None
    revision: int


@dataclass(frozen=True, slots=True)
class Written:
    """The registry took a write: the answer to `Write`."""

    request: int
    revision: int


@dataclass(frozen=True, slots=True)
class Refused:
    """The registry did not take a write: another revision was there, or it could not be reached (`stale` false)."""

    request: int
    stale: bool = True


@dataclass(frozen=True, slots=True)
class Publish:
    """The application wants messages sent; `token` comes back with their acknowledgement."""

    token: int
    shard: int
    payloads: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class PublishColumns:
    """The same for messages as columns: the `count` rows of the record batch that `data` is."""

    token: int
    shard: int
    count: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Subscribe:
    """The application wants what `profile` matches.

    Without `position` it starts at the end of the log; with one (place by shard, as `Deliver` gave it)
    it goes on from there, as after a restart. `credit` is how many messages may be handed over before
    `Consumed` is due; None: no limit.
    """

    subscription: str
    profile: str
    position: Mapping[int, int] | None = None
    credit: int | None = None


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """The application wants no more."""

    subscription: str


@dataclass(frozen=True, slots=True)
class Consumed:
    """The application has dealt with so many messages of a subscription."""

    subscription: str
    messages: int


@dataclass(frozen=True, slots=True)
class Planned:
    """The answer to `PlanWanted`: a routing for the subscriptions it was asked for, or None for "no better one"."""

    request: int
    routing: Routing | None


@dataclass(frozen=True, slots=True)
class Replan:
    """Somebody has reason to believe that a better plan exists: demand has drifted, the network has changed."""


Event = (
    Tick
    | Arrived
    | Appended
    | Failed
    | WasRead
    | Located
    | Noted
    | Written
    | Refused
    | Publish
    | PublishColumns
    | Subscribe
    | Unsubscribe
    | Consumed
    | Planned
    | Replan
)
