"""The rule of `search`: the cheapest channel whose interval holds the audience, else the blocks it touches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from narrowcast.kernels.semantic_price import first_interval
from narrowcast.model._arrays import Bools, Ints
from narrowcast.semantic.audiences import packed
from narrowcast.semantic.content import Both, Content, Either, Less, Wants


@dataclass(frozen=True, eq=False)
class AudienceRouter:
    """`order[s]` lists the channels for source group s from the cheapest on, padded with −1.

    Blocks are the channels from `len(core)` on.
    """

    order: Ints
    core: Bools
    reach: Bools
    blocks: Bools

    def __call__(self, matched: Any, audience: Bools, source: Ints) -> tuple[Ints, Ints]:
        wanted = np.flatnonzero(audience.any(axis=1))
        sets = audience[wanted]
        found = first_interval(packed(sets), source[wanted], self.order, packed(self.core), packed(self.reach))
        taken, left = wanted[found >= 0], wanted[found < 0]
        touched = (sets[found < 0].astype(np.float32) @ self.blocks.T.astype(np.float32)) > 0
        row, block = np.nonzero(touched)
        rows = np.concatenate((taken, left[row]))
        cols = np.concatenate((found[found >= 0], block + len(self.core)))
        sort = np.lexsort((cols, rows))
        return rows[sort], cols[sort]


class AudienceContents:
    """What each channel carries, as formulas over "a client of gateway j wants it", made when asked for.

    With one source group exactly what the rule sends; with several, whose orders differ, all that the
    rule may send, which is wider.
    """

    def __init__(self, router: AudienceRouter, wants: Bools) -> None:
        self.router, self.wants = router, wants
        self.exact = len(router.order) == 1

    @cached_property
    def at(self) -> list[Content]:
        return [Wants(tuple(np.flatnonzero(column).tolist())) for column in self.wants.T]

    @cached_property
    def intervals(self) -> list[Content]:
        router = self.router
        return [_interval(core, reach, self.at) for core, reach in zip(router.core, router.reach, strict=True)]

    def of(self, channel: int) -> Content:
        core, reach = self.router.core, self.router.reach
        if channel >= len(core):
            here = Either(tuple(self.at[j] for j in np.flatnonzero(self.router.blocks[channel - len(core)])))
            return Less(here, Either(tuple(self.intervals))) if self.exact and self.intervals else here
        if not self.exact:
            return self.intervals[channel]
        order = self.router.order[0]
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
