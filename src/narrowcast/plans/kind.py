"""What a plan kind is: a folder whose files have the names of the stages, each with what that stage needs.

A stage that a kind does not have is a file that is absent. `KINDS` in `narrowcast.plans.kinds` lists the folders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, cast

from narrowcast.errors import UnsupportedError
from narrowcast.model.demand import Demand
from narrowcast.model.plan import Plan, Tables

if TYPE_CHECKING:
    from narrowcast.deliver.routing.routes import Subscribers
    from narrowcast.deliver.routing.routing import Routing
    from narrowcast.evaluate.explanation import Explanation
    from narrowcast.evaluate.verdict import Judge
    from narrowcast.evaluate.ways import Ways
    from narrowcast.evaluate.whatif import Family
    from narrowcast.plans.continued import Continued
    from narrowcast.reports.amounts import Amount
    from narrowcast.reports.parts import Report
    from narrowcast.reports.picture import Picture
    from narrowcast.reports.whatif import Whatif


class Planner(Protocol):
    """`plan.py`: from a demand to a plan."""

    def make(self, demand: Any, **options: Any) -> Plan: ...


class Decoder(Protocol):
    """`result.py`: the class of its plans, which reads and writes their tables."""

    RESULT: type[Plan]


class Explainer(Protocol):
    """`explain.py`: what can be asked about, and who answers; from the tables, as the judge reads them."""

    def explained(self, plan: Tables) -> Mapping[str, Callable[[Tables, Any], Explanation]]: ...


class Migrator(Protocol):
    """`migrate.py`: what must be in place for each wish, and numbers that agree with an older plan's."""

    def ways(self, plan: Tables) -> Ways: ...

    def renumbered(self, new: Tables, old: Tables) -> Tables: ...


class Asker(Protocol):
    """`whatif.py`: which budgets and prices can be changed, and planning again with others."""

    def family(self, plan: Plan) -> Family: ...

    def quick(self, plan: Plan) -> Whatif | None: ...


class Replanner(Protocol):
    """`replan.py`: a plan that can be gone on from, under the demand of now."""

    def continued(self, plan: Plan, demand: Demand) -> Continued: ...


class Router(Protocol):
    """`route.py`: the plan as the network obeys it, for the subscriptions there are now."""

    def route(self, plan: Plan, subscribers: Subscribers, groups: int | None) -> Routing: ...

    def profiles(self, plan: Plan) -> Mapping[str, str]: ...


class Reporter(Protocol):
    """`report.py`: the plan's own sections of its page, and the drawing in it, for a file too.

    A kind that knows rates also has `amounts`.
    """

    def report(self, plan: Plan, whatif: Whatif | None) -> Report: ...

    def picture(self, plan: Plan) -> Picture: ...

    def amounts(self, plan: Plan) -> Sequence[Amount]: ...


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of plan: its name, and the package that is its folder."""

    name: str
    package: str

    def stage(self, name: str, verb: str) -> Any:
        """A file of the folder, loaded on first use; UnsupportedError where the kind has none."""
        if find_spec(f"{self.package}.{name}") is None:
            raise UnsupportedError(f"{verb} does not support {self.name} plans yet")
        return import_module(f"{self.package}.{name}")

    def has(self, name: str) -> bool:
        return find_spec(f"{self.package}.{name}") is not None

    @property
    def plan(self) -> Planner:
        return cast(Planner, self.stage("plan", "plan"))

    @property
    def result(self) -> type[Plan]:
        return cast(Decoder, self.stage("result", "load")).RESULT

    @property
    def judge(self) -> Judge:
        return cast("Judge", self.stage("judge", "check"))

    @property
    def explain(self) -> Explainer:
        return cast(Explainer, self.stage("explain", "explain"))

    @property
    def migrate(self) -> Migrator:
        return cast(Migrator, self.stage("migrate", "diff"))

    @property
    def whatif(self) -> Asker:
        return cast(Asker, self.stage("whatif", "whatif"))

    @property
    def replan(self) -> Replanner:
        return cast(Replanner, self.stage("replan", "adapt"))

    @property
    def route(self) -> Router:
        return cast(Router, self.stage("route", "up"))

    @property
    def report(self) -> Reporter:
        return cast(Reporter, self.stage("report", "report"))
