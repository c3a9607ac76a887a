"""Filters of the tree in force: any of them may work or not at any moment, so they move without a new epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from narrowcast.deliver.parts.coordinator.leader import Stamped
from narrowcast.deliver.parts.filter_moves import FilterMode, next_order
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Overlay


class TreeFilters:
    """What each filter does, by its broker, and where they should work, once that is known.

    `written` are the plans as they stand in the registry, by epoch.
    """

    def __init__(self, written: Mapping[int, bytes]) -> None:
        self.states: dict[str, Stamped] = {}
        self.placement: frozenset[str] | None = None
        self._written = written
        self._tree: tuple[int, Routing | None] = (0, None)

    def tree(self, current: int) -> Routing | None:
        """The plan in force, if it is a tree that subscriptions climb."""
        if self._tree[0] != current and current in self._written:
            try:
                found = Routing.from_bytes(self._written[current])
            except ValueError:
                return None
            self._tree = (current, found if found.climbs else None)
            self.placement = None
        return self._tree[1] if self._tree[0] == current else None

    def is_in_force(self, routing: Routing, current: int) -> bool:
        """Whether a plan differs from the one in force in nothing but its filters."""
        present = self.tree(current)
        if present is None or not routing.climbs:
            return False
        return replace(routing, filters=()).to_bytes() == replace(present, filters=()).to_bytes()

    def order(self, current: int) -> tuple[str, dict[str, Any], int] | None:
        """The next order to a filter that is not where it should be: its broker, record, and the revision before."""
        routing = self.tree(current)
        if routing is None or self.placement is None:
            return None
        states = {}
        for broker in sorted(routing.addresses[0].brokers):  # type: ignore[union-attr]
            known = self.states.get(broker, Stamped()).record
            if known is not None and known.get("epoch") in (None, current):
                states[broker] = known["state"]
            elif broker in routing.filters:
                states[broker] = FilterMode.ACTIVE.value
        order = next_order(states, self.placement)
        if order is None:
            return None
        before = self.states.get(order[0], Stamped())
        version = ((before.record or {}).get("version") or 0) + 1
        return order[0], {"state": order[1].value, "version": version, "epoch": current}, before.revision

    def forgotten(self, number: int, data: bytes) -> list[tuple[str, int | None]]:
        """The brokers of a tree that is over, each with the revision of its filter's record, if that was for it."""
        try:
            routing = Routing.from_bytes(data)
        except ValueError:
            return []
        trees = [a for a in routing.addresses.values() if isinstance(a, Overlay)] if routing.climbs else []
        found: list[tuple[str, int | None]] = []
        for broker in sorted({broker for tree in trees for broker in tree.brokers}):
            known = self.states.get(broker)
            mine = known is not None and known.record is not None and known.record.get("epoch") == number
            found.append((broker, known.revision if mine and known is not None else None))
        return found
