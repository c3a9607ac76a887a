"""Plans of every kind for the report's tests, with names that would do harm if a page let them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

import narrowcast as nc
from narrowcast.plans.queries.result import QueryDemand

HOSTILE = (
    "<script>document.title='owned'</script>",
    "</script><img src=x onerror=\"document.title='owned'\">",
    "\"' onmouseover='document.title=`owned`",
    "<!--<script>",
    "]]>&amp;&lt;b&gt;",
    "https://example.invalid/a.png",
    "x" * 300,
    "字 😀 \u202e right to left",
)


def interest(flows: int = 24, users: int = 14, seed: int = 0) -> nc.Interest:
    rng = np.random.default_rng(seed)
    flow, user = np.nonzero(rng.random((flows, users)) < 0.3)
    names = [f"{HOSTILE[i % len(HOSTILE)]}{i if i >= len(HOSTILE) else ''}" for i in range(max(flows, users))]
    rates = np.round(rng.exponential(10, flows) + 1, 2)
    return nc.Interest.from_pairs(flow, user, rates, flow_names=names[:flows], user_names=names[:users])


def channels() -> nc.Plan:
    made = nc.channels.plan(interest(), groups=4, sessions=7, method="gf")
    inputs = {HOSTILE[0]: "a" * 64, "interest": "b" * 64}
    return replace(made, inputs=inputs, checks={"sound": True})


def hybrid() -> nc.Plan:
    return nc.channels.hybrid(interest(seed=1), groups=3, unicast="greedy-pair", cap=0.4, seed=0)


def filters() -> nc.Plan:
    demand = nc.workloads.tree_demand(kind="uniform", p=0.2, seed=0)
    names = [HOSTILE[i] if i < len(HOSTILE) else f"router {i}" for i in range(demand.tree.n)]
    tree = nc.Tree(demand.tree.parents, names=names)
    return nc.filters.place(tree, demand.flow, 6)


def queries() -> nc.Plan:
    boxes = nc.workloads.rectangles(n=30, seed=0)
    names = [HOSTILE[i] if i < len(HOSTILE) else f"q{i}" for i in range(len(boxes))]
    return nc.plan(QueryDemand(boxes, (HOSTILE[0], "lon"), names), "queries")


def semantic() -> nc.Plan:
    """A ring of brokers with a chord; six profiles at six gateways, fewer channels than audiences."""
    names = [*HOSTILE[:3], *(f"broker {i}" for i in range(3, 8))]
    topology = nc.Topology([*((i, (i + 1) % 8) for i in range(8)), (0, 4)], names=names)
    profiles = ["x < 4", "x > 2", "x BETWEEN 1 AND 6", "x > 7", "x = 5", "x < 9 AND x > 3"]
    window = pa.table({"x": np.arange(200) % 10})
    return nc.semantic.plan(
        topology, profiles, [(p, 2 + p) for p in range(6)], window, sources=0, seed=0, max_channels=3
    )


def network() -> nc.Plan:
    """Three sites of a generated bank; they and their gateways have hostile names."""
    demand = nc.workloads.network(sites=3, users=20, symbols=60, seed=0)
    t = demand.topology
    names = np.array([f"broker {i}" for i in range(t.n_brokers)], object)
    names[demand.gateway] = HOSTILE[:3]
    topology = nc.Topology(t.edges, t.cost, t.delay, n_brokers=t.n_brokers, names=names.tolist())
    return nc.plan(replace(demand, sites=HOSTILE[:3], topology=topology), "network", channels=3)


PLANS = {
    "channels": channels,
    "hybrid": hybrid,
    "filters": filters,
    "queries": queries,
    "semantic": semantic,
    "network": network,
}
