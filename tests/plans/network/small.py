"""Small networks for exhaustive search: a few sites and brokers, a few flows, awkward in every way."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import narrowcast as nc
from narrowcast.model.network_demand import NetworkDemand
from narrowcast.plans.network.queries import AskedQueries
from narrowcast.plans.queries.result import QueryDemand


def small_network(seed: int, sites: int = 3, flows: int = 4) -> NetworkDemand:
    """Sites on a ring with a chord or a hub, some without multicast, costs of the same order everywhere."""
    rng = np.random.default_rng(seed)
    n_sites, n_flows = int(rng.integers(2, sites + 1)), int(rng.integers(2, flows + 1))
    n_brokers = n_sites + int(rng.integers(0, 3))
    ring = [(b, (b + 1) % n_brokers) for b in range(n_brokers if n_brokers > 2 else 1)]
    chords = [(0, b) for b in range(2, n_brokers - 1) if rng.random() < 0.5]
    edges = np.array(ring + chords)
    topology = nc.Topology(
        edges, rng.uniform(5, 40, len(edges)), rng.uniform(1, 5, len(edges)),
        n_brokers=n_brokers, names=[f"b{i}" for i in range(n_brokers)],
    )  # fmt: skip
    n_users = int(rng.integers(2, 6))
    wants = rng.random((n_flows, n_users)) < 0.5
    wants[0, 0] = True
    flow, user = np.nonzero(wants)
    interest = nc.Interest.from_pairs(
        flow, user, rng.uniform(500, 4000, n_flows), n_users=n_users,
        flow_names=[f"f{k}" for k in range(n_flows)], user_names=[f"u{u}" for u in range(n_users)],
    )  # fmt: skip
    n_hosts = n_sites + 1
    host_site = np.append(np.arange(n_sites), rng.integers(n_sites))
    groups = rng.integers(0, 3, n_sites)
    return NetworkDemand(
        topology, interest, sites=tuple(f"S{s}" for s in range(n_sites)), gateway=rng.permutation(n_brokers)[:n_sites],
        groups=groups, sessions=np.where(groups > 0, groups + rng.integers(0, 2, n_sites), 0),
        hosts=tuple(f"h{h}" for h in range(n_hosts)), host_site=host_site, host=rng.integers(n_hosts, size=n_users),
        source=rng.integers(n_sites, size=n_flows), multicast=rng.random(n_hosts) < 0.8,
        size=rng.uniform(0.01, 0.2, n_flows), lan_delay=rng.uniform(0, 1, n_sites),
        bound=np.where(rng.random(n_users) < 0.2, 60.0, np.inf),
        can_filter=rng.random(n_brokers) < 0.7, key=("symbol",),
    )  # fmt: skip


def small_queries(seed: int, queries: int = 5, sites: int = 3, flows: int = 3) -> NetworkDemand:
    """A small network whose subscribers also ask overlapping ranges of one table."""
    demand, rng = small_network(seed, sites, flows), np.random.default_rng([seed, 1])
    n = int(rng.integers(2, queries + 1))
    low = 30.0 * rng.integers(0, 2, (n, 1)) + rng.uniform(0, 8, (n, 2))
    boxes = np.stack([low, low + rng.uniform(30, 50, (n, 2))], axis=-1)
    asked = QueryDemand(
        boxes, ("x", "y"), tuple(f"q{i}" for i in range(n)),
        tuple(f"u{u}" for u in rng.integers(demand.interest.n_users, size=n)),
    )  # fmt: skip
    every = np.where(rng.random(n) < 0.8, 1, 2)
    row_bytes = float(rng.choice([0.01, 0.1, 1.0]))
    return replace(demand, queries=AskedQueries(asked, demand.sites[0], every, period_s=1.0, row_bytes=row_bytes))
