"""Filters as running things: their four states and the messages that change them.

A filter works only while `active`. `passive` ones stay at their node and wait for an activation
message; `migrating` ones are on their way; `spawning` ones are making another (content-based
multicast, §3.1). A vertex whose filter does not work passes everything on: too much, never too
little.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from narrowcast.errors import InputError


class FilterState(Enum):
    ACTIVE = "active"
    PASSIVE = "passive"
    MIGRATING = "migrating"
    SPAWNING = "spawning"


@dataclass(frozen=True, slots=True)
class Activate:
    """The passive filter at `node` starts to work."""

    node: int


@dataclass(frozen=True, slots=True)
class Passivate:
    """The filter at `node` stops working and stays."""

    node: int


@dataclass(frozen=True, slots=True)
class Migrate:
    """The filter at `source` goes to `target` and works there."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Spawn:
    """The filter at `source` (None: the publisher itself) makes a new one that goes to `target`."""

    source: int | None
    target: int


Message = Activate | Passivate | Migrate | Spawn


@dataclass(slots=True)
class Fleet:
    """The filters of a tree by node. Every message has a beginning and an end.

    Between the two a migrating or spawning filter does not work. A message that its filter's state
    does not allow is an InputError and changes nothing.

    >>> fleet = Fleet()
    >>> fleet.run(Spawn(None, 3))
    >>> fleet.begin(Migrate(3, 1))
    >>> fleet.states[3].value, sorted(fleet.active)
    ('migrating', [])
    >>> fleet.finish(Migrate(3, 1))
    >>> sorted(fleet.active)
    [1]
    """

    states: dict[int, FilterState] = field(default_factory=dict)
    _underway: dict[int, Message] = field(default_factory=dict)  # by target

    @property
    def active(self) -> frozenset[int]:
        """The vertices whose filters are at work."""
        return frozenset(v for v, state in self.states.items() if state is FilterState.ACTIVE)

    @property
    def passive(self) -> frozenset[int]:
        """The vertices whose filters stay there and do not work."""
        return frozenset(v for v, state in self.states.items() if state is FilterState.PASSIVE)

    def begin(self, message: Message) -> None:
        """A filter takes up a message; activation and passivation are done at once."""
        match message:
            case Activate(node):
                self._expect(message, node, FilterState.PASSIVE)
                self.states[node] = FilterState.ACTIVE
            case Passivate(node):
                self._expect(message, node, FilterState.ACTIVE)
                self.states[node] = FilterState.PASSIVE
            case Migrate(source, target):
                self._expect(message, source, FilterState.ACTIVE)
                self._expect_free(message, target)
                self.states[source] = FilterState.MIGRATING
                self._underway[target] = message
            case Spawn(source, target):
                if source is not None:
                    self._expect(message, source, FilterState.ACTIVE)
                self._expect_free(message, target)
                if source is not None:
                    self.states[source] = FilterState.SPAWNING
                self._underway[target] = message

    def finish(self, message: Message) -> None:
        """A filter has arrived where it was going, and works."""
        if isinstance(message, (Activate, Passivate)):
            return
        if self._underway.get(message.target) != message:
            raise InputError(f"{message} cannot finish: it never began", name="message", got=message)
        del self._underway[message.target]
        if isinstance(message, Migrate):
            del self.states[message.source]
        elif message.source is not None:
            self.states[message.source] = FilterState.ACTIVE
        self.states[message.target] = FilterState.ACTIVE

    def run(self, *messages: Message) -> None:
        """Begin and finish messages one after the other."""
        for message in messages:
            self.begin(message)
            self.finish(message)

    def _expect(self, message: Message, node: int, wanted: FilterState) -> None:
        state = self.states.get(node)
        if state is not wanted:
            has = "no filter" if state is None else f"a filter that is {state.value}"
            raise InputError(
                f"{message} needs a filter that is {wanted.value} at vertex {node}; there is {has}",
                name="message",
                got=message,
            )

    def _expect_free(self, message: Message, node: int) -> None:
        if node in self.states or node in self._underway:
            raise InputError(
                f"{message} has nowhere to go: vertex {node} has a filter or expects one", name="message", got=message
            )
