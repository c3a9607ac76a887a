"""What a part can ask for. The driver carries effects out in the order given and reports back as events.

`request` numbers pair answers with questions. An answer may be late or never come; parts ask again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from narrowcast.deliver.transport import Address
from narrowcast.deliver.wire import Attach, Frame, Pulse


@dataclass(frozen=True, slots=True)
class Send:
    """Give a frame, a pulse or an attachment to the carrier of an address."""

    address: Address
    what: Frame | Attach | Pulse


@dataclass(frozen=True, slots=True)
class Join:
    """Receive what is sent to an address (`sender`: be ready to send to it)."""

    address: Address
    sender: bool = False


@dataclass(frozen=True, slots=True)
class Leave:
    """The opposite of `Join`."""

    address: Address
    sender: bool = False


@dataclass(frozen=True, slots=True)
class Append:
    """Write one entry to a shard's log. Answer: Appended or Failed."""

    request: int
    shard: int
    data: bytes
    dedup: str


@dataclass(frozen=True, slots=True)
class Read:
    """Read up to `most` entries after sequence number `after`, not beyond `upto`. Answer: WasRead or Failed."""

    request: int
    shard: int
    after: int
    upto: int | None = None
    most: int = 256


@dataclass(frozen=True, slots=True)
class Locate:
    """Ask for a shard's newest sequence number. Answer: Located or Failed."""

    request: int
    shard: int


@dataclass(frozen=True, slots=True)
class Watch:
    """Report every key with this prefix, now and whenever it changes, as Noted."""

    prefix: str


@dataclass(frozen=True, slots=True)
class Lookup:
    """Report one key as Noted, also if it is not there."""

    key: str


@dataclass(frozen=True, slots=True)
class Write:
    """Write a key (`data` None: delete it) if its revision is still `revision`; None: whatever is there.

    Answer: Written or Refused.
    """

    request: int
    key: str
    data: bytes | None
    revision: int | None = None


@dataclass(frozen=True, slots=True)
class Acked:
    """To the application: these messages are promised. They stand in entry `sequence` from index `first` on."""

    token: int
    shard: int
    sequence: int
    first: int


@dataclass(frozen=True, slots=True)
class Unsure:
    """To the application: nobody can say any more whether these messages are in the log; nothing is promised."""

    token: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """To the application: the log will never take these messages, and why."""

    token: int
    reason: str


@dataclass(frozen=True, slots=True)
class Subscribed:
    """To the application: every message acknowledged from now on, after `start` (place by shard), will come."""

    subscription: str
    start: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Deliver:
    """To the application: the next messages of a subscription, in order, each (place, payload).

    All that matches up to `position` is delivered with them. Whoever stores both together and
    subscribes again from `position` misses nothing and gets nothing twice. Those that were published as columns come
    as `ColumnRows`, which are a sequence of the same.
    """

    subscription: str
    shard: int
    messages: Sequence[tuple[int, bytes]]
    position: int


@dataclass(frozen=True, slots=True)
class Gap:
    """To the application: what lies in `(after, upto]` will not come, and why: too slow, or no longer in the log."""

    subscription: str
    shard: int
    after: int
    upto: int
    reason: str


@dataclass(frozen=True, slots=True)
class PlanWanted:
    """Plan for these subscriptions (profile text by name), with these nodes alive. Answer: Planned.

    `offer` is the record of another plan to use in place of the planner's own; `trying`: it is not in force yet.
    `entitled` has the subscriptions of accounts, and the profile of what each may see (None: everything).
    """

    request: int
    epoch: int
    subscriptions: Mapping[str, str]
    edges: Mapping[str, str]  # the edge of each subscription
    gateways: Mapping[str, str]  # the broker of each edge that has one
    nodes: tuple[str, ...]
    offer: Mapping[str, Any] | None = None
    trying: bool = False
    entitled: Mapping[str, str | None] = field(default_factory=dict)


Effect = (
    Send
    | Join
    | Leave
    | Append
    | Read
    | Locate
    | Watch
    | Lookup
    | Write
    | Acked
    | Unsure
    | Rejected
    | Subscribed
    | Deliver
    | Gap
    | PlanWanted
)
