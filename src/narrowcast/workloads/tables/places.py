"""Workloads with a place: tree demand, overlay clients and geographic queries as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from narrowcast.model import Topology
from narrowcast.model.arrays import Floats
from narrowcast.workloads.checks import number, whole
from narrowcast.workloads.checks import share as a_share
from narrowcast.workloads.overlay import overlay
from narrowcast.workloads.overlay_clients import SCALE, arcs, names_of
from narrowcast.workloads.rectangles import published_space, rectangles
from narrowcast.workloads.tables import faults, schemas
from narrowcast.workloads.tables.common import message_source, times, topology_sources
from narrowcast.workloads.tables.lists import PER_PROFILE, condition_of
from narrowcast.workloads.tables.source import TableSource, batch_rng, pick, row_batches, table_source
from narrowcast.workloads.tree_demand import TreeWorkload, tree_demand

RATE = 1000.0
ITEMS = pa.schema([("ts", schemas.TIME), ("item", pa.string()), ("size", pa.int64())])
READINGS = pa.schema(
    [
        ("ts", schemas.TIME),
        ("source", pa.string()),
        ("reading", pa.int64()),
        ("sensor", pa.string()),
        ("size", pa.int64()),
    ]
)
POINTS = pa.schema(
    [("ts", schemas.TIME), ("x", pa.float64()), ("y", pa.float64()), ("label", pa.string()), ("size", pa.int64())]
)


def tree_demand_tables(
    *,
    messages: int = 100_000,
    users: int = 64,
    seed: int = 0,
    demand: str = "uniform",
    items: int = 64,
    p: float | None = None,
    q: float | None = None,
    mean: float = 0.2,
) -> list[TableSource]:
    """A complete binary tree with a user at each leaf; `users` is rounded up to a power of two."""
    levels = (whole("users", users, low=2) - 1).bit_length() + 1
    drawn = tree_demand(demand, levels=levels, items=items, p=p, q=q, mean=mean, seed=seed)
    vertex = np.array([f"v{i}" for i in range(drawn.tree.n)])
    parent = [None if i < 0 else str(vertex[i]) for i in drawn.tree.parents]
    leaf, item = drawn.pairs()
    item_names = pa.array([f"item{j}" for j in range(items)])
    wants = {"node": vertex[leaf], "item": pick(item_names, item), "size": np.ones(item.size)}
    interior = str(vertex[0]) if drawn.tree.n > 1 else None

    def columns(batch: int, n: int) -> list[Any]:
        rng = batch_rng(seed, 3, batch)
        chosen = pick(item_names, rng.integers(items, size=n))
        return [times(rng, batch, n, RATE), chosen, rng.integers(50, 1000, n)]

    subscriptions = TableSource(
        "subscriptions",
        schemas.PLACED_SUBSCRIPTIONS,
        None,
        lambda: row_batches(schemas.PLACED_SUBSCRIPTIONS, _item_lists(drawn)),
        faults.subscription_faults(with_node=False, with_bound=False),
    )
    return [
        subscriptions,
        message_source(ITEMS, messages, columns),
        table_source("tree", {"node": vertex, "parent": parent}, schemas.TREE, faults.TREE_FAULTS),
        table_source("demand", wants, schemas.DEMAND, faults.demand_faults(interior)),
    ]


def _item_lists(drawn: TreeWorkload) -> Iterator[tuple[str, str, str]]:
    names = [f"'item{j}'" for j in range(drawn.items)]
    for i, leaf in enumerate(drawn.tree.leaves.tolist()):
        mine = [names[j] for j in np.flatnonzero(drawn.wants[i])]
        for at in range(0, len(mine), PER_PROFILE):
            yield f"user{i}", condition_of("item", mine[at : at + PER_PROFILE]), f"v{leaf}"


def overlay_tables(
    *,
    messages: int = 100_000,
    users: int = 7000,
    seed: int = 0,
    brokers: int = 600,
    model: str = "waxman",
    selectivity: float = 2.0,
    overlap: float = 0.1,
) -> list[TableSource]:
    """An overlay with clients at its gateways; a fifth of them with a latency bound that the overlay can keep."""
    topology = overlay(brokers, model, seed=seed)
    roles, names = np.array(topology.roles), names_of(topology)
    rng = batch_rng(seed, 1, 0)
    distinct = max(1, round(whole("users", users, low=1) / number("selectivity", selectivity, low=1.0)))
    profiles = pa.array(arcs(distinct, a_share("overlap", overlap), rng))
    publishers = pa.array(names[roles == "source"])
    slack, gateways = rng.choice((1.5, 2.0, 4.0), users), np.flatnonzero(roles == "gateway")
    profile, node = rng.integers(distinct, size=users), gateways[rng.integers(gateways.size, size=users)]
    bound = np.ceil(1000 * slack * farthest_source(topology)[node]) / 1000
    clients = {
        "subscriber": [f"client{i}" for i in range(users)],
        "profile": pick(profiles, profile),
        "node": pick(pa.array(names), node),
        "latency_bound": pa.array(bound, mask=rng.random(users) < 0.8),
    }
    sensors = pa.array([f"s{i}" for i in range(1000)])

    def columns(batch: int, n: int) -> list[Any]:
        rng = batch_rng(seed, 3, batch)
        return [
            times(rng, batch, n, RATE),
            pick(publishers, rng.integers(len(publishers), size=n)),
            rng.integers(SCALE, size=n),
            pick(sensors, rng.integers(len(sensors), size=n)),
            rng.integers(80, 400, n),
        ]

    bad = faults.subscription_faults(with_node=True, with_bound=True)
    subscriptions = table_source("subscriptions", clients, schemas.SUBSCRIPTIONS, bad, faults.BOUND_TEXT_FAULTS)
    return [subscriptions, message_source(READINGS, messages, columns), *topology_sources(topology)]


def farthest_source(topology: Topology) -> Floats:
    """Per broker the delay of the quickest way from the source that is farthest from it."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    n, (u, v) = topology.n_brokers, topology.edges.T
    links = csr_array((np.maximum(topology.delay, np.finfo(np.float64).tiny), (u, v)), shape=(n, n))
    farthest = np.zeros(n)
    for source in np.flatnonzero(np.array(topology.roles) == "source"):  # one by one: all at once may not fit
        farthest = np.maximum(farthest, dijkstra(links, directed=False, indices=int(source)))
    return farthest


