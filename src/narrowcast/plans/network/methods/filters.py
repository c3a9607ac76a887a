"""Which brokers filter: on all trees together, with what each lets through as the flow (CBM, importance)."""

from __future__ import annotations

import numpy as np

from narrowcast.model.arrays import Floats
from narrowcast.plans.network.methods.backbone import BackboneTrees, Filters, RootedTree

Carried = list[tuple[RootedTree, Floats, Floats]]


def placed_filters(
    backbone: BackboneTrees, channels: list[Carried], most: int, price: float, start: Filters
) -> Filters:
    """Filters added, dropped and moved while that lowers traffic and price together."""
    able = np.flatnonzero(backbone.problem.demand.can_filter).tolist()
    chosen, cost = start, _cost(backbone, channels, start, price)
    while True:
        tried = [chosen - {v} for v in chosen]
        if len(chosen) < most:
            gains = _gains(backbone, channels, chosen)
            best = max((v for v in able if v not in chosen), key=lambda v: (gains[v], -v), default=None)
            tried += [] if best is None or gains[best] <= price else [chosen | {best}]
        for out in sorted(chosen):
            gains = _gains(backbone, channels, chosen - {out})
            best = max((v for v in able if v not in chosen), key=lambda v: (gains[v], -v), default=None)
            tried += [] if best is None else [(chosen - {out}) | {best}]
        costs = [_cost(backbone, channels, each, price) for each in tried]
        if not costs or min(costs) >= cost * (1 - 1e-12):
            return chosen
        at = int(np.argmin(costs))
        chosen, cost = tried[at], costs[at]


def _cost(backbone: BackboneTrees, channels: list[Carried], filters: Filters, price: float) -> float:
    total = price * len(filters)
    for carried in channels:
        loads, kept = backbone.loads(carried, filters)
        if not kept:
            return float("inf")
        total += float(loads @ backbone.price)
    return total


def _gains(backbone: BackboneTrees, channels: list[Carried], filters: Filters) -> Floats:
    """What one more filter at each broker takes off the links: Σ (what comes − what each child wants) · its reach."""
    gains = np.zeros(backbone.problem.demand.topology.n_brokers)
    for carried in channels:
        for tree, f, _ in carried:
            nodes, parents, links = tree.nodes.tolist(), tree.parent.tolist(), tree.link.tolist()
            through = f.tolist()
            for at in range(1, len(nodes)):
                if nodes[parents[at]] not in filters:
                    through[at] = through[parents[at]]
            reach = [0.0] * len(nodes)
            for at in range(len(nodes) - 1, 0, -1):
                up = parents[at]
                reach[at] += backbone.price[links[at]]
                if nodes[up] not in filters:
                    gains[nodes[up]] += (through[up] - float(f[at])) * reach[at]
                    reach[up] += reach[at]
    return gains
