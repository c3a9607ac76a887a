"""What a plan costs: one shape for every kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Self


class Compared(NamedTuple):
    """What a cost is held against: other ways by name, and what no plan can go below."""

    baselines: Mapping[str, Cost]
    lower_bound: float | None = None
    gap: float | None = None


class Cost(float):
    """A number, the total, that knows its terms by name and what it can be compared with.

    It adds, compares and prints as the number it is. The terms are attributes too. Baselines, the lower bound and
    the gap to it are worked out when somebody first looks: a search makes thousands of plans and shows one.

    >>> cost = Cost(34.0, {"c1": 21.0, "c2": 13.0})
    >>> cost.total, cost.c1, cost < 40, cost.lower_bound
    (34.0, 21.0, True, None)
    """

    terms: Mapping[str, float]

    def __new__(
        cls,
        total: float,
        terms: Mapping[str, float] | None = None,
        compare: Callable[[], Compared] | Compared | None = None,
    ) -> Self:
        made = super().__new__(cls, total)
        made.terms = dict(terms or {})
        made._compare = compare
        return made

    _compare: Callable[[], Compared] | Compared | None

    def __getattr__(self, name: str) -> float:
        terms = self.__dict__.get("terms", {})
        if name in terms:
            return float(terms[name])
        raise AttributeError(f"this cost has no term {name!r}; it has {', '.join(terms) or 'none'}")

    @property
    def total(self) -> float:
        """The cost as a plain number."""
        return float(self)

    @property
    def compared(self) -> Compared:
        """What it is held against: baselines, a lower bound; worked out when first asked for."""
        if callable(self._compare):
            self._compare = self._compare()
        return self._compare or Compared({})

    @property
    def baselines(self) -> Mapping[str, Cost]:
        """Well-known ways to do the same, by name, in the same measure."""
        return self.compared.baselines

    @property
    def lower_bound(self) -> float | None:
        """No plan under the same budgets costs less; None where no bound is known."""
        return self.compared.lower_bound

    @property
    def gap(self) -> float | None:
        """How far, at most, the plan is above the least possible, as a part of its cost."""
        return self.compared.gap

    def comparing(self, compare: Callable[[], Compared] | Compared) -> Cost:
        """The same cost, held against this."""
        return Cost(float(self), self.terms, compare)

    def __reduce__(self) -> tuple[Any, ...]:
        return Cost, (float(self), dict(self.terms), None if self._compare is None else self.compared)
