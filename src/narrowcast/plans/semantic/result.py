"""A semantic plan: its channels, and the rule by which a source sends a message to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.network import Paths
from narrowcast.plans.semantic.content import Content, expression
from narrowcast.plans.semantic.methods.rendezvous import way_costs
from narrowcast.plans.semantic.window import System, Wanted, source_brokers

CHUNK = 4096


@dataclass(frozen=True, eq=False)
class Channel:
    """Content, the gateways it reaches, and the tree from its rendezvous broker to them.

    `edges` holds a row (parent, child) per link, `link_cost` their sum: what one message costs on the tree.
    `rate` counts messages of the window. `kind` says what it is for: audience, fallback, hierarchy,
    common, noise or merged.
    """

    gateways: tuple[int, ...]
    rendezvous: int
    edges: NDArray[np.int32]
    rate: float
    link_cost: float
    kind: str
    content: Callable[[], Content] = field(repr=False)
    profiles: tuple[Wanted, ...] = field(repr=False)
    allowed: float = np.inf
    """How long a message may take to the rendezvous so that no client's latency bound is broken."""

    @cached_property
    def expression(self) -> Any:
        """Its content as a Profile. Built on first use; it is as long as the profiles it is made of."""
        return expression(self.content(), self.profiles)


class Router(Protocol):
    """From what messages match, who wants them and which source group sends them to (message, channel) pairs."""

    def __call__(self, matched: Any, audience: Bools, source: Ints) -> tuple[Ints, Ints]: ...


@dataclass(frozen=True, eq=False)
class SemanticPlan:
    """Channels on an overlay, and a total rule from messages to channels.

    `cost` is the sum over channels of rate × link costs of the tree (SemCast's measure); `bandwidth` of
    this package also counts the way from source to rendezvous.
    """

    system: System = field(repr=False)
    channels: tuple[Channel, ...] = field(repr=False)
    variant: str
    cost: float
    sources: Ints = field(repr=False)
    router: Router = field(repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict, repr=False)
    bounds: Floats | None = field(default=None, repr=False)
    """The latency bound of each client, inf for none."""
    quick: Paths | None = field(default=None, repr=False)
    """With bounds, the paths by delay, for messages that the cheapest way would make late."""

    @property
    def n_channels(self) -> int:
        return len(self.channels)

    @cached_property
    def _source_group(self) -> Ints:
        """Per broker the nearest broker that published in the window: it sends as that one does."""
        if self.sources.size == 0:
            return np.zeros(self.system.topology.n_brokers, np.int64)
        nearest: Ints = np.argmin(self.system.paths.distance[:, self.sources], axis=1)
        return nearest

    def groups_of(self, brokers: Ints) -> Ints:
        return self._source_group[brokers]

    def route(self, messages: Any, sources: ArrayLike | None = None) -> tuple[Ints, Ints]:
        """(message index, channel index) pairs, sorted: where the sources send these messages.

        Whoever wants a message is at a gateway of one of its channels, whether such a message was
        ever seen or not. Without `sources` messages come from the window's busiest one.
        """
        n = messages.num_rows
        group = np.zeros(n, np.int64)
        if sources is not None:
            group = self.groups_of(source_brokers(self.system, sources, n))
        matched = self.system.match(messages)
        return routed(self.router, matched, self.system.audience(matched), group)


def routed(router: Router, matched: Any, audience: Bools, group: Ints) -> tuple[Ints, Ints]:
    """What a router says of many messages, some at a time."""
    rows, cols = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for start in range(0, matched.shape[0], CHUNK):
        part = slice(start, start + CHUNK)
        row, col = router(matched[part], audience[part], group[part])
        rows.append(row + start)
        cols.append(col)
    return np.concatenate(rows), np.concatenate(cols)


def traversals(plan: SemanticPlan, rows: Ints, cols: Ints, brokers: Ints) -> Floats:
    """Per routed pair: the way from the message's source to the rendezvous, and the tree."""
    root = np.array([channel.rendezvous for channel in plan.channels], np.int64)
    tree = np.array([channel.link_cost for channel in plan.channels], np.float64)
    if not cols.size:
        return np.zeros(0)
    pairs = (brokers[rows], root[cols])
    if plan.quick is None:
        return np.asarray(plan.system.paths.distance[pairs] + tree[cols])
    allowed = np.array([channel.allowed for channel in plan.channels], np.float64)
    way = way_costs(plan.system.paths, plan.quick, pairs, allowed[cols])
    # Where not even the quickest way is in time, it is the best there is.
    return np.where(np.isfinite(way), way, plan.quick.cost[pairs]) + tree[cols]


def bandwidth(plan: SemanticPlan, messages: Any, sources: ArrayLike) -> float:
    """Link costs paid by these messages, the way from each source to the rendezvous included.

    `sources` is the broker of each message's publisher, or one broker for all. With links of cost 1
    it counts link traversals.
    """
    brokers = source_brokers(plan.system, sources, messages.num_rows)
    rows, cols = plan.route(messages, brokers)
    return float(traversals(plan, rows, cols, brokers).sum())


def rates(n_channels: int, cols: Ints, weight: Sequence[float] | Floats) -> Floats:
    """The weight routed to each channel."""
    return np.bincount(cols, weights=np.asarray(weight), minlength=n_channels).astype(np.float64)
