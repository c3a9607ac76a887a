"""A filter plan as the network would obey it: what each link of the tree carries, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.evaluate.columns import amounts, constant, numbers, places, texts
from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.model.plan import Tables

OBJECTIVES = ("traffic", "delay", "both")


@dataclass(frozen=True, eq=False)
class CarriedTree:
    """The tree with its filters; `levels` are its vertices by depth, the root alone in the first."""

    names: list[str]
    parents: Ints  # −1 at the root
    levels: list[Ints]
    flow: Floats
    load: Floats  # as the plan says; NaN where it says nothing
    link_cost: Floats
    able: Bools
    users: Floats
    filters: Bools
    objective: str
    weight: Floats  # of a unit of flow on the link into each vertex
    price: Floats  # of a filter at each vertex

    @cached_property
    def root(self) -> int:
        return int(self.levels[0][0])

    def loads(self, filters: Bools) -> Floats:
        """f(A(v)) on the link into each vertex: f of v if its parent filters, else what its parent gets."""
        carried = self.flow.copy()
        for level in self.levels[1:]:
            above = self.parents[level]
            carried[level] = np.where(filters[above], self.flow[level], carried[above])
        return carried

    def traffic(self, filters: Bools) -> float:
        below = self.parents >= 0
        return float((self.link_cost * self.loads(filters))[below].sum())

    def below(self, values: Floats) -> Floats:
        """At each vertex the sum of the values at and below it."""
        return _below(self.parents, self.levels, values)

    def total(self, filters: Bools) -> float:
        """The objective, whatever it is: weighed loads and the prices of the filters."""
        below = self.parents >= 0
        return float((self.weight * self.loads(filters))[below].sum() + self.price[filters].sum())


def tree_faults(plan: Tables) -> list[str]:
    """What keeps the tables from being a tree with filters at able vertices."""
    nodes, parents, given = (texts(plan, "trees", "node"), plan.tables["trees"]["parent"], _filters(plan))
    found = [f"node {name!r} appears twice in the tree" for name in _twice(nodes.to_pylist())]
    above = _above(plan)
    if int(parents.null_count) != 1:
        found.append(f"the tree has {parents.null_count} roots")
    lost = np.flatnonzero((above < 0) & ~parents.is_null().to_numpy())
    found += [f"parent {parents[int(v)].as_py()!r} is not a node" for v in lost]
    if not found and sum(level.size for level in _levels(above)) < above.size:
        found.append("the parents do not form a tree")
    found += [f"the filter at {name!r} appears twice" for name in _twice(given.to_pylist())]
    interior = np.isin(np.arange(above.size), above)
    for name, v in zip(given.to_pylist(), places(given, nodes), strict=True):
        if v < 0:
            found.append(f"the filter at {name!r} is not at a node of the tree")
        elif not interior[v]:
            found.append(f"the filter at {name} is not at an interior node")
    return found


def carried(plan: Tables) -> CarriedTree:
    """Read the tables of a plan of which `tree_faults` found nothing. O(vertices · log)."""
    nodes = texts(plan, "trees", "node")
    columns = plan.tables["trees"].column_names
    n, parents = len(nodes), _above(plan)
    levels = _levels(parents)
    interior = np.isin(np.arange(n), parents)
    link_cost = amounts(plan, "trees", "link_cost") if "link_cost" in columns else np.ones(n)
    users = amounts(plan, "trees", "users") if "users" in columns else np.where(interior, 0.0, 1.0)
    able = interior & (_flags(plan) if "can_filter" in columns else True)
    mask = np.zeros(n, np.bool_)
    mask[places(_filters(plan), nodes)] = True
    objective = plan.parameters.get("objective", "traffic")
    if objective not in OBJECTIVES:
        raise InputError(
            f"parameter objective must be one of {', '.join(OBJECTIVES)}, got {objective!r}", name="objective"
        )
    below = _below(parents, levels, np.where(interior, 0.0, users))
    weight, price = _form(plan, objective, link_cost, below)
    flow, load = amounts(plan, "trees", "flow"), numbers(plan, "trees", "load")
    names = nodes.to_pylist()
    return CarriedTree(names, parents, levels, flow, load, link_cost, able, users, mask, objective, weight, price)


def _form(plan: Tables, objective: str, link_cost: Floats, users_below: Floats) -> tuple[Floats, Floats]:
    """Traffic, delay and both as one sum: a weight per link and a price per filter."""
    zero = np.zeros(link_cost.size)
    if objective == "traffic":
        return link_cost, zero
    c, f = constant(plan, "link_delay", 1.0), constant(plan, "filter_delay", 0.0)
    if objective == "delay":
        return c * users_below, f * users_below
    a, b = constant(plan, "traffic_weight", 1.0), constant(plan, "delay_weight", 1.0)
    return a * link_cost + b * c * users_below, b * f * users_below + constant(plan, "price", 0.0)


def _filters(plan: Tables) -> Any:
    return texts(plan, "filters", "node")


def _above(plan: Tables) -> Ints:
    """The parent of each row; −1 for none and for one that is not there."""
    import pyarrow as pa

    return places(plan.tables["trees"]["parent"].cast(pa.string()), texts(plan, "trees", "node"))


def _levels(parents: Ints) -> list[Ints]:
    """Vertices by their distance from those without a parent; vertices on a cycle are left out."""
    children = np.argsort(parents, kind="stable")
    starts = np.searchsorted(parents[children], np.arange(-1, parents.size + 1))
    level, levels = children[starts[0] : starts[1]], []
    while level.size:
        levels.append(level)
        first, counts = starts[level + 1], starts[level + 2] - starts[level + 1]
        inner = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        level = children[np.repeat(first, counts) + inner]
    return levels


def _below(parents: Ints, levels: list[Ints], values: Floats) -> Floats:
    total = values.astype(np.float64)
    for level in levels[:0:-1]:
        np.add.at(total, parents[level], total[level])
    return total


def _flags(plan: Tables) -> Bools:
    """The column can_filter; a missing flag is an InputError."""
    values = plan.tables["trees"]["can_filter"]
    if values.null_count or str(values.type) != "bool":
        raise InputError("table trees: can_filter must be true or false in every row", name="can_filter")
    found: Bools = values.to_numpy()
    return found


def _twice(names: list[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield name
        seen.add(name)
