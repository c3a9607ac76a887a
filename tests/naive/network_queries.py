"""The least cost of a small network with queries: every way to put them in sets, each planned as plain flows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

import narrowcast as nc
from narrowcast.model.network_demand import NetworkDemand
from narrowcast.plans.network.plan import make


def least_merged(demand: NetworkDemand, price_cpu: float, **options: float) -> float:
    """Answers are rectangles whose area is their rows; what clients throw away is added to the cost of the flows."""
    queries = demand.queries
    plain = replace(demand, queries=None)
    costs = []
    for sets in partitions(list(range(len(queries.every)))):
        if any(len({int(queries.every[q]) for q in members}) > 1 for members in sets):
            continue
        network, thrown = _as_flows(plain, queries, sets)
        costs.append(float(make(network, price_cpu=price_cpu, **options).cost) + price_cpu * thrown)
    return min(costs)


def partitions(things: list[int]) -> Iterator[list[list[int]]]:
    if not things:
        yield []
        return
    for rest in partitions(things[1:]):
        yield [[things[0]], *rest]
        for at in range(len(rest)):
            yield [*rest[:at], [things[0], *rest[at]], *rest[at + 1 :]]


def _area(boxes: list) -> float:
    product = 1.0
    for side in range(len(boxes[0])):
        product *= max(box[side][1] for box in boxes) - min(box[side][0] for box in boxes)
    return product


def _as_flows(demand: NetworkDemand, queries, sets: list[list[int]]) -> tuple[NetworkDemand, float]:
    n, boxes, names = demand.interest, queries.asked.boxes.tolist(), list(demand.interest.user_names)
    flow, user = n.flow_of_pair.tolist(), n.users.tolist()
    rates, size, source, thrown = n.rates.tolist(), demand.size.tolist(), demand.source.tolist(), 0.0
    for members in sets:
        often = 1 / (queries.period_s * int(queries.every[members[0]]))
        rows = _area([boxes[q] for q in members])
        parts = max(1, ceil(rows * queries.row_bytes / 48_000))
        for q in members:
            who = names.index(queries.asked.clients[q])
            flow.append(len(rates))
            user.append(who)
            thrown += often * (rows - _area([boxes[q]])) * demand.beta[demand.site_of[who]]
        rates.append(often * parts)
        size.append(rows * queries.row_bytes / parts)
        source.append(demand.sites.index(queries.site))
    interest = nc.Interest.from_pairs(flow, user, rates, n_users=n.n_users)
    return replace(demand, interest=interest, source=source, size=size), thrown
