"""The loop: a demand comes, the plan is kept or moved, and the timeline tells. The same live and in replay."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from narrowcast.adapt.decide import Decision, LoopState, Policy, decide, moved, refused
from narrowcast.adapt.timeline import row_of
from narrowcast.errors import NarrowcastError
from narrowcast.evaluate.migration import Migration
from narrowcast.model.demand import Demand
from narrowcast.model.plan import Plan
from narrowcast.plans.continued import Continued
from narrowcast.plans.verbs import certify, diff

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class PlannedMove:
    """A plan to be installed: judged sound, with the way to it from the plan before, where there is one."""

    plan: Plan
    migration: Migration | None
    decision: Decision


#: Puts a plan in force; whether that has worked.
Install = Callable[[PlannedMove], bool]


def at_once(move: PlannedMove) -> bool:
    """In a replay nobody has to be waited for."""
    return True


@dataclass
class Loop:
    """Follows demand, beginning with the plan `present`. `step` is all there is to it; `run` is for demands at hand."""

    present: Continued
    policy: Policy
    install: Install = at_once
    installed: Plan | None = None
    state: LoopState[Continued] = field(init=False)

    def __post_init__(self) -> None:
        self.state = LoopState(self.present)

    def step(self, demand: Demand) -> dict[str, Any]:
        """One demand: the row for the timeline."""
        first = self.present.under(demand).cost
        self.state, decision = decide(self.state, demand, self.policy)
        if not decision.move or self.state.candidate is None:
            return row_of(decision, first, installed=False)
        try:
            move = self._move(self.state.candidate, decision)
        except NarrowcastError as error:  # an unsound plan, first of all: never installed
            log.warning("the new plan was not installed: %s", error)
            self.state = refused(self.state)
            return row_of(decision, first, installed=False, why=str(error))
        if not self.install(move):
            self.state = refused(self.state)
            return row_of(decision, first, installed=False, why="rolled back: not everybody prepared for it")
        self.state, self.installed = moved(self.state), move.plan
        return row_of(decision, first, installed=True)

    def _move(self, candidate: Continued, decision: Decision) -> PlannedMove:
        plan = candidate.plan()
        certified = certify(plan.to_tables())
        way = None if self.installed is None else diff(self.installed, certified)
        return PlannedMove(replace(plan, checks=certified.checks, written=certified), way, decision)

    def run(self, demands: Iterable[Demand]) -> Iterator[dict[str, Any]]:
        for demand in demands:
            yield self.step(demand)
