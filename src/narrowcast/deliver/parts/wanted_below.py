"""What a filter knows: for each child of its broker, what the subscriptions below that child want.

Nothing else. Which subscriptions cover which is the business of filters that tell each other about them
(`plans/filters/mobile/table.py`); here every broker has the whole routing, and nobody asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Overlay
from narrowcast.profiles.parsed import parsed
from narrowcast.profiles.predicate import predicate


class WantedBelow:
    """The tests of the subscriptions below each child; the same profile twice is one test.

    >>> wanted = WantedBelow()
    >>> wanted.add("left", "price > 5")
    >>> wanted.wants("left", {"price": 9}), wanted.wants("left", {"price": 1}), "right" in wanted
    (True, False, False)
    """

    def __init__(self) -> None:
        self._tests: dict[str, dict[Callable[[Mapping[str, Any]], bool], None]] = {}

    def add(self, child: str, profile: str) -> None:
        self._tests.setdefault(child, {})[predicate(parsed(profile))] = None

    def wants(self, child: str, message: Mapping[str, Any]) -> bool:
        """The matching algorithm of content-based multicast (§3.2): whether anything below a child wants a message."""
        return any(test(message) for test in self._tests[child])

    def __contains__(self, child: str) -> bool:
        """Whether any subscription below a child is known."""
        return child in self._tests


def profiles_below(routing: Routing, channel: int, broker: str) -> list[tuple[str, str]] | None:
    """For each subscription below a broker that takes an overlay channel: the child or edge it is behind, its profile.

    None where the plan leaves out a profile, an edge or a gateway: then nothing may be filtered.
    """
    address = routing.addresses[channel]
    assert isinstance(address, Overlay)
    below = {child: _subtree(address, child) for child in address.children(broker)}
    found = []
    for name, channels in routing.taken.items():
        if channel not in channels:
            continue
        profile, edge = routing.profiles.get(name), routing.edges.get(name)
        gateway = routing.gateways.get(edge) if edge is not None else None
        if profile is None or edge is None or gateway is None:
            return None
        if gateway == broker:
            found.append((edge, profile))
        found += [(child, profile) for child, brokers in below.items() if gateway in brokers]
    return found


def _subtree(address: Overlay, broker: str) -> set[str]:
    found, waiting = {broker}, [broker]
    while waiting:
        for child in address.children(waiting.pop()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found
