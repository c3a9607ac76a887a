"""Filter placements go on by flips: a filter moves to another node of the tree if that saves more than it costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from narrowcast.errors import UnsupportedError
from narrowcast.model import Tree
from narrowcast.model.arrays import Floats, Ints
from narrowcast.model.demand import Demand
from narrowcast.plans.continued import Budget, Change
from narrowcast.plans.filters import api as filters
from narrowcast.plans.filters.cost import delays_in, objective_value
from narrowcast.plans.filters.result import FiltersPlan, TreeDemand, placed


@dataclass(frozen=True, eq=False)
class ContinuedFilters:
    """Filters at nodes of a tree, under what is wanted below each of them.

    Demand comes in at the leaves: the interest of the subscribers behind each (`Demand.nodes`). Who is behind
    no leaf of the tree is served from the log, and not counted. Every placement is sound for any demand, since a
    filter passes on what is wanted below it, whatever that is.
    """

    tree: Tree
    flow: Floats
    filters: Ints
    parameters: Mapping[str, Any]

    @classmethod
    def of(cls, plan: FiltersPlan, demand: Demand) -> ContinuedFilters:
        """A plan, under the demand of now."""
        if plan.goal not in ("traffic", "delay"):
            raise UnsupportedError(
                f"adapt does not support filters for objective {plan.goal!r} yet", works=("traffic", "delay")
            )
        return cls(plan.tree, plan.flow, plan.filters, plan.parameters).under(demand)

    @property
    def size(self) -> int:
        return int(self.filters.size)

    @property
    def _for_delay(self) -> bool:
        return bool(self.parameters.get("objective", "traffic") == "delay")

    @cached_property
    def cost(self) -> float:
        return objective_value(self.tree, self.flow, self.filters, self.parameters)

    def under(self, demand: Demand) -> ContinuedFilters:
        interest = demand.interest
        leaf_of = {name: v for v, name in enumerate(self.tree.names or ()) if self.tree.is_leaf[v]}
        users = interest.user_names or tuple(map(str, range(interest.n_users)))
        leaf = np.array([leaf_of.get(demand.nodes.get(name, ""), -1) for name in users], np.int64)[interest.users]
        there = leaf >= 0
        flow = filters.flow_from_demand(self.tree, leaf[there], interest.flow_of_pair[there], interest.rates)
        return replace(self, flow=flow)

    def improved(self, budget: Budget) -> ContinuedFilters:
        moves = max(self.size, 1) if budget.moves is None else budget.moves
        found = filters.improve(
            self.tree, self.flow, self.filters, "delay" if self._for_delay else "traffic", moves,
            migration_cost=budget.least, k=self.parameters.get("k"), **delays_in(self.parameters),
        )  # fmt: skip
        return replace(self, filters=found.filters)

    def anew(self) -> ContinuedFilters:
        """The optimum for the demand of now."""
        if self._for_delay:
            delays = delays_in(self.parameters)
            return replace(self, filters=filters.place_for_delay(self.tree, self.flow, **delays).filters)
        return replace(self, filters=filters.place(self.tree, self.flow, int(self.parameters.get("k", 15))).filters)

    def reorganised(self, least: float) -> ContinuedFilters:
        return self.anew()

    def change_to(self, other: ContinuedFilters) -> Change:
        come, go = (np.setdiff1d(a, b).size for a, b in ((other.filters, self.filters), (self.filters, other.filters)))
        return Change(int(max(come, go)), 0, 0.0)

    def plan(self) -> FiltersPlan:
        return placed(TreeDemand(self.tree, self.flow), self.filters, self.parameters, total=self.cost)


continued = ContinuedFilters.of
