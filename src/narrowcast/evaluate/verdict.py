"""The verdict on a plan: what holds for every kind, around what each kind's judge finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from narrowcast.errors import InputError, PlanError
from narrowcast.evaluate.compare import TOLERANCE, differences, same
from narrowcast.model.plan import Plan
from narrowcast.model.seal import changed_since_sealed, seal

Judge = tuple[Callable[[Plan], list[str]], Callable[[Plan], dict[str, float]]]

# The term of the cost that a plan's lower bound is about.
BOUNDED = {"channels": "excess"}

CHECKED = {
    "channels": (
        "everyone who wants a flow is in its group",
        "every join, session and flow sent serves somebody",
        "groups, sessions and limits are kept",
    ),
    "hybrid": (
        "everyone who wants a flow is in its group or gets it by unicast",
        "every join, unicast copy and flow sent serves somebody",
        "groups, limits and the unicast cap are kept",
    ),
    "filters": (
        "every link carries all that is wanted below it",
        "filters are at nodes able to host one, and no more than the budget",
        "the load of every link",
    ),
    "queries": (
        "every query lies inside the merged query that answers it",
        "no merged query is wider than its queries need",
    ),
    "semantic": (
        "every message that a client wants comes to its gateway, whether such a one was seen or not",
        "every tree is in the overlay and reaches its members in time",
        "the rate of every channel",
    ),
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a plan (nothing: it is sound), its cost recomputed, and what was looked at."""

    faults: tuple[str, ...]
    cost: Mapping[str, float]
    checked: tuple[str, ...]

    @property
    def sound(self) -> bool:
        return not self.faults


def verdict(plan: Plan, judge: Judge | None) -> Verdict:
    """The verdict by this kind's judge, and what holds for every kind. Never raises for a damaged plan."""
    if judge is None:
        return Verdict((f"there is no judge for plans of kind {plan.kind!r}",), {}, ())
    faults_of, cost_of = judge
    faults: list[str] = []
    cost: dict[str, float] = {}
    try:
        faults += faults_of(plan)
        cost = cost_of(plan)
    except (InputError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        faults.append(f"it cannot be read: {' '.join(str(error).split()) or type(error).__name__}")
    faults += differences(plan.cost, cost)
    faults += _bound_faults(plan, cost)
    if cost and not cost.keys() & plan.cost.keys():
        faults.append("it states no cost")
    faults += [
        f"{'plan.json' if name == 'plan' else f'table {name}'} is not what was checked when the plan was written"
        for name in changed_since_sealed(plan)
    ]
    return Verdict(tuple(faults), cost, tuple(_checked(plan, cost)))


def certified(plan: Plan, found: Verdict) -> Plan:
    """The plan with what was found in its `checks`, sealed; an unsound one is refused."""
    if not found.sound:
        more = f" and {len(found.faults) - 1} more" if len(found.faults) > 1 else ""
        raise PlanError(f"the plan is unsound and was not written: {found.faults[0]}{more}")
    checks = {"sound": True, "cost": dict(found.cost), "checked": list(found.checked), "seal": seal(plan)}
    return replace(plan, checks=checks)


def _bound_faults(plan: Plan, cost: Mapping[str, float]) -> Iterator[str]:
    """A lower bound is below the cost, and the gap is what lies between."""
    value = cost.get(BOUNDED.get(plan.kind, "total"))
    bound, gap = plan.lower_bound, plan.gap
    if bound is None or value is None:
        return
    scale = sum(abs(cost.get(name, 0.0)) for name in ("c1", "c2", "total"))
    if not bound <= value + TOLERANCE * scale:
        yield f"its lower bound is {bound}, above the cost {value}"
    if bound < 0:
        yield f"its lower bound is {bound}; costs are not negative"
    said = plan.cost.get(BOUNDED.get(plan.kind, "total"), value)
    expected = 1 - bound / said if said > 0 else 0.0
    if gap is not None and not same(gap, expected, 1.0):
        yield f"the gap between cost and bound is {expected}, the plan says {gap}"


def _checked(plan: Plan, cost: Mapping[str, float]) -> Iterator[str]:
    yield from CHECKED.get(plan.kind, ())
    if cost:
        yield f"cost recomputed: {', '.join(cost)}"
    unknown = sorted(plan.cost.keys() - cost.keys())
    if unknown:
        yield f"not recomputed, for want of data: {', '.join(unknown)}"
    if plan.baselines:
        yield "baselines recomputed where that is cheap"
    if plan.lower_bound is not None:
        yield "the lower bound is no more than the cost, and the gap is what lies between"
    if plan.checks.get("seal"):
        yield "nothing was changed since the plan was checked"
