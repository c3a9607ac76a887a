"""What a filter knows: subscriptions by the child they came from, and which of them its parent must know.

The subscription algorithm of content-based multicast (§3.2), with the step that it leaves out: a new
subscription that is covered by one already passed on is only noted; when a subscription leaves, those
that it alone covered are passed on in its place. Without that step they would get nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, TypeVar

from narrowcast.profiles import Profile
from narrowcast.profiles.predicate import predicate

Child = TypeVar("Child", bound=Hashable)


class SubscriptionTable(Generic[Child]):
    """Subscriptions of the children of one filter.

    >>> table = SubscriptionTable()
    >>> wide, narrow = Profile.parse("price > 1"), Profile.parse("price > 5")
    >>> table.add("a", "left", wide), table.add("b", "right", narrow)
    (True, False)
    >>> [str(p) for p in table.passed_on()], table.remove("a")
    (['price > 1'], ('b',))
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[Child, Profile]] = {}
        self._tests: dict[str, tuple[Child, Callable[[Mapping[str, Any]], bool]]] = {}
        self._above: set[str] = set()  # those passed on to the parent

    def add(self, name: str, child: Child, profile: Profile) -> bool:
        """A subscription from a child; whether it must be passed on to the parent."""
        self.remove(name)
        self._known[name] = (child, profile)
        self._tests[name] = (child, predicate(profile))
        if any(self._known[other][1].covers(profile) for other in sorted(self._above)):
            return False
        self._above.add(name)
        return True

    def remove(self, name: str) -> tuple[str, ...]:
        """A subscription is gone; the names of those that must now be passed on in its place."""
        self._tests.pop(name, None)
        if self._known.pop(name, None) is None or name not in self._above:
            return ()
        self._above.discard(name)
        raised = []
        for other, (_, profile) in self._known.items():
            if other not in self._above and not any(self._known[a][1].covers(profile) for a in sorted(self._above)):
                self._above.add(other)
                raised.append(other)
        return tuple(raised)

    def passed_on(self) -> tuple[Profile, ...]:
        """What the parent knows: together it covers everything below."""
        return tuple(self._known[name][1] for name in self._known if name in self._above)

    def wants(self, child: Child, message: Mapping[str, Any]) -> bool:
        """The matching algorithm: whether anything below a child wants a message."""
        return any(test(message) for at, test in self._tests.values() if at == child)

    def children(self) -> tuple[Child, ...]:
        """The children that want anything at all, each once."""
        return tuple(dict.fromkeys(child for child, _ in self._known.values()))
