"""Placements whose number of filters is free: least delay, and traffic, delay and filters weighed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from narrowcast.model import Tree
from narrowcast.plans.filters.kernels.cost import objective as cost
from narrowcast.plans.filters.kernels.price import priced
from narrowcast.plans.filters.problem import (
    WeightedObjective,
    amount,
    delay_objective,
    flow_array,
    traffic_objective,
    walked,
)
from narrowcast.plans.filters.result import FiltersPlan, TreeDemand, placed

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def place_for_delay(tree: Tree, flow: ArrayLike, *, filter_delay: float, link_delay: float) -> FiltersPlan:
    """Place any number of filters so that the total delay is least.

    A filter makes the links below it faster and delays whatever passes through it. Optimal, in
    O(n log n) at any depth (content-based multicast, §5, D(v, p) by bends instead of tables).

    >>> import narrowcast as nc
    >>> tree = nc.Tree([-1, 0, 0, 1, 1, 2, 2])
    >>> r = nc.filters.place_for_delay(tree, [4, 2, 3, 1, 1, 2, 2], filter_delay=2, link_delay=1)
    >>> r.filters.tolist(), r.delay
    ([0], 28.0)
    """
    f = flow_array(tree, flow)
    form = delay_objective(tree, filter_delay, link_delay)
    delays = {"filter_delay": float(filter_delay), "link_delay": float(link_delay)}
    return _placed(tree, f, form, {"objective": "delay", "method": "exact", **delays})


def place_weighted(
    tree: Tree,
    flow: ArrayLike,
    *,
    traffic_weight: float = 1.0,
    delay_weight: float = 0.0,
    filter_delay: float = 0.0,
    link_delay: float = 0.0,
    price: float = 0.0,
) -> FiltersPlan:
    """Least traffic_weight · traffic + delay_weight · delay + price · filters.

    For when both matter and a filter costs money, which the paper names and leaves out. Optimal,
    O(n log n) at any depth. Raise `price` to get fewer filters.

    >>> import narrowcast as nc
    >>> tree = nc.Tree([-1, 0, 0, 1, 1, 2, 2])
    >>> r = nc.filters.place_weighted(tree, [4, 2, 3, 1, 1, 2, 2], price=3)
    >>> r.filters.tolist(), r.objective, r.traffic
    ([0], 18.0, 15.0)
    """
    f = flow_array(tree, flow)
    first, second = traffic_objective(tree), delay_objective(tree, filter_delay, link_delay)
    a, b = amount("traffic_weight", traffic_weight), amount("delay_weight", delay_weight)
    form = WeightedObjective(a * first.weight + b * second.weight, b * second.price + amount("price", price))
    settings = {
        "filter_delay": float(filter_delay), "link_delay": float(link_delay), "traffic_weight": a, "delay_weight": b,
        "price": float(price),
    }  # fmt: skip
    return _placed(tree, f, form, {"objective": "both", "method": "exact", **settings})


def _placed(tree: Tree, f: Floats, form: WeightedObjective, parameters: dict[str, Any]) -> FiltersPlan:
    """The cheapest placement, which is its own lower bound."""
    filters = _cheapest(tree, f, form)
    total = _cost(tree, f, form, filters)
    return placed(TreeDemand(tree, f), filters, parameters, total=total, lower_bound=total)


def _cheapest(tree: Tree, f: Floats, form: WeightedObjective) -> Ints:
    way = walked(tree, f, form)
    return way.filters(priced(way.core, way.price))


def _cost(tree: Tree, f: Floats, form: WeightedObjective, filters: Ints) -> float:
    on = np.zeros(tree.n, np.bool_)
    on[filters] = True
    return float(cost(tree.order, tree.parents, f, form.weight, form.price, on))
