"""A plan that can be gone on from: what every kind of plan offers to the loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

from narrowcast.model.demand import Demand
from narrowcast.model.plan import Plan


@dataclass(frozen=True, slots=True)
class Budget:
    """The most that one re-planning may change: contents that go another way, and joins; None: no limit.

    `least` is what every single move must save in a second.
    """

    moves: int | None = None
    joins: int | None = None
    least: float = 0.0


@dataclass(frozen=True, slots=True)
class Change:
    """What lies between two plans: contents that go another way, new joins, and the traffic of what moves.

    While a content moves it is sent both ways: `warm` is what receivers take of the moved in a second.
    """

    moves: int
    joins: int
    warm: float


class Continued(Protocol):
    """Decisions of a planner, put under some demand. Immutable; equal inputs give equal results."""

    @property
    def cost(self) -> float:
        """What the decisions cost in a second of the demand they are under."""

    @property
    def size(self) -> int:
        """How many contents there are to move."""

    def under(self, demand: Demand) -> Self:
        """The same decisions under other demand. What they do not know is served as the runtime does it: wider."""

    def improved(self, budget: Budget) -> Self:
        """Better decisions for the demand they are under, as many changed as the budget allows."""

    def anew(self) -> Self:
        """Decisions made from nothing for the demand they are under, numbered to differ as little as they can."""

    def reorganised(self, least: float) -> Self:
        """The same without those changes that save less than `least` a second each, where that can be told."""

    def change_to(self, other: Self) -> Change:
        """What it takes to go from these decisions to others, both under the same demand."""

    def plan(self) -> Plan:
        """The decisions as a plan that can be judged, written and installed."""
