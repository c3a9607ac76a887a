"""Several coordinators: each owns some attributes, one is elected to reorganise (SemCast §3.2.5).

A state machine without input or output: time and messages are arguments, and every step returns what
is to be sent or done. Two coordinators hold each attribute's profiles, chosen by hashing, so that one
may die at any time; when one dies or comes back the holders change, and what they lack is handed over.

The first by name of those alive leads. It reorganises only with the states of all it believes alive, a
majority of everyone at least, and under a term that grows: of two that both believe to lead, the
plan with the later term stays. A subscription that was acknowledged is in every later reorganisation, as
long as no two coordinators die before hand-over is done.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

Term = tuple[int, str]
COPIES = 2


@dataclass(frozen=True, slots=True)
class ClientRecord:
    """What a client wants; no profile means that it left. The later version stands."""

    client: str
    version: int
    profile: str | None
    attributes: tuple[str, ...]
    gateway: int


@dataclass(frozen=True, slots=True)
class Alive:
    """A sign of life, with the latest term heard of: whoever comes back learns it before leading."""

    term: Term


@dataclass(frozen=True, slots=True)
class Store:
    """Keep this record."""

    record: ClientRecord


@dataclass(frozen=True, slots=True)
class Stored:
    client: str
    version: int


@dataclass(frozen=True, slots=True)
class AskState:
    """The leader asks for all records."""

    term: Term


@dataclass(frozen=True, slots=True)
class PeerState:
    term: Term
    records: tuple[ClientRecord, ...]


Message = Alive | Store | Stored | AskState | PeerState


@dataclass(frozen=True, slots=True)
class SendPeer:
    to: str
    message: Message


@dataclass(frozen=True, slots=True)
class Acknowledge:
    """Tell the client's gateway that its record is safe."""

    client: str
    version: int


@dataclass(frozen=True, slots=True)
class Reorganise:
    """Plan again, for these records, as the epoch of this term."""

    term: Term
    records: tuple[ClientRecord, ...]


Effect = SendPeer | Acknowledge | Reorganise


def holders(attributes: Iterable[str], alive: Iterable[str]) -> set[str]:
    """Who holds a profile over these attributes: for each the `COPIES` of the living that hash highest.

    >>> holders(["price"], ["a", "b", "c"]) == holders(["price"], ["c", "b", "a"])
    True
    """
    living = sorted(alive)
    found: set[str] = set()
    for attribute in tuple(attributes) or ("",):
        found.update(sorted(living, key=lambda name: _hash(attribute, name), reverse=True)[:COPIES])
    return found


def _hash(attribute: str, name: str) -> bytes:
    return hashlib.blake2b(f"{len(attribute)} {attribute} {name}".encode(), digest_size=8).digest()


@dataclass
class ChannelCoordinator:
    """One of several. Call `tick` about every `interval_s`, and `receive` for each message that comes in."""

    name: str
    everyone: tuple[str, ...]
    interval_s: float = 1.0
    timeout_s: float = 3.5
    records: dict[str, ClientRecord] = field(default_factory=dict)
    _heard: dict[str, float] = field(default_factory=dict)
    _alive: frozenset[str] = frozenset()
    _term: Term = (0, "")
    _asked: set[str] = field(default_factory=set)
    _gathered: dict[str, ClientRecord] = field(default_factory=dict)
    _planning: Term | None = None
    _waiting: dict[tuple[str, int], tuple[ClientRecord, set[str]]] = field(default_factory=dict)

    def start(self, now: float) -> list[Effect]:
        """Believe everyone alive until they stay silent."""
        self._heard = dict.fromkeys(self.everyone, now)
        self._alive = frozenset(self.everyone)
        return self._signs()

    @property
    def leader(self) -> str:
        return min(self._alive)

    def submit(self, now: float, record: ClientRecord) -> list[Effect]:
        """A gateway brings a subscription, a change or a departure."""
        self._waiting[record.client, record.version] = (record, set())
        return self._store_at_holders(record, waited=True)

    def reorganise(self, now: float) -> list[Effect]:
        """Begin to plan again, if this coordinator leads and a majority is alive."""
        if self.leader != self.name or 2 * len(self._alive) <= len(self.everyone):
            return []
        self._term = self._planning = (self._term[0] + 1, self.name)
        self._asked = set(self._alive) - {self.name}
        self._gathered = dict(self.records)
        return [*(SendPeer(peer, AskState(self._term)) for peer in sorted(self._asked)), *self._finish()]

    def tick(self, now: float) -> list[Effect]:
        """Time passes: say that we live, and notice who does not."""
        alive = frozenset(n for n in self.everyone if n == self.name or now - self._heard[n] <= self.timeout_s)
        return [*self._signs(), *self._change(alive)]

    def receive(self, now: float, sender: str, message: Message) -> list[Effect]:
        self._heard[sender] = now
        effects = self._change(self._alive | {sender})
        match message:
            case Alive():
                if message.term > self._term:
                    self._term, self._planning = message.term, None
            case Store():
                self._keep(message.record)
                effects.append(SendPeer(sender, Stored(message.record.client, message.record.version)))
            case Stored():
                effects += self._confirmed(sender, (message.client, message.version))
            case AskState():
                if message.term >= self._term and message.term[1] == sender:  # a later leader ends our own attempt
                    self._term, self._planning = message.term, None
                    effects.append(SendPeer(sender, PeerState(message.term, tuple(self.records.values()))))
            case PeerState():
                if message.term == self._planning:
                    for record in message.records:
                        _later(self._gathered, record)
                    self._asked.discard(sender)
                    effects += self._finish()
        return effects

    def _signs(self) -> list[Effect]:
        return [SendPeer(peer, Alive(self._term)) for peer in self.everyone if peer != self.name]

    def _keep(self, record: ClientRecord) -> None:
        _later(self.records, record)

    def _store_at_holders(self, record: ClientRecord, *, waited: bool = False) -> list[Effect]:
        wanted = holders(record.attributes, self._alive)
        if self.name in wanted:
            self._keep(record)
        others = sorted(wanted - {self.name})
        effects: list[Effect] = [SendPeer(peer, Store(record)) for peer in others]
        if waited:
            self._waiting[record.client, record.version] = (record, set(others))
            effects += self._confirmed(self.name, (record.client, record.version))
        return effects

    def _confirmed(self, by: str, key: tuple[str, int]) -> list[Effect]:
        if key not in self._waiting:
            return []
        self._waiting[key][1].discard(by)
        if self._waiting[key][1]:
            return []
        del self._waiting[key]
        return [Acknowledge(*key)]

    def _change(self, alive: frozenset[str]) -> list[Effect]:
        """When somebody went or came: hand over what the new holders may lack."""
        if alive == self._alive:
            return []
        self._alive = alive
        effects: list[Effect] = []
        for record in list(self.records.values()):
            effects += self._store_at_holders(record)
        for record, _ in list(self._waiting.values()):
            effects += self._store_at_holders(record, waited=True)
        self._asked &= alive
        return [*effects, *self._finish()]

    def _finish(self) -> list[Effect]:
        """All living answered, and they are a majority: plan."""
        if self._planning is None or self._asked:
            return []
        term, self._planning = self._planning, None
        if 2 * len(self._alive) <= len(self.everyone):
            return []
        there = (record for record in self._gathered.values() if record.profile is not None)
        return [Reorganise(term, tuple(sorted(there, key=lambda record: record.client)))]


def _later(records: dict[str, ClientRecord], record: ClientRecord) -> None:
    known = records.get(record.client)
    if known is None or record.version > known.version:
        records[record.client] = record
