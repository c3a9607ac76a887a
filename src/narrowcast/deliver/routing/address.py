"""Where a channel travels. Re-planning changes addresses, never the configuration of a carrier."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Multicast:
    """A session in a group: DDS partition `g<group>-s<session>`, mapped once to the group's address."""

    group: int
    session: int


@dataclass(frozen=True, slots=True)
class Overlay:
    """A tree of brokers: frames enter at `root` and follow `links`, each (parent, child)."""

    root: str
    links: tuple[tuple[str, str], ...] = ()

    def children(self, broker: str) -> tuple[str, ...]:
        """The brokers right below one."""
        return tuple(child for parent, child in self.links if parent == broker)

    @property
    def brokers(self) -> frozenset[str]:
        return frozenset({self.root}).union(*self.links) if self.links else frozenset({self.root})


@dataclass(frozen=True, slots=True)
class Unicast:
    """A subject of its own for one subscriber."""

    name: str


@dataclass(frozen=True, slots=True)
class Link:
    """Straight to one node: how brokers pass frames on, and how an edge reaches its broker."""

    node: str


Address = Multicast | Overlay | Unicast | Link
