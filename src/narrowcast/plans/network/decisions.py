"""What is decided in a network, as arrays of indices, and the fixed part of the problem beside it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.model.network_demand import NetworkDemand
from narrowcast.network.paths import Paths, shortest_paths
from narrowcast.plans.network.prices import GB, HOUR, MILLION, NetworkPrices
from narrowcast.plans.network.queries import thrown_away


@dataclass(frozen=True, eq=False)
class Site:
    """One site by itself: flows and users are numbered within it; prices are per hour of one message a second."""

    index: int
    flows: Ints  # their numbers in the network
    users: Ints
    pairs: Ints  # the numbers of its wishes in the network's interest
    flow: Ints  # of each wish
    user: Ints
    rates: Floats
    host: Ints  # of each user
    can: Bools  # of each host: multicast
    limit: Ints  # of each host: the most groups it may join, 0 without multicast
    groups: int
    sessions: int
    alpha: float
    beta: float
    send: float
    group: float

    @cached_property
    def audience(self) -> Ints:
        return np.bincount(self.flow, minlength=self.flows.size)


@dataclass(frozen=True, eq=False)
class SitePlan:
    """The session of each flow of a site (−1: none), the group of each session, and the wishes sent by unicast."""

    session_of: Ints
    group_of: Ints
    alone: Bools


@dataclass(frozen=True, eq=False)
class Decisions:
    """The whole: a channel for each flow (−1: none), a tree of links for each channel, filters, direct ways, sites.

    `direct` are numbers flow · sites + site: there the subscribers get the flow by unicast straight from its source.
    """

    channel_of: Ints
    trees: tuple[Ints, ...]
    filters: Ints
    direct: Ints
    sites: tuple[SitePlan, ...]


@dataclass(frozen=True, eq=False)
class NetworkProblem:
    """A demand with prices and budgets, and what every method needs to know of it."""

    demand: NetworkDemand
    prices: NetworkPrices = field(default_factory=NetworkPrices)
    channels: int = 32
    filters: int = 4
    filter_delay: float = 0.0

    @cached_property
    def link_price(self) -> Floats:
        """Of each link, per hour of one byte a second."""
        return self.demand.topology.cost * (HOUR / GB)

    @property
    def send_price(self) -> float:
        """Of one copy a second, per hour."""
        return self.prices.price_send * HOUR / MILLION

    @cached_property
    def by_cost(self) -> Paths:
        return shortest_paths(self.demand.topology, "cost")

    @cached_property
    def by_delay(self) -> Paths:
        return shortest_paths(self.demand.topology, "delay")

    @cached_property
    def link_of(self) -> dict[tuple[int, int], int]:
        """The number of the link between two neighbours, both ways."""
        ends = self.demand.topology.edges.tolist()
        return {(u, v): at for at, (u, v) in enumerate(ends)} | {(v, u): at for at, (u, v) in enumerate(ends)}

    @cached_property
    def tightest(self) -> Any:
        """Flows × sites, dense: the tightest bound on the backbone alone (ms); NaN where nobody wants the flow."""
        d = self.demand
        least = np.full((d.interest.n_flows, d.n_sites), np.inf)
        site = d.site_of[d.interest.users]
        np.minimum.at(least, (d.interest.flow_of_pair, site), (d.bound - d.lan_delay[d.site_of])[d.interest.users])
        least[~self.wanted] = np.nan
        return least

    @cached_property
    def wanted(self) -> Any:
        """Flows × sites, dense: whether somebody there wants it."""
        return self.demand.wishes.toarray() > 0

    @cached_property
    def remote(self) -> Any:
        """Flows × sites, dense: wanted there, and not the site where it enters."""
        far = self.wanted.copy()
        far[np.arange(far.shape[0]), self.demand.source] = False
        return far

    @cached_property
    def extraction(self) -> Floats:
        """Of each site, what its clients spend in an hour on rows of merged answers that they throw away."""
        return thrown_away(self.demand) * self.demand.beta * self.prices.price_cpu

    @cached_property
    def sites(self) -> tuple[Site, ...]:
        return tuple(self._site(s) for s in range(self.demand.n_sites))

    def _site(self, s: int) -> Site:
        d, interest = self.demand, self.demand.interest
        pairs = self._pairs_by_site[1][self._pairs_by_site[0][s] : self._pairs_by_site[0][s + 1]]
        flows, flow = np.unique(interest.flow_of_pair[pairs], return_inverse=True)
        users, user = np.unique(interest.users[pairs], return_inverse=True)
        hosts, host = np.unique(d.host[users], return_inverse=True)
        can = d.multicast[hosts] & (d.groups[s] > 0) & (d.sessions[s] > 0)
        most = int(d.joins_per_host[s])
        limit = np.where(can, int(d.groups[s]) if most < 0 else most, 0)
        return Site(
            s, flows, users, pairs, flow.astype(np.int64), user.astype(np.int64), interest.rates[flows],
            host.astype(np.int64), can & (limit > 0), limit, int(d.groups[s]), int(d.sessions[s]),
            float(d.alpha[s]) * self.prices.price_cpu, float(d.beta[s]) * self.prices.price_cpu, self.send_price,
            self.prices.price_group,
        )  # fmt: skip

    @cached_property
    def _pairs_by_site(self) -> tuple[Ints, Ints]:
        site = self.demand.site_of[self.demand.interest.users]
        ends = np.concatenate(([0], np.cumsum(np.bincount(site, minlength=self.demand.n_sites))))
        return ends, np.argsort(site, kind="stable")

    def path(self, u: int, v: int, quick: bool) -> list[int]:
        """The links of the cheapest (or the quickest) way between two brokers."""
        walk = (self.by_delay if quick else self.by_cost).path(u, v)
        return [self.link_of[a, b] for a, b in itertools.pairwise(walk)]
