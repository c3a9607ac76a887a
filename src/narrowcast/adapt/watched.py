"""The demand of a commuter's day as statistics would show it: counts of messages, smoothed as they come."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from narrowcast.model import Interest
from narrowcast.model.demand import Demand
from narrowcast.workloads.commuter import SLOT, Commuter


def watched(day: Commuter, hours: float = 24.0, *, half_life_s: float = 1800.0, seed: int = 0) -> Iterator[Demand]:
    """A demand at the end of every quarter of an hour, the first at 0:15."""
    smooth, weight = np.zeros(day.base.size), 0.0
    for slot in range(round(hours * 3600 / SLOT)):
        true = day.at(slot * SLOT)
        rng = np.random.default_rng([seed, 2, slot])
        counted = rng.poisson(true.rates * SLOT) / SLOT
        fade = 0.5 ** (SLOT / half_life_s)
        smooth, weight = fade * smooth + (1 - fade) * counted, fade * weight + 1 - fade
        yield Demand(_with(true, smooth / weight), ("topic",), (slot + 1) * SLOT, _with(true, counted))


def _with(interest: Interest, rates: np.ndarray) -> Interest:
    return Interest(interest.offsets, interest.users, rates, interest.n_users, interest.flow_names, interest.user_names)
