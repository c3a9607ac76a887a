"""Merged queries go on incrementally: queries come and go, and the sets they touch are looked at again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from narrowcast.errors import UnsupportedError
from narrowcast.model.arrays import Floats, Ints
from narrowcast.model.demand import Demand
from narrowcast.model.plan import Plan
from narrowcast.plans import queries
from narrowcast.plans.continued import Budget, Change
from narrowcast.plans.numbers import agreed
from narrowcast.plans.queries.constants import Constants
from narrowcast.plans.queries.merged import box_plan
from narrowcast.plans.queries.problem import BoxProblem
from narrowcast.plans.queries.procedures import as_procedure
from narrowcast.plans.queries.result import as_plan
from narrowcast.plans.queries.sizes import as_sizes
from narrowcast.profiles import Profile

CONSTANTS = ("km", "kt", "ku", "ka", "per_query", "per_object")


@dataclass(frozen=True, eq=False)
class ContinuedQueries:
    """Sets of queries, each answered by one merged query. Queries are known by their names.

    `number[i]` is the set of query i. One that the plan does not know is a set of its own: nobody else's answer
    is made wider for it before it is planned for. Sizes are areas; a profile that bounds no box is left to the log.
    """

    names: tuple[str, ...]
    boxes: Floats
    number: Ints
    attributes: tuple[str, ...]
    parameters: Mapping[str, Any]
    touched: frozenset[int] = frozenset()  # sets that came or lost a query since they were planned

    @classmethod
    def of(cls, plan: Plan, demand: Demand) -> ContinuedQueries:
        """A plan from its folder, under the demand of now."""
        if plan.parameters.get("size", "area") != "area":
            raise UnsupportedError("sizes of this plan were counted in data that it does not hold", works=("area",))
        rows = plan.tables["queries"].to_pylist()
        attributes = tuple(dict.fromkeys(row["dimension"] for row in rows))
        place = {name: i for i, name in enumerate(dict.fromkeys(row["query"] for row in rows))}
        boxes = np.zeros((len(place), len(attributes), 2))
        for row in rows:
            boxes[place[row["query"]], attributes.index(row["dimension"])] = row["low"], row["high"]
        number = np.zeros(len(place), np.int64)
        for query, at in zip(*(plan.tables["merges"][c].to_pylist() for c in ("query", "set")), strict=True):
            number[place[query]] = at
        return cls(tuple(place), boxes, number, attributes, plan.parameters).under(demand)

    @property
    def size(self) -> int:
        return len(self.names)

    @cached_property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(np.flatnonzero(self.number == at).tolist()) for at in np.unique(self.number))

    @cached_property
    def _problem(self) -> BoxProblem:
        known = {name: float(self.parameters[name]) for name in CONSTANTS if name in self.parameters}
        return BoxProblem(self.boxes, Constants(**known), as_procedure(self._procedure), as_sizes(None))

    @property
    def _procedure(self) -> str:
        return str(self.parameters.get("procedure", "rectangle"))

    @cached_property
    def cost(self) -> float:
        return float(box_plan(self._problem, self.sets, "pair", 0).cost) if self.names else 0.0

    def under(self, demand: Demand) -> ContinuedQueries:
        wanted = _boxes(demand.profiles, self.attributes)
        before = {name: i for i, name in enumerate(self.names)}
        same = {n: before[n] for n, box in wanted.items() if n in before and np.array_equal(self.boxes[before[n]], box)}
        fresh = int(self.number.max(initial=-1)) + 1
        number = np.array([self.number[same[n]] if n in same else fresh + i for i, n in enumerate(wanted)], np.int64)
        gone = {int(self.number[i]) for name, i in before.items() if name not in same}
        new = {int(number[i]) for i, name in enumerate(wanted) if name not in same}
        touched = (self.touched | gone | new) & set(number.tolist())
        boxes = np.array(list(wanted.values())).reshape(len(wanted), len(self.attributes), 2)
        return replace(self, names=tuple(wanted), boxes=boxes, number=number, touched=frozenset(touched))

    def improved(self, budget: Budget) -> ContinuedQueries:
        """The sets that queries came to or left take the best merges and splits, until none gains."""
        live = queries.LivePlan(
            self.boxes, constants=self._problem.constants, procedure=self._procedure, sets=self.sets
        )
        live.settle(q for q in range(self.size) if int(self.number[q]) in self.touched)
        return self._with(live.sets)

    def anew(self) -> ContinuedQueries:
        live = queries.LivePlan(self.boxes, constants=self._problem.constants, procedure=self._procedure)
        return self._with(live.sets)

    def reorganised(self, least: float) -> ContinuedQueries:
        return self.anew()

    def _with(self, sets: Any) -> ContinuedQueries:
        """Other sets, numbered so that as many queries as possible keep theirs."""
        number = np.zeros(self.size, np.int64)
        for at, members in enumerate(sets):
            number[list(members)] = at
        n = int(max(number.max(initial=0), self.number.max(initial=0))) + 1
        return replace(self, number=agreed(number, self.number, n)[number], touched=frozenset())

    def change_to(self, other: ContinuedQueries) -> Change:
        """A query in another set is asked on another channel."""
        moved = self.number != other.number
        sizes = np.prod(np.maximum(self.boxes[:, :, 1] - self.boxes[:, :, 0], 0.0), axis=1)
        return Change(int(moved.sum()), int(moved.sum()), float(sizes[moved].sum()))

    def plan(self) -> Plan:
        made = box_plan(self._problem, self.sets, "pair", 0)
        given = {name: value for name, value in self.parameters.items() if name not in (*CONSTANTS, "method")}
        return as_plan(made, self.attributes, boxes=self.boxes, names=self.names, parameters={"size": "area", **given})


def _boxes(profiles: Mapping[str, str], attributes: tuple[str, ...]) -> dict[str, Floats]:
    """The box of each profile that bounds one, in the order of their names."""
    names = sorted(profiles)
    found = queries.range_boxes([Profile.parse(profiles[name]) for name in names], attributes)
    return {name: box for name, box in zip(names, found, strict=True) if np.isfinite(box).all()}
