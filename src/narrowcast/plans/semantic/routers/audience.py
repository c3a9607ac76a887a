"""The rule of `search`: a channel made for the audience, else one for most of it and blocks for the rest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.plans.semantic.content import Both, Content, Either, Less, Wants
from narrowcast.plans.semantic.kernels.cover import cheapest_cover
from narrowcast.plans.semantic.kernels.price import first_interval
from narrowcast.plans.semantic.methods.audiences import meet, packed


@dataclass(frozen=True, eq=False)
class AudienceRouter:
    """`way[s, c]` is what a message from source group s costs on channel c, `block_way[s, b]` on block b.

    Blocks are the channels from `len(core)` on; every gateway is in exactly one. A message goes to the
    channel, or none, that together with the blocks of the gateways it leaves out costs least. With one
    source group a channel whose core ⊆ audience ⊆ reach comes before that: then expressions can tell.
    """

    way: Floats
    block_way: Floats
    core: Bools
    reach: Bools
    blocks: Bools

    @cached_property
    def order(self) -> Ints:
        """Channels by source group from the cheapest on, those out of its reach as −1 at the end."""
        order = np.argsort(self.way, axis=1, kind="stable")
        return np.where(np.isfinite(np.take_along_axis(self.way, order, axis=1)), order, -1)

    @cached_property
    def reach_words(self) -> Any:
        return packed(self.reach)

    def __call__(self, matched: Any, audience: Bools, source: Ints) -> tuple[Ints, Ints]:
        wanted = np.flatnonzero(audience.any(axis=1))
        sets, group = audience[wanted], source[wanted]
        base = self._base(sets, group)
        rest = sets.copy()
        taken = base >= 0
        rest[taken] &= ~self.reach[base[taken]]
        row, block = np.nonzero(meet(rest, self.blocks))
        rows = np.concatenate((wanted[taken], wanted[row]))
        cols = np.concatenate((base[taken], block + len(self.core)))
        sort = np.lexsort((cols, rows))
        return rows[sort], cols[sort]

    def _base(self, sets: Bools, group: Ints) -> Ints:
        order = np.ascontiguousarray(self.order) if len(self.core) else np.full((len(self.way), 1), -1)
        found: Ints = np.full(len(sets), -1, np.int64)
        if len(self.way) == 1:
            found = first_interval(packed(sets), group, order, packed(self.core), self.reach_words)
        left = np.flatnonzero(found < 0)
        sets, group = sets[left], group[left]
        whole = first_interval(packed(sets), group, order, np.zeros_like(self.reach_words), self.reach_words)
        bound = np.full(len(left), np.inf)
        bound[whole >= 0] = self.way[group[whole >= 0], whole[whole >= 0]]
        block_of = np.argmax(self.blocks, axis=0)
        found[left] = cheapest_cover(sets, group, order, self.way, self.reach, block_of, self.block_way, bound)
        return found


class AudienceContents:
    """What each channel carries, as formulas over "a client of gateway j wants it", made when asked for.

    With one source group exactly what the rule sends of the audiences that channels were made for;
    of any other audience, and with several groups, all that the rule may send, which is wider.
    """

    def __init__(self, router: AudienceRouter, wants: Bools) -> None:
        self.router, self.wants = router, wants
        self.exact = len(router.way) == 1 and len(router.core) > 0

    @cached_property
    def at(self) -> list[Content]:
        return [Wants(tuple(np.flatnonzero(column).tolist())) for column in self.wants.T]

    @cached_property
    def intervals(self) -> list[Content]:
        router = self.router
        return [_interval(core, reach, self.at) for core, reach in zip(router.core, router.reach, strict=True)]

    @cached_property
    def known(self) -> Content:
        return Either(tuple(self.intervals[c] for c in self.router.order[0] if c >= 0))

    def of(self, channel: int) -> Content:
        """Its own audiences, and what it reaches of those that no channel was made for."""
        core, reach = self.router.core, self.router.reach
        mine = reach[channel] if channel < len(core) else self.router.blocks[channel - len(core)]
        here = Either(tuple(self.at[j] for j in np.flatnonzero(mine)))
        if not self.exact:
            return here
        other = Less(here, self.known)
        return Either((self._own(channel), other)) if channel < len(core) else other

    def _own(self, channel: int) -> Content:
        core, reach, order = self.router.core, self.router.reach, self.router.order[0]
        before = order[: int(np.argmax(order == channel))]
        crossing = ((core[channel] | core[before]) & ~(reach[channel] & reach[before])).any(axis=1)
        others = tuple(self.intervals[d] for d in before[~crossing])
        return Less(self.intervals[channel], Either(others)) if others else self.intervals[channel]


def _interval(core: Bools, reach: Bools, at: list[Content]) -> Content:
    """Wanted at every gateway of the core (at some gateway, if the core is empty) and at none outside the reach."""
    inside = tuple(at[j] for j in np.flatnonzero(core))
    whole: Content = Both(inside) if inside else Either(tuple(at[j] for j in np.flatnonzero(reach)))
    outside = tuple(at[j] for j in np.flatnonzero(~reach))
    return Less(whole, Either(outside)) if outside else whole
