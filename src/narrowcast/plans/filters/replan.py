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
from narrowcast.model.plan import Plan
from narrowcast.plans import filters
from narrowcast.plans.continued import Budget, Change
from narrowcast.plans.filters.result import as_plan


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
    def of(cls, plan: Plan, demand: Demand) -> ContinuedFilters:
        """A plan from its folder, under the demand of now."""
        if plan.parameters.get("objective", "traffic") not in ("traffic", "delay"):
            raise UnsupportedError(
                "filters for traffic and delay at once do not move by flips", works=("traffic", "delay")
            )
        rows = plan.tables["trees"]
        names = rows["node"].to_pylist()
        place = {name: v for v, name in enumerate(names)}
        parents = [-1 if name is None else place[name] for name in rows["parent"].to_pylist()]
        extra = {name: rows[name].to_numpy(zero_copy_only=False) for name in ("link_cost", "can_filter", "users")
                 if name in rows.column_names}  # fmt: skip
        at = np.array([place[name] for name in plan.tables["filters"]["node"].to_pylist()], np.int64)
        tree = Tree(parents, names=names, **extra)
        return cls(tree, rows["flow"].to_numpy(), np.sort(at), plan.parameters).under(demand)

    @property
    def size(self) -> int:
        return int(self.filters.size)

    @property
    def _delays(self) -> dict[str, float]:
        defaults = (("filter_delay", 0.0), ("link_delay", 1.0))
        return {name: float(self.parameters.get(name, default)) for name, default in defaults}

    @property
    def _for_delay(self) -> bool:
        return bool(self.parameters.get("objective", "traffic") == "delay")

    def _value(self, some: Any) -> float:
        if self._for_delay:
            return float(filters.delay(self.tree, self.flow, some, **self._delays))
        return float(filters.traffic(self.tree, self.flow, some))

    @cached_property
    def cost(self) -> float:
        return self._value(self.filters)

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
            migration_cost=budget.least, k=self.parameters.get("k"), **self._delays,
        )  # fmt: skip
        return replace(self, filters=found.filters)

    def anew(self) -> ContinuedFilters:
        """The optimum for the demand of now."""
        if self._for_delay:
            return replace(self, filters=filters.place_for_delay(self.tree, self.flow, **self._delays).filters)
        return replace(self, filters=filters.place(self.tree, self.flow, int(self.parameters.get("k", 15))).filters)

    def reorganised(self, least: float) -> ContinuedFilters:
        return self.anew()

    def change_to(self, other: ContinuedFilters) -> Change:
        come, go = (np.setdiff1d(a, b).size for a, b in ((other.filters, self.filters), (self.filters, other.filters)))
        return Change(int(max(come, go)), 0, 0.0)

    def plan(self) -> Plan:
        everywhere = np.flatnonzero(self.tree.can_filter)
        return as_plan(
            self.tree, self.flow, self.filters,
            cost={"total": self.cost, "traffic": float(filters.traffic(self.tree, self.flow, self.filters))},
            parameters=self.parameters,
            baselines={"no filter": self._value([]), "every vertex": self._value(everywhere)},
        )  # fmt: skip
