"""The subscription table that a running filter keeps (content-based multicast, §3.1)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar


class Wanted(Protocol):
    """What a table asks of a profile."""

    def covers(self, other: object, /) -> bool: ...

    def matches(self, message: Mapping[str, object], /) -> bool: ...


P = TypeVar("P", bound=Wanted)


@dataclass(frozen=True, slots=True)
class Forward(Generic[P]):
    """Tell the parent filter that this is wanted."""

    subscription: Hashable
    profile: P


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Tell the parent filter that this is no longer wanted."""

    subscription: Hashable


@dataclass(slots=True)
class SubscriptionTable(Generic[P]):
    """Subscription → the child it came from, and which of them the parent filter knows.

    Whatever any child wants is covered by one subscription the parent knows, at every moment: a
    subscription covered by a forwarded one only enters the table, and when a forwarded one goes,
    those it had covered are forwarded *before* it is withdrawn.
    """

    _entries: dict[Hashable, tuple[Hashable, P]] = field(default_factory=dict)
    _forwarded: dict[Hashable, P] = field(default_factory=dict)

    def subscribe(self, subscription: Hashable, child: Hashable, profile: P) -> tuple[Forward[P] | Withdraw, ...]:
        """Enter a subscription (again: with a new profile); returns what to tell the parent."""
        stale = subscription in self._forwarded
        self._forwarded.pop(subscription, None)
        self._entries[subscription] = (child, profile)
        told: list[Forward[P] | Withdraw] = [*self._uncovered()]
        if stale and subscription not in self._forwarded:
            told.append(Withdraw(subscription))
        return tuple(told)

    def unsubscribe(self, subscription: Hashable) -> tuple[Forward[P] | Withdraw, ...]:
        """Remove a subscription; returns what to tell the parent, in this order."""
        self._entries.pop(subscription, None)
        if self._forwarded.pop(subscription, None) is None:
            return ()
        return (*self._uncovered(), Withdraw(subscription))

    def children_for(self, message: Mapping[str, object]) -> list[Hashable]:
        """The matching algorithm: the children to which a message goes, each once."""
        return list(dict.fromkeys(child for child, profile in self._entries.values() if profile.matches(message)))

    def _uncovered(self) -> list[Forward[P]]:
        """Forward, in order of arrival, what no forwarded subscription covers."""
        told = []
        for subscription, (_, profile) in self._entries.items():
            if subscription not in self._forwarded and not any(p.covers(profile) for p in self._forwarded.values()):
                self._forwarded[subscription] = profile
                told.append(Forward(subscription, profile))
        return told
