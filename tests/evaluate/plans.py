"""Small random plans of every kind, as the commands make them."""

from __future__ import annotations

from typing import Any

import numpy as np

import narrowcast as nc
from naive.semantic_system import small_system
from narrowcast.model.plan import Tables
from narrowcast.plans.queries.result import QueryDemand
from narrowcast.plans.semantic.plan import METHODS as VARIANTS

KINDS = ("channels", "hybrid", "filters", "queries", "semantic")


def some_interest(rng: np.random.Generator, n_flows: int = 0, n_users: int = 0) -> nc.Interest:
    """Rates of which no sum is another's, so that no change can leave the cost as it was."""
    n_flows, n_users = n_flows or int(rng.integers(3, 14)), n_users or int(rng.integers(2, 8))
    wanted = rng.random((n_flows, n_users)) < 0.4
    wanted[0, 0] = True
    flow, user = np.nonzero(wanted)
    names = {"flow_names": [f"f{i}" for i in range(n_flows)], "user_names": [f"u{i}" for i in range(n_users)]}
    return nc.Interest.from_pairs(flow, user, rng.uniform(1, 2, n_flows), n_users=n_users, **names)


def channels_plan(seed: int, interest: nc.Interest | None = None, **limits: Any) -> Tables:
    rng = np.random.default_rng([seed, 1])
    interest = some_interest(rng) if interest is None else interest
    prices = {"alpha": float(rng.uniform(0.5, 2)), "beta": float(rng.uniform(0.5, 2))}
    method = "search" if limits else str(rng.choice(["gf", "sf", "random"]))
    bound = nc.channels.Limits(**limits) if limits else None
    found = nc.channels.plan(interest, groups=3, sessions=5, method=method, seed=seed, limits=bound, **prices)
    return found.to_tables()


def hybrid_plan(seed: int, interest: nc.Interest | None = None) -> Tables:
    """Every fourth with sessions."""
    rng = np.random.default_rng([seed, 2])
    interest = some_interest(rng) if interest is None else interest
    unicast = str(rng.choice(["none", "greedy-pair", "greedy-flow", "reverse"]))
    weights = tuple(rng.uniform(0.5, 2, 3).tolist())
    if seed % 4 == 3:
        made = nc.channels.hybrid(interest, 2, weights=weights, sessions=4, beta=float(rng.uniform(0.1, 2)), seed=seed)
    else:
        made = nc.channels.hybrid(interest, groups=2, unicast=unicast, weights=weights, seed=seed)
    return made.to_tables()


def filters_plan(seed: int) -> Tables:
    rng = np.random.default_rng([seed, 3])
    n = int(rng.integers(4, 16))
    parents = [-1, *(int(rng.integers(v)) for v in range(1, n))]
    tree = nc.Tree(parents, link_cost=rng.uniform(1, 2, n), names=[f"v{v}" for v in range(n)])
    leaf, item = np.nonzero(rng.random((tree.leaves.size, 8)) < 0.4)
    flow = nc.filters.flow_from_demand(tree, tree.leaves[leaf], item, rng.uniform(1, 2, 8))
    if rng.random() < 0.5:
        return nc.filters.place(tree, flow, k=int(rng.integers(0, 4))).to_tables()
    return nc.filters.place_for_delay(tree, flow, filter_delay=float(rng.uniform(0, 2)), link_delay=1.5).to_tables()


def queries_plan(seed: int, boxes: Any = None) -> Tables:
    rng = np.random.default_rng([seed, 4])
    if boxes is None:
        boxes = some_boxes(rng)
    procedure = str(rng.choice(["rectangle", "polygon", "exact"]))
    prices = {"km": float(rng.uniform(0.05, 3)), "kt": 0.01, "ku": 0.002, "ka": 0.1}
    return nc.plan(QueryDemand(boxes, ("x", "y")), "queries", procedure=procedure, **prices).to_tables()


def some_boxes(rng: np.random.Generator, n: int = 0) -> Any:
    low = rng.uniform(0, 30, (n or int(rng.integers(2, 9)), 2))
    return np.stack([low, low + rng.uniform(2, 12, low.shape)], axis=2)


def semantic_plan(seed: int, offset: int = 0) -> Tables:
    small = small_system(seed)
    variant = VARIANTS[(seed + offset) % len(VARIANTS)]
    args = (small.topology, small.profiles, small.clients, small.window, small.sources)
    made = nc.semantic.plan(*args, variant=variant, max_channels=(None, 2, 4)[seed % 3], seed=seed)
    return made.to_tables()


MAKERS: dict[str, Any] = {
    "channels": channels_plan,
    "hybrid": hybrid_plan,
    "filters": filters_plan,
    "queries": queries_plan,
    "semantic": semantic_plan,
}
