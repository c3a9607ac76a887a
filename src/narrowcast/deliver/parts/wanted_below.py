"""What a filter knows: for each child or edge of its broker, what the subscriptions behind it want."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from narrowcast.profiles.parsed import parsed
from narrowcast.profiles.predicate import predicate

Test = Callable[[Mapping[str, Any]], bool]


class WantedBelow:
    """The tests of the subscriptions behind each child; the same profile twice is one test.

    >>> wanted = WantedBelow()
    >>> wanted.add("left", "price > 5")
    >>> wanted.wants("left", {"price": 9}), wanted.wants("left", {"price": 1}), "right" in wanted
    (True, False, False)
    """

    def __init__(self) -> None:
        self._tests: dict[str, dict[str, Test]] = {}
        self._known: dict[str, Test] = {}  # parsed, and not in a table yet

    def learn(self, profile: str) -> int:
        """Parse a profile for later; how many characters that took."""
        if profile in self._known:
            return 0
        held = next((tests[profile] for tests in self._tests.values() if profile in tests), None)
        self._known[profile] = held or predicate(parsed(profile))
        return 0 if held else len(profile)

    def add(self, child: str, profile: str) -> None:
        """One more is wanted behind a child."""
        self.learn(profile)
        self._tests.setdefault(child, {})[profile] = self._known.pop(profile)

    def remove(self, child: str, profile: str) -> None:
        """One less is wanted behind a child."""
        self._tests.get(child, {}).pop(profile, None)

    def put(self, child: str, profiles: Iterable[str] | None) -> None:
        """All that is wanted behind a child from now on; None: nobody knows."""
        if profiles is None:
            self._tests.pop(child, None)
            return
        for profile in profiles:
            self.learn(profile)
        self._tests[child] = {profile: self._known.pop(profile) for profile in profiles}

    def wants(self, child: str, message: Mapping[str, Any]) -> bool:
        """The matching algorithm of content-based multicast (§3.2): whether anything behind a child wants a message."""
        return any(test(message) for test in self._tests[child].values())

    def anybody(self, message: Mapping[str, Any]) -> bool:
        """Whether anything behind any child wants a message."""
        return any(test(message) for tests in self._tests.values() for test in tests.values())

    def __contains__(self, child: str) -> bool:
        """Whether it is known what is wanted behind a child."""
        return child in self._tests
