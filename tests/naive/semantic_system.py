"""Random small systems, and what must hold of any plan for them, by definition."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

import narrowcast as nc
from naive.paths import distances, tree_faults

COLOURS = ["red", "green", "blue", None]


@dataclass
class Small:
    topology: nc.Topology
    profiles: list[nc.Profile]
    clients: list[tuple[int, int]]
    window: pa.Table
    sources: Any
    later: pa.Table
    later_sources: Any


def profile_text(rng: np.random.Generator) -> str:
    a, b = sorted(rng.integers(0, 20, 2).tolist())
    parts = [
        f"x BETWEEN {a} AND {b}",
        f"x > {a}",
        f"x < {b} OR x IS NULL",
        f"colour = '{rng.choice(['red', 'green'])}'",
        f"colour IN ('red', 'blue') AND x >= {a}",
        f"NOT (x = {a})",
        f"colour LIKE '{rng.choice(['r', 'b'])}%' OR x = {b}",
    ]
    return str(rng.choice(parts))


def messages(rng: np.random.Generator, n: int, spread: int) -> pa.Table:
    x = [None if rng.random() < 0.1 else int(v) for v in rng.integers(0, spread, n)]
    return pa.table({"x": pa.array(x, pa.int64()), "colour": pa.array(rng.choice(COLOURS, n).tolist(), pa.string())})


def small_system(seed: int) -> Small:
    """Up to 12 brokers, 8 profiles, 14 clients, 12 messages in the window and others after it."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 13))
    edges = [(int(rng.integers(0, i)), i) for i in range(1, n)]
    edges += [(int(u), int(v)) for u, v in rng.integers(0, n, (n, 2)) if u != v]
    cost = rng.integers(1, 5, len(edges)) if rng.random() < 0.7 else None
    profiles = [nc.Profile.parse(profile_text(rng)) for _ in range(rng.integers(1, 9))]
    n_clients = int(rng.integers(0 if rng.random() < 0.05 else 1, 15))
    clients = [(int(rng.integers(len(profiles))), int(rng.integers(n))) for _ in range(n_clients)]
    in_window = int(rng.integers(0 if rng.random() < 0.1 else 1, 13))
    window, later = messages(rng, in_window, 12), messages(rng, 10, 22)
    one = rng.random() < 0.5
    some = rng.integers(0, n, 3)
    return Small(
        nc.Topology(edges, cost=cost, n_brokers=n),
        profiles,
        clients,
        window,
        int(some[0]) if one else rng.choice(some, in_window),
        later,
        int(some[0]) if one else rng.integers(0, n, 10),  # also brokers that never published
    )


def missed(
    plan: Any, clients: list[tuple[int, int]], profiles: list[nc.Profile], table: pa.Table, sources: Any
) -> list:
    """(message, client) pairs whose gateway no channel of the message reaches."""
    rows, cols = plan.route(table, sources)
    reached: dict[int, set[int]] = {}
    for row, col in zip(rows.tolist(), cols.tolist(), strict=True):
        reached.setdefault(row, set()).update(plan.channels[col].gateways)
    return [
        (i, profile, gateway)
        for i, message in enumerate(table.to_pylist())
        for profile, gateway in clients
        if profiles[profile].matches(message) and gateway not in reached.get(i, set())
    ]


def channel_faults(plan: Any) -> list[str]:
    return [
        fault
        for c in plan.channels
        for fault in tree_faults(list(map(tuple, c.edges.tolist())), c.rendezvous, set(c.gateways))
    ]


def bandwidth(plan: Any, topology: nc.Topology, table: pa.Table, sources: Any) -> float:
    """Link by link, for every channel that a message is sent to."""
    distance = distances(topology, topology.cost)
    link = {tuple(sorted(e)): c for e, c in zip(topology.edges.tolist(), topology.cost.tolist(), strict=True)}
    total = 0.0
    for i, c in zip(*(part.tolist() for part in plan.route(table, sources)), strict=True):
        source, channel = sources if np.ndim(sources) == 0 else int(sources[i]), plan.channels[c]
        total += distance[source][channel.rendezvous]
        total += sum(link[tuple(sorted(edge))] for edge in channel.edges.tolist())
    return total


def cheapest_cover(router: Any, audience: Any, source: int) -> float:
    """What the rule of `search` pays at least: no channel or any one, and the blocks of whom it leaves out."""

    def blocks(wanted: Any) -> float:
        return sum(router.block_way[source, b] for b, block in enumerate(router.blocks) if (block & wanted).any())

    return min([blocks(audience), *(router.way[source, c] + blocks(audience & ~r) for c, r in enumerate(router.reach))])


def spt(small: Small, table: pa.Table, sources: Any, unicast: bool) -> float:
    """The union of shortest paths, or each of them, per message."""
    from narrowcast.network import shortest_paths

    paths = shortest_paths(small.topology)
    total = 0.0
    for i, message in enumerate(table.to_pylist()):
        source = sources if np.ndim(sources) == 0 else int(sources[i])
        wanted = {g for p, g in small.clients if small.profiles[p].matches(message)}
        links: list[tuple[int, int]] = []
        for gateway in wanted:
            walk = paths.path(gateway, source)
            links += list(pairwise(walk))
        total += sum(paths.links[link][0] for link in (links if unicast else set(links)))
    return total
