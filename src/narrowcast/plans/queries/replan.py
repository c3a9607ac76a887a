"""Merged queries go on incrementally: queries come and go, and the sets they touch are looked at again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from narrowcast.model.arrays import Floats, Ints
from narrowcast.model.demand import Demand
from narrowcast.plans.continued import Budget, Change
from narrowcast.plans.numbers import agreed
from narrowcast.plans.queries import api as queries
from narrowcast.plans.queries.constants import Constants
from narrowcast.plans.queries.methods.physical import on_channels
from narrowcast.plans.queries.problem import BoxProblem, CostTerms, total_terms
from narrowcast.plans.queries.procedures import as_procedure
from narrowcast.plans.queries.result import QueriesPlan, QueryDemand, merged_plan
from narrowcast.plans.queries.sizes import Area, Sizes
from narrowcast.profiles import Profile


@dataclass(frozen=True, eq=False)
class ContinuedQueries:
    """Sets of queries, each answered by one merged query. Queries are known by their names.

    `number[i]` is the set of query i. One that the plan does not know is a set of its own: nobody else's answer
    is made wider for it before it is planned for. Sizes are the plan's own; a profile that bounds no box is left to
    the log where sizes are areas. Sets stay on their physical channels, where there are some.

    `left` are the queries of the plan that are not asked now, with their sets: the plan in force still has these, and
    whoever asks the same again is served by it.
    """

    names: tuple[str, ...]
    boxes: Floats
    number: Ints
    attributes: tuple[str, ...]
    constants: Constants
    procedure: str
    measure: Sizes
    channels: int | None = None
    touched: frozenset[int] = frozenset()  # sets that came or lost a query since they were planned
    left: Mapping[str, tuple[Floats, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, plan: QueriesPlan, demand: Demand) -> ContinuedQueries:
        """A plan, under the demand of now."""
        asked = plan.problem()
        number = np.zeros(asked.n, np.int64)
        for at, members in zip(plan.numbers, plan.sets, strict=True):
            number[list(members)] = at
        names, attributes = plan.demand.labels, plan.demand.attributes
        physical = None if plan.physical is None else int(plan.parameters["channels"])
        found = cls(names, asked.boxes, number, attributes, plan.constants, plan.procedure, asked.size, physical)
        return found.under(demand)

    @property
    def size(self) -> int:
        return len(self.names)

    @cached_property
    def sets(self) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(np.flatnonzero(self.number == at).tolist()) for at in np.unique(self.number))

    @cached_property
    def _problem(self) -> BoxProblem:
        return BoxProblem(self.boxes, self.constants, as_procedure(self.procedure), self.measure)

    @cached_property
    def cost(self) -> float:
        return CostTerms.of(total_terms(self._problem, self.sets), self.constants).total if self.names else 0.0

    def under(self, demand: Demand) -> ContinuedQueries:
        wanted = _boxes(demand.profiles, self.attributes, finite=isinstance(self.measure, Area))
        here = {name: (self.boxes[i], int(self.number[i])) for i, name in enumerate(self.names)}
        before = {**self.left, **here}
        same = {n: before[n][1] for n, box in wanted.items() if n in before and np.array_equal(before[n][0], box)}
        fresh = 1 + max((number for _, number in before.values()), default=-1)
        number = np.array([same.get(name, fresh + i) for i, name in enumerate(wanted)], np.int64)
        gone = {number for name, (_, number) in here.items() if name not in same}
        come = {int(number[i]) for i, name in enumerate(wanted) if name not in same}
        touched = (self.touched | gone | come) & set(number.tolist())
        boxes = np.array(list(wanted.values())).reshape(len(wanted), len(self.attributes), 2)
        left = {name: known for name, known in before.items() if name not in wanted}
        return replace(self, names=tuple(wanted), boxes=boxes, number=number, touched=frozenset(touched), left=left)

    def improved(self, budget: Budget) -> ContinuedQueries:
        """The sets that queries came to or left take the best merges and splits, until none gains."""
        live = self._live(self.sets)
        live.settle(q for q in range(self.size) if int(self.number[q]) in self.touched)
        return self._with(live.sets)

    def anew(self) -> ContinuedQueries:
        return self._with(self._live(None).sets)

    def _live(self, sets: Any) -> queries.LiveQueries:
        given = {"constants": self.constants, "procedure": self.procedure, "size": self.measure, "sets": sets}
        return queries.LiveQueries(self.boxes, d=len(self.attributes), **given)

    def reorganised(self, least: float) -> ContinuedQueries:
        return self.anew()

    def _with(self, sets: Any) -> ContinuedQueries:
        """Other sets, numbered so that as many queries as possible keep theirs."""
        number = np.zeros(self.size, np.int64)
        for at, members in enumerate(sets):
            number[list(members)] = at
        n = int(max(number.max(initial=0), self.number.max(initial=0))) + 1
        return replace(self, number=agreed(number, self.number, n)[number], touched=frozenset(), left={})

    def change_to(self, other: ContinuedQueries) -> Change:
        """A query in another set is asked on another channel."""
        moved = self.number != other.number
        sizes = self._problem.alone
        return Change(int(moved.sum()), int(moved.sum()), float(sizes[moved].sum()))

    def plan(self) -> QueriesPlan:
        demand = QueryDemand(self.boxes, self.attributes, self.names)
        found = merged_plan(demand, self._problem, self.sets, "pair")
        return found if self.channels is None else on_channels(found, self.channels)


continued = ContinuedQueries.of


def _boxes(profiles: Mapping[str, str], attributes: tuple[str, ...], *, finite: bool) -> dict[str, Floats]:
    """The box of each profile, or of each that bounds one, in the order of their names."""
    names = sorted(profiles)
    found = queries.range_boxes([Profile.parse(profiles[name]) for name in names], attributes)
    return {name: box for name, box in zip(names, found, strict=True) if not finite or np.isfinite(box).all()}
