"""A plan: what a planner decided, for which demand, at what cost. A frozen class per kind; this is what they share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from narrowcast.errors import InputError
from narrowcast.model.cost import Cost

if TYPE_CHECKING:
    from contextlib import AbstractContextManager


@dataclass(frozen=True)
class Tables:
    """A plan as its folder holds it: what a judge reads, and nothing else has to.

    `tables` are Arrow tables by name; `cost` holds the terms of the cost and their `total`; `baselines` the cost
    of doing it otherwise; `inputs` a fingerprint of each input table; `checks` what the soundness check found;
    `key` the attributes whose values name a message's flow, empty where the plan knows none.
    """

    kind: str
    tables: Mapping[str, Any]
    cost: Mapping[str, float]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    baselines: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    checks: Mapping[str, Any] = field(default_factory=dict)
    lower_bound: float | None = None
    gap: float | None = None
    seed: int = 0
    key: tuple[str, ...] = ()

    def require(self, expected: Mapping[str, Sequence[str]], *, optional: Sequence[str] = ()) -> None:
        """Refuse a plan that lacks a table or column of its kind, or has a table that its kind does not."""
        missing = [name for name in expected if name not in self.tables and name not in optional]
        unknown = [name for name in self.tables if name not in expected]
        if missing or unknown:
            raise InputError(f"{self.kind} plans must have tables {', '.join(expected)}, got {', '.join(self.tables)}")
        for name, table in self.tables.items():
            absent = [c for c in expected[name] if c not in table.column_names]
            if absent:
                raise InputError(f"table {name} of a {self.kind} plan has no column {absent[0]!r}", name=name)


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan(ABC):
    """What a planner decided, for which demand, at what cost: the nouns of a kind, and the verbs of all kinds.

    `demand` is what the plan was made for, the flow key included. `parameters` are the settings it was made with,
    `inputs` the fingerprints of the tables it was made from, `checks` what the judge said when it was saved.
    """

    kind: ClassVar[str]
    demand: Any = field(repr=False)
    cost: Cost
    parameters: Mapping[str, Any] = field(default_factory=dict, repr=False)
    seed: int = 0
    inputs: Mapping[str, str] = field(default_factory=dict, repr=False)
    checks: Mapping[str, Any] = field(default_factory=dict, repr=False)
    written: Tables | None = field(default=None, repr=False)
    """The tables it was read from, if it was: they are written again as they are."""

    @property
    def key(self) -> tuple[str, ...]:
        """The attributes whose values name a message's flow; empty where flows play no part or it is not known."""
        key: tuple[str, ...] = self.demand.key
        return key

    @property
    def baselines(self) -> Mapping[str, Cost]:
        """What well-known ways to do the same cost, by name."""
        return self.cost.baselines

    @property
    def lower_bound(self) -> float | None:
        """No plan under the same budgets costs less; None where no bound is known.

        Where the cost has an excess it bounds that (docs/decisions/0052).
        """
        return self.cost.lower_bound

    @property
    def gap(self) -> float | None:
        """By how much of itself the plan may be above the best one; None where no bound is known."""
        return self.cost.gap

    def to_tables(self) -> Tables:
        """The plan as its folder holds it."""
        return self.written if self.written is not None else self._to_tables()

    @abstractmethod
    def _to_tables(self) -> Tables:
        """The decisions and the demand as tables, with names in place of indices."""

    @classmethod
    @abstractmethod
    def from_tables(cls, tables: Tables) -> Self:
        """The plan that a folder holds: the one decoder of its kind. Only the judge has a reader of its own."""

    def made_from(self, inputs: Mapping[str, str]) -> Self:
        """The same plan, with the fingerprints of the tables it was made from."""
        return replace(self, inputs=dict(inputs), written=None)

    # The verbs, the same as the functions of `narrowcast` and as its commands.

    def save(self, folder: str | Path, *, overwrite: bool = False) -> Self:
        """Judge the plan and write it to a folder, whole or not at all; PlanError for an unsound one.

        >>> import narrowcast as nc, tempfile
        >>> interest = nc.Interest.from_pairs([0, 0, 1], [0, 1, 1], [5.0, 2.0])
        >>> with tempfile.TemporaryDirectory() as place:
        ...     made = nc.channels.plan(interest, groups=2, sessions=2).save(f"{place}/plan")
        ...     nc.load(f"{place}/plan").cost.excess
        0.0
        """
        import narrowcast

        return narrowcast.save(self, folder, overwrite=overwrite)

    def check(self, messages: Any = None, subscriptions: Any = None) -> Any:
        """Whether the plan is sound and costs what it says, judged by code that had no part in making it."""
        import narrowcast

        return narrowcast.check(self, messages, subscriptions)

    def explain(self, **what: str | int) -> Any:
        """Why something is where it is, what that wastes, and what the next best choice was: `explain(flow="IBM")`."""
        import narrowcast

        return narrowcast.explain(self, **what)

    def diff(self, other: Plan, **options: Any) -> Any:
        """What changes on the way to another plan, in steps that leave nobody out."""
        import narrowcast

        return narrowcast.diff(self, other, **options)

    def whatif(
        self,
        *,
        time_limit: float | None = 10.0,
        workers: int = 2,
        progress: Callable[[int, int], None] | None = None,
        **settings: Sequence[float],
    ) -> Any:
        """Plan again over a grid of one or two budgets or prices: `whatif(groups=[10, 20, 50])`."""
        import narrowcast

        return narrowcast.whatif(self, time_limit=time_limit, workers=workers, progress=progress, **settings)

    def report(
        self, out: str | Path, *, whatif: Any = None, timeline: Sequence[Mapping[str, Any]] = (), **units: float
    ) -> Path:
        """Write the plan as one HTML page that works offline."""
        import narrowcast

        return narrowcast.report(self, out, whatif=whatif, timeline=timeline, **units)

    def picture(self, out: str | Path) -> Path:
        """Draw the plan to a .png or .svg file: the picture that its report shows."""
        import narrowcast

        return narrowcast.picture(self, out)

    def export(self, to: str, out: str | Path, **options: Any) -> Any:
        """Write the configuration of an engine that people run: cyclonedds, rti, ultramessaging, aeron, nats, csv."""
        import narrowcast

        return narrowcast.export(self, to, out, **options)

    def deliver(self, **options: Any) -> AbstractContextManager[Any]:
        """Run the plan on this machine: `with plan.deliver() as system: …`. The same as `narrowcast.up(plan)`."""
        import narrowcast

        return narrowcast.up(self, **options)