def rectangles_tables(
    *,
    messages: int | None = None,
    users: int = 100,
    seed: int = 0,
    cf: float = 0.8,
    sf: float = 0.3,
    df: float = 100.0,
    space: float | None = None,
) -> list[TableSource]:
    """Range queries of `users` clients over points spread evenly, by default one per unit of area."""
    boxes = np.round(rectangles(users, cf, sf, df, space=space, seed=seed), 3)
    width = published_space(users) if space is None else float(space)
    texts = [f"x BETWEEN {a} AND {b} AND y BETWEEN {c} AND {d}" for (a, b), (c, d) in boxes.tolist()]
    queries = {
        "query": [f"q{i}" for i in range(users)],
        "client": [f"client{i}" for i in range(users)],
        "profile": texts,
    }
    labels = pa.array(("house", "road", "river", "tree"))

    def columns(batch: int, n: int) -> list[Any]:
        rng = batch_rng(seed, 3, batch)
        x, y = np.round(rng.uniform(0, width, (2, n)), 3)
        label = pick(labels, rng.integers(len(labels), size=n))
        return [times(rng, batch, n, RATE), x, y, label, np.full(n, 1000)]

    held = {"subscriber": queries["client"], "profile": texts}
    bad = faults.subscription_faults(with_node=False, with_bound=False)
    return [
        table_source("queries", queries, schemas.QUERIES, faults.query_faults()),
        table_source("subscriptions", held, schemas.PLAIN_SUBSCRIPTIONS, bad),
        message_source(POINTS, round(width * width) if messages is None else messages, columns),
    ]
