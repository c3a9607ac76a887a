"""The optimal placement of k filters, with the whole curve of traffic against filters."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from narrowcast.errors import UnsupportedError
from narrowcast.model import Tree
from narrowcast.plans.filters.cost import traffic
from narrowcast.plans.filters.kernels.optimum import Layout, curve, layout, recover
from narrowcast.plans.filters.methods.flip import improve
from narrowcast.plans.filters.methods.price import search
from narrowcast.plans.filters.problem import Walked, count, flow_array, traffic_objective, walked
from narrowcast.plans.filters.result import FiltersPlan, TreeDemand, placed

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
METHODS = ("auto", "exact", "price")

# The exact method is chosen up to these: some seconds on one core, and this much memory.
WORK_LIMIT = 3e9
MEMORY_LIMIT = 2 << 30
# Vertices looked at when moves of the heuristic polish what the price search left open.
POLISH_LIMIT = 2e7


def place(tree: Tree, flow: ArrayLike, k: int, *, method: str = "auto") -> FiltersPlan:
    """Place at most k filters so that the total traffic is least.

    "exact" runs the paper's dynamic program over the flows that can arrive at each vertex and
    gives the optimum for every number of filters 0..k, in O(k · Σ depth). "price" charges for each
    filter instead and searches the charge, O(n log n) per step at any depth: an optimum at the k it
    hits, a lower bound and a small gap elsewhere. "auto" measures the exact method's time and
    memory beforehand and takes it while it fits. The source sends only what somebody wants; that
    is not counted as a filter. Content-based multicast, §4.

    >>> import narrowcast as nc
    >>> tree = nc.Tree([-1, 0, 0, 1, 1, 2, 2])
    >>> r = nc.filters.place(tree, [4, 2, 3, 1, 1, 2, 2], k=2)
    >>> r.filters.tolist(), r.traffic, r.curve.tolist(), r.method
    ([0, 1], 13.0, [24.0, 15.0, 13.0], 'exact')
    """
    if method not in METHODS:
        raise UnsupportedError(f"method must be one of {', '.join(METHODS)}, got {method!r}", works=METHODS)
    k, f = count("k", k), flow_array(tree, flow)
    way = walked(tree, f, traffic_objective(tree))
    most = min(k, int(way.core.can.sum()))
    plan = layout(way.core, most)
    if method == "exact" or (method == "auto" and fits(plan)):
        filters, best = _exact(way, most, plan)
        bound, method = best, "exact"
    else:
        filters, best, bound = _priced(tree, f, way, most)
        method = "price"
    total = traffic(tree, f, filters)
    if method == "exact":
        best[-1] = total  # the same number, added up in one order
    best, bound = (np.append(a, np.full(k - most, a[-1])) for a in (best, bound))
    return placed(
        TreeDemand(tree, f),
        filters,
        {"objective": "traffic", "method": method, "k": k},
        total=total,
        lower_bound=min(float(bound[-1]), total),
        curve=best,
        curve_bound=np.minimum(bound, best),
    )


def fits(plan: Layout) -> bool:
    """Whether the exact method stays within its limits of time and memory."""
    memory = 8 * plan.stack_cells + 4 * (plan.split_cells + plan.threshold_cells)
    return plan.work <= WORK_LIMIT and memory <= MEMORY_LIMIT


def _exact(way: Walked, k: int, plan: Layout) -> tuple[Ints, Floats]:
    values, threshold, split = curve(way.core, k, plan)
    return way.filters(recover(way.core, plan, threshold, split, k)), values


def _priced(tree: Tree, f: Floats, way: Walked, k: int) -> tuple[Ints, Floats, Floats]:
    mask, best, bound = search(way, k)
    filters = way.filters(mask)
    if best[-1] > bound[-1]:
        polished = improve(tree, f, filters, moves=min(k, int(POLISH_LIMIT // tree.n)), k=k)
        filters, best[-1] = polished.filters, min(best[-1], polished.after)
    return filters, best, bound
