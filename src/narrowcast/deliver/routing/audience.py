"""Channels chosen by who wants a message: the rule of `search`, whose channels are made for sets of gateways.

The audience of a message is the set of gateways behind which a subscription of this plan matches it. It
goes to one channel that was made for such an audience, or else to the channel, or none, that together
with the blocks of the gateways it leaves out is cheapest. Every gateway is in exactly one block, so
whatever is chosen reaches the whole audience.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from narrowcast.profiles.parsed import parsed
from narrowcast.profiles.predicate import predicate

Made = tuple[int, float, tuple[str, ...], tuple[str, ...]]
MOST_REMEMBERED = 10_000


@dataclass(frozen=True)
class Audiences:
    """`channels` are (channel, price, core, reach): made for audiences that hold the core and lie within the reach.

    `blocks` are (channel, price, gateways). Prices only decide between ways that all reach everybody.

    >>> rule = Audiences(((0, 1.0, ("a",), ("a", "b")),), ((1, 3.0, ("a", "b")), (2, 2.0, ("c",))))
    >>> [rule.choose(frozenset(found)) for found in ("a", "ab", "b", "ac", "")]
    [(0,), (0,), (0,), (0, 2), ()]
    """

    channels: tuple[Made, ...] = ()
    blocks: tuple[tuple[int, float, tuple[str, ...]], ...] = ()

    @cached_property
    def _by_price(self) -> list[tuple[int, float, frozenset[str], frozenset[str]]]:
        order = sorted(self.channels, key=lambda made: (made[1], made[0]))
        return [(channel, price, frozenset(core), frozenset(reach)) for channel, price, core, reach in order]

    @cached_property
    def _block(self) -> dict[str, tuple[int, float]]:
        return {gateway: (channel, price) for channel, price, members in self.blocks for gateway in members}

    @cached_property
    def _chosen(self) -> dict[frozenset[str], tuple[int, ...]]:
        return {}

    def choose(self, audience: frozenset[str]) -> tuple[int, ...]:
        """The channels of a message, by its audience. All gateways of it must be known."""
        found = self._chosen.get(audience)
        if found is None:
            if len(self._chosen) >= MOST_REMEMBERED:
                self._chosen.clear()
            found = self._chosen[audience] = self._choose(audience)
        return found

    def _choose(self, audience: frozenset[str]) -> tuple[int, ...]:
        if not audience:
            return ()
        for channel, _, core, reach in self._by_price:
            if core <= audience <= reach:
                return (channel,)
        ways = [self._with_blocks((), 0.0, audience)]
        for channel, price, _, reach in self._by_price:
            if not reach.isdisjoint(audience):
                ways.append(self._with_blocks((channel,), price, audience - reach))
        return min(ways)[1]

    def _with_blocks(self, base: tuple[int, ...], price: float, rest: frozenset[str]) -> tuple[float, tuple[int, ...]]:
        blocks = sorted({self._block[gateway] for gateway in rest})
        return price + sum(each for _, each in blocks), (*base, *(channel for channel, _ in blocks))

    def taken_at(self, gateway: str) -> tuple[int, ...]:
        """The channels by which what is wanted at a gateway may come there; () if the rule does not know it."""
        if gateway not in self._block:
            return ()
        made = [channel for channel, _, _, reach in self._by_price if gateway in reach]
        return tuple(sorted({*made, self._block[gateway][0]}))

    def to_json(self) -> list[Any]:
        return [self.channels, self.blocks]

    @classmethod
    def from_json(cls, body: Iterable[Any]) -> Audiences:
        channels, blocks = body
        return cls(
            tuple((c, price, tuple(core), tuple(reach)) for c, price, core, reach in channels),
            tuple((c, price, tuple(members)) for c, price, members in blocks),
        )


class WantedAt:
    """Where a message is wanted: a test per different profile, and the gateways where somebody has it."""

    def __init__(self, profiles: Iterable[tuple[str, str]]) -> None:
        """From the text of each profile and its gateway."""
        at: dict[str, set[str]] = {}
        for text, gateway in profiles:
            at.setdefault(text, set()).add(gateway)
        self._tests: list[tuple[Callable[[Mapping[str, Any]], bool], frozenset[str]]] = [
            (predicate(parsed(text)), frozenset(gateways)) for text, gateways in sorted(at.items())
        ]

    def __call__(self, message: Mapping[str, Any]) -> frozenset[str]:
        return frozenset().union(*(gateways for test, gateways in self._tests if test(message)))
