"""A semantic plan: channels on an overlay of brokers, and the rule by which a source sends a message to them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.model.arrays import Floats, Ints
from narrowcast.model.cost import Cost
from narrowcast.model.plan import Plan, Tables
from narrowcast.network import Paths
from narrowcast.plans.semantic.channel import Channel, ChannelRule, routed
from narrowcast.plans.semantic.cost import rates_and_cost, traversals
from narrowcast.plans.semantic.demand import OverlayDemand
from narrowcast.plans.semantic.tables.read import fields_of
from narrowcast.plans.semantic.tables.write import SAMPLE, tables_of
from narrowcast.plans.semantic.window import OverlaySystem, Window, source_brokers


class SentWindow(NamedTuple):
    """The window, the (message, channel) pairs it is sent as, and what comes of that: rates and cost."""

    seen: Window
    rows: Ints
    cols: Ints
    rates: Floats
    cost: Cost


@dataclass(frozen=True, eq=False, kw_only=True)
class SemanticPlan(Plan):
    """Channels on an overlay, and a total rule from messages to channels.

    `cost` is the sum over channels of rate × link costs of the tree (SemCast's measure), which is its term `tree`;
    the term `full`, where sources are known, also counts the way from source to rendezvous, as `bandwidth` of this
    package does, and so do the baselines. `sources` are the brokers that published, busiest first; any other
    broker sends as the nearest of them does. `quick`, with latency bounds, are the paths by delay, for messages
    that the cheapest way would make late.
    """

    kind: ClassVar[str] = "semantic"
    demand: OverlayDemand = field(repr=False)
    system: OverlaySystem = field(repr=False)
    channels: tuple[Channel, ...] = field(repr=False)
    router: ChannelRule = field(repr=False)
    sources: Ints = field(repr=False)
    quick: Paths | None = field(default=None, repr=False)

    @property
    def n_channels(self) -> int:
        """How many channels the plan has."""
        return len(self.channels)

    @property
    def method(self) -> str:
        """The variant that made the plan: `search`, or one of the paper's."""
        return str(self.parameters.get("variant", "search"))

    @property
    def max_channels(self) -> int | None:
        """How many channels the plan may have; None for any number."""
        found = self.parameters.get("max_channels")
        return None if found is None else int(found)

    @property
    def window_cost(self) -> float:
        """What the window costs in full; with no source known, on the trees alone."""
        return float(self.cost.terms.get("full", self.cost.total))

    @property
    def every_broker(self) -> tuple[str, ...]:
        """The brokers to run: all of the overlay, since newcomers join at any of them."""
        return self.broker_names

    @property
    def broker_names(self) -> tuple[str, ...]:
        """The brokers' own names, by default their numbers."""
        topology = self.system.topology
        return topology.names or tuple(str(i) for i in range(topology.n_brokers))

    @property
    def client_names(self) -> tuple[str, ...]:
        """The clients' own names, by default their numbers."""
        return tuple(self.demand.names or map(str, range(len(self.system.clients))))

    @cached_property
    def _source_group(self) -> Ints:
        """Per broker the nearest broker that published in the window (of several the first by number)."""
        if self.sources.size == 0:
            return np.zeros(self.system.topology.n_brokers, np.int64)
        order = np.argsort(self.sources)
        nearest: Ints = order[np.argmin(self.system.paths.distance[:, self.sources[order]], axis=1)]
        return nearest

    def groups_of(self, brokers: Ints) -> Ints:
        """For each of these brokers, which of `sources` it sends as: the nearest that published."""
        return self._source_group[brokers]

    def route(self, messages: Any, sources: ArrayLike | None = None) -> tuple[Ints, Ints]:
        """Where the sources send these messages.

        Whoever wants a message is at a gateway of one of its channels, whether such a message was
        ever seen or not.

        Parameters
        ----------
        messages : an Arrow table
        sources : the publisher's broker of each message, or one for all; by default the window's busiest one

        Returns
        -------
        (message index, channel index) pairs, sorted
        """
        n = messages.num_rows
        group = np.zeros(n, np.int64)
        if sources is not None:
            group = self.groups_of(source_brokers(self.system, sources, n))
        matched = self.system.match(messages)
        return routed(self.router, matched, self.system.audience(matched), group)

    @cached_property
    def sent(self) -> SentWindow:
        """The window of the demand, sent by this plan."""
        seen = self.demand.seen(self.system, self.parameters.get("half_life"))
        group = np.zeros(seen.source.size, np.int64)
        if seen.sources.size:
            group = self.groups_of(seen.sources[seen.source])
        rows, cols = routed(self.router, seen.matched, seen.audience, group)
        return SentWindow(seen, rows, cols, *rates_and_cost(self.system, self.quick, self.channels, seen, rows, cols))

    def rated_by(self, messages: Any, sources: ArrayLike | None = None) -> SemanticPlan:
        """The same channels and rule for another window: rates and cost are those of these messages."""
        demand = replace(self.demand, messages=messages, sources=sources, statistics=None)
        other = replace(self, demand=demand, inputs={}, checks={}, written=None)
        rates = other.sent.rates.tolist()
        channels = tuple(replace(channel, rate=rate) for channel, rate in zip(self.channels, rates, strict=True))
        return replace(other, channels=channels, cost=other.sent.cost)

    def sample(self) -> tuple[Any, Ints | None]:
        """At most `SAMPLE` messages of the window, evenly spread, and the broker of each as far as it is known."""
        messages, brokers = self.demand.messages, self.demand.brokers(self.system)
        if messages is None or messages.num_rows <= SAMPLE:
            return messages, brokers
        some = np.unique(np.linspace(0, messages.num_rows - 1, SAMPLE).astype(np.int64))
        return messages.take(some), None if brokers is None else brokers[some]

    def _to_tables(self) -> Tables:
        return tables_of(self)

    @classmethod
    def from_tables(cls, tables: Tables) -> SemanticPlan:
        """The plan that these tables say, as `to_tables` wrote them."""
        return cls(**fields_of(tables))


RESULT = SemanticPlan


def bandwidth(plan: SemanticPlan, messages: Any, sources: ArrayLike) -> float:
    """Link costs paid by these messages, the way from each source to the rendezvous included.

    Parameters
    ----------
    plan : a semantic plan
    messages : an Arrow table
    sources : the broker of each message's publisher, or one broker for all

    Returns
    -------
    the sum; with links of cost 1 the number of link traversals

    >>> import narrowcast as nc, pyarrow as pa
    >>> line, messages = nc.Topology([(0, 1), (1, 2)]), pa.table({"x": [1, 2]})
    >>> bandwidth(nc.semantic.plan(line, ["x > 1"], [(0, 2)], messages, sources=0), messages, 0)
    2.0
    """
    brokers = source_brokers(plan.system, sources, messages.num_rows)
    rows, cols = plan.route(messages, brokers)
    return float(traversals(plan.system.paths, plan.quick, plan.channels, rows, cols, brokers).sum())
