"""A channel, and the rule by which messages come to channels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from narrowcast.model.arrays import Bools, Ints
from narrowcast.plans.semantic.content import Content, expression
from narrowcast.profiles import Profile

CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Channel:
    """Content, the gateways it reaches, and the tree from its rendezvous broker to them.

    `edges` holds a row (parent, child) per link, `link_cost` their sum: what one message costs on the tree.
    `rate` counts messages of the window. `kind` says what it is for: audience, expected, fallback, hierarchy,
    common, noise or merged. `number` is what brokers and tables call it.
    """

    gateways: tuple[int, ...]
    rendezvous: int
    edges: NDArray[np.int32]
    rate: float
    link_cost: float
    kind: str
    content: Callable[[], Content] = field(repr=False)
    profiles: tuple[Profile, ...] = field(repr=False)
    allowed: float = np.inf
    """How long a message may take to the rendezvous so that no client's latency bound is broken."""
    number: int = 0

    @cached_property
    def expression(self) -> Any:
        """Its content as a Profile. Built on first use; it is as long as the profiles it is made of."""
        return expression(self.content(), self.profiles)


class ChannelRule(Protocol):
    """From what messages match, who wants them and which source group sends them to (message, channel) pairs."""

    def __call__(self, matched: Any, audience: Bools, source: Ints) -> tuple[Ints, Ints]: ...


def routed(router: ChannelRule, matched: Any, audience: Bools, group: Ints) -> tuple[Ints, Ints]:
    """What a rule says of many messages, some at a time."""
    rows, cols = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for start in range(0, matched.shape[0], CHUNK):
        part = slice(start, start + CHUNK)
        row, col = router(matched[part], audience[part], group[part])
        rows.append(row + start)
        cols.append(col)
    return np.concatenate(rows), np.concatenate(cols)
