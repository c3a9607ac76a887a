"""What a placement costs: total traffic and total delay (content-based multicast, §3-5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from narrowcast.model import Tree
from narrowcast.plans.filters.kernels.cost import objective as cost
from narrowcast.plans.filters.kernels.cost import tight_ancestors
from narrowcast.plans.filters.problem import delay_objective, filter_mask, flow_array, traffic_objective


def traffic(tree: Tree, flow: ArrayLike, filters: ArrayLike) -> float:
    """The total traffic T(P): Σ over the links of cost · f(A(v)), A(v) the lowest tight ancestor.

    `flow` is f(v) per vertex, `filters` the vertices P as indices or as a mask. Without filters
    every link carries the root's flow, with a filter everywhere the link into v carries f(v).
    Exact by definition; O(n). Content-based multicast, §3.2.

    >>> import narrowcast as nc
    >>> tree = nc.Tree([-1, 0, 0, 1, 1])
    >>> nc.filters.traffic(tree, [3, 2, 1, 1, 1], filters=[])
    12.0
    >>> nc.filters.traffic(tree, [3, 2, 1, 1, 1], filters=[0, 1])
    5.0
    """
    form = traffic_objective(tree)
    mask, f = filter_mask(tree, filters), flow_array(tree, flow)
    return float(cost(tree.order, tree.parents, f, form.weight, form.price, mask))


def delay(tree: Tree, flow: ArrayLike, filters: ArrayLike, *, filter_delay: float, link_delay: float) -> float:
    """The total delay D(P) over all users; divide by `tree.users.sum()` for the mean.

    A link delays by `link_delay` per unit of flow on it, a filter by `filter_delay`. A leaf counts
    as often as it has users. Exact by definition; O(n). Content-based multicast, §5.

    >>> import narrowcast as nc
    >>> tree = nc.Tree([-1, 0, 0, 1, 1])
    >>> nc.filters.delay(tree, [3, 2, 1, 1, 1], filters=[0], filter_delay=1, link_delay=1)
    12.0
    """
    form = delay_objective(tree, filter_delay, link_delay)
    mask, f = filter_mask(tree, filters), flow_array(tree, flow)
    return float(cost(tree.order, tree.parents, f, form.weight, form.price, mask))


def objective_value(tree: Tree, flow: ArrayLike, filters: ArrayLike, parameters: Mapping[str, Any]) -> float:
    """What the parameters of a plan make small, for any filters: traffic, delay, or both and a price per filter. O(n).

    >>> tree = Tree([-1, 0, 0, 1, 1])
    >>> objective_value(tree, [3, 2, 1, 1, 1], [0], {"objective": "both", "price": 2.0, "filter_delay": 1.0})
    21.0
    """
    objective = parameters.get("objective", "traffic")
    if objective == "traffic":
        return traffic(tree, flow, filters)
    late = delay(tree, flow, filters, **delays_in(parameters))
    if objective == "delay":
        return late
    a, b, price = (float(parameters.get(name, WEIGHTS[name])) for name in WEIGHTS)
    return a * traffic(tree, flow, filters) + b * late + price * int(filter_mask(tree, filters).sum())


# What a plan is made with where nobody says otherwise.
DELAYS = {"filter_delay": 0.0, "link_delay": 1.0}
WEIGHTS = {"traffic_weight": 1.0, "delay_weight": 1.0, "price": 0.0}


def delays_in(parameters: Mapping[str, Any]) -> dict[str, float]:
    """The delays of a filter and of a link among the parameters of a plan."""
    return {name: float(parameters.get(name, default)) for name, default in DELAYS.items()}


def loads(tree: Tree, flow: ArrayLike, filters: ArrayLike) -> NDArray[np.float64]:
    """What the link into each vertex carries: f(A(v)); 0 at the root, which has no link. O(n).

    >>> import narrowcast as nc
    >>> nc.filters.loads(nc.Tree([-1, 0, 0, 1, 1]), [3, 2, 1, 1, 1], filters=[0]).tolist()
    [0.0, 2.0, 1.0, 2.0, 2.0]
    """
    mask, f = filter_mask(tree, filters), flow_array(tree, flow)
    carried = f[tight_ancestors(tree.order, tree.parents, mask)]
    carried[tree.root] = 0.0
    return carried
