"""A bank: sites of every size on a real backbone, and market data that is wanted mostly near where it is made."""

from __future__ import annotations

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model import Interest, Topology
from narrowcast.model.arrays import Floats, Ints
from narrowcast.model.network_demand import NetworkDemand
from narrowcast.workloads.checks import generator, number, share, whole
from narrowcast.workloads.draw import distinct_ranks
from narrowcast.workloads.market import market_shape
from narrowcast.workloads.names import tickers
from narrowcast.workloads.real_networks import real_network

RATE = 50_000.0  # messages a second in all
SIZE = 90.0  # bytes: the mean over trades, quotes and news
KM_PER_MS = 200.0  # light in glass
PER_GB, PER_GB_KM = 0.01, 0.00002
PER_HOST = 8  # subscribers
BOUNDED = 0.05  # of the subscribers have a latency bound


def network(
    sites: int = 10,
    users: int = 500,
    symbols: int = 20_000,
    markets: int = 10,
    wanted: int = 60,
    locality: float = 0.6,
    groups: int = 20,
    sessions: int = 100,
    unicast_hosts: float = 0.05,
    model: str = "sndlib/cost266",
    seed: int = 0,
) -> NetworkDemand:
    """A bank with sites at the busiest places of a real network, and desks that watch symbols of a few markets.

    Parameters
    ----------
    sites : how many; their sizes fall as 1/rank, so that some are a handful of people
    users : subscribers in all
    symbols, markets : as in `market`; the data of a market enters at the site where it is at home
    wanted : symbols that a subscriber wants, about
    locality : the share of subscribers whose first market is the one at home in their site or nearest to it
    groups, sessions : multicast budget of the largest site; smaller sites have less, every sixth has none
    unicast_hosts : the share of hosts that cannot do multicast
    model : a network of topohub with at least as many places as sites

    Returns
    -------
    NetworkDemand : what `narrowcast.plan(demand, "network")` takes

    >>> network(sites=3, users=40, symbols=500, seed=1)
    NetworkDemand(3 sites, 37 brokers, 500 flows, 40 subscribers, 2,197 wishes)
    """
    whole("sites", sites, low=1)
    whole("users", users, low=1)
    whole("wanted", wanted, low=1)
    whole("groups", groups)
    whole("sessions", sessions)
    number("locality", locality, low=0.0, high=1.0)
    share("unicast_hosts", unicast_hosts)
    rng = generator(seed)
    place = real_network(model)
    if place.n < sites:
        raise InputError(f"sites must be at most {place.n}, the places of {model}, got {sites}", name="sites")
    km = np.maximum(place.length_km, 1.0)
    topology = Topology(place.edges, PER_GB + PER_GB_KM * km, km / KM_PER_MS, n_brokers=place.n, names=place.names)
    degree = np.bincount(place.edges.ravel(), minlength=place.n)
    gateway = np.argsort(-degree, kind="stable")[:sites]
    weight = 1.0 / np.arange(1, sites + 1)
    site_of_user = np.sort(rng.choice(sites, users, p=weight / weight.sum()))
    host, host_site = _hosts(site_of_user, sites)
    interest, market_of = _interest(rng, site_of_user, symbols, markets, wanted, locality)
    source = market_of % sites
    scale = np.sqrt(weight)
    budget = np.maximum(2, np.round(groups * scale)).astype(np.int64)
    room = np.maximum(4, np.round(sessions * scale)).astype(np.int64)
    if sites > 5:
        budget[5::6] = room[5::6] = 0
    return NetworkDemand(
        topology,
        interest,
        sites=tuple(place.names[g] for g in gateway),
        gateway=gateway,
        groups=budget,
        sessions=room,
        hosts=tuple(f"h{i}" for i in range(host_site.size)),
        host_site=host_site,
        host=host,
        source=source,
        multicast=rng.random(host_site.size) >= unicast_hosts,
        size=np.full(symbols, SIZE),
        bound=_bounds(rng, topology, gateway, np.unique(source), site_of_user),
        lan_delay=np.full(sites, 0.1),
        can_filter=np.arange(place.n) % 2 == 0,
        key=("symbol",),
    )


def _hosts(site_of_user: Ints, sites: int) -> tuple[Ints, Ints]:
    """(host of each subscriber, site of each host): desks of a few, none across sites."""
    counts = np.bincount(site_of_user, minlength=sites)
    n_hosts = -(-counts // PER_HOST)
    first = np.concatenate(([0], np.cumsum(n_hosts)))[:-1]
    inside = np.arange(site_of_user.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return first[site_of_user] + inside // PER_HOST, np.repeat(np.arange(sites), n_hosts)


def _interest(
    rng: np.random.Generator, site_of_user: Ints, symbols: int, markets: int, wanted: int, locality: float
) -> tuple[Interest, Ints]:
    """Each subscriber wants most of its symbols in one market, often the one at home, and some in another."""
    shape = market_shape(symbols, markets)
    users = site_of_user.size
    first = np.where(rng.random(users) < locality, site_of_user % markets, rng.choice(markets, users, p=shape.p))
    second = rng.choice(markets, users, p=shape.p)
    flows, people = [], []
    for m in range(markets):
        size, begin = int(shape.sizes[m]), int(shape.first[m])
        for who, part in ((first == m, 0.75), (second == m, 0.25)):
            chosen, take = np.flatnonzero(who), min(size, max(1, round(wanted * part)))
            for row, drawn in distinct_ranks(rng, chosen.size, take, size, shape.decay):
                flows.append(begin + drawn.ravel().astype(np.int64))
                people.append(np.repeat(chosen[row : row + len(drawn)], take))
    names = tuple(tickers(shape).tolist())
    interest = Interest.from_pairs(
        np.concatenate(flows),
        np.concatenate(people),
        shape.rates * RATE,
        n_users=users,
        flow_names=names,
        user_names=tuple(f"user{u}" for u in range(users)),
    )
    return interest, shape.market_of_symbol


def _bounds(rng: np.random.Generator, topology: Topology, gateway: Ints, sources: Ints, site_of_user: Ints) -> Floats:
    """A few want it within half as much again as the quickest way from the farthest source takes."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    n, (u, v) = topology.n_brokers, topology.edges.T
    links = csr_array((np.maximum(topology.delay, np.finfo(np.float64).tiny), (u, v)), shape=(n, n))
    farthest = dijkstra(links, directed=False, indices=gateway[sources])[:, gateway].max(axis=0)
    bound: Floats = np.full(site_of_user.size, np.inf)
    some = rng.random(site_of_user.size) < BOUNDED
    bound[some] = np.round(1.5 * farthest[site_of_user[some]] + 1.0, 3)
    return bound
