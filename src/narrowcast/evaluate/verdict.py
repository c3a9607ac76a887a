"""The verdict on a plan: what holds for every kind, around what each kind's judge finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from narrowcast.errors import InputError, PlanError
from narrowcast.evaluate.compare import TOLERANCE, differences, same
from narrowcast.model.plan import Tables
from narrowcast.model.seal import changed_since_sealed, seal


class Judge(Protocol):
    """`judge.py` of a kind: it reads a plan's tables by code of its own, and shares none with the planner.

    `COLUMNS` are the tables of its plans with their columns, `OPTIONAL` those that may be absent. `BOUNDED` is the
    term of the cost that a lower bound is about, where the plan has it; else that is the total.
    """

    COLUMNS: Mapping[str, Sequence[str]]
    OPTIONAL: Sequence[str]
    BOUNDED: str

    def faults(self, plan: Tables) -> list[str]: ...

    def cost(self, plan: Tables) -> dict[str, float]: ...

    def checked(self, plan: Tables) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with a plan (nothing: it is sound), its cost recomputed, and what was looked at."""

    faults: tuple[str, ...]
    cost: Mapping[str, float]
    checked: tuple[str, ...]

    @property
    def sound(self) -> bool:
        return not self.faults


def verdict(plan: Tables, judge: Judge) -> Verdict:
    """The verdict by this kind's judge, and what holds for every kind. Never raises for a damaged plan."""
    faults: list[str] = []
    cost: dict[str, float] = {}
    try:
        plan.require(judge.COLUMNS, optional=judge.OPTIONAL)
        faults += judge.faults(plan)
        cost = judge.cost(plan)
    except (InputError, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, RuntimeError) as error:
        faults.append(f"it cannot be read: {' '.join(str(error).split()) or type(error).__name__}")
    faults += differences(plan.cost, cost)
    faults += _bound_faults(plan, cost, judge.BOUNDED if judge.BOUNDED in cost else "total")
    if cost and not cost.keys() & plan.cost.keys():
        faults.append("its cost is missing")
    faults += [
        f"{'plan.json' if name == 'plan' else f'table {name}'} was changed after the plan was checked"
        for name in changed_since_sealed(plan)
    ]
    return Verdict(tuple(faults), cost, tuple(_checked(plan, cost, judge)))


def certified(plan: Tables, found: Verdict) -> Tables:
    """The plan with what was found in its `checks`, sealed; an unsound one is refused."""
    if not found.sound:
        more = f" and {len(found.faults) - 1} more" if len(found.faults) > 1 else ""
        raise PlanError(f"the plan is unsound and was not written: {found.faults[0]}{more}")
    checks = {"sound": True, "cost": dict(found.cost), "checked": list(found.checked), "seal": seal(plan)}
    return replace(plan, checks=checks)


def _bound_faults(plan: Tables, cost: Mapping[str, float], term: str) -> Iterator[str]:
    """A lower bound is below the cost, and the gap is what lies between."""
    value = cost.get(term)
    bound, gap = plan.lower_bound, plan.gap
    if bound is None or value is None:
        return
    scale = sum(abs(cost.get(name, 0.0)) for name in ("c1", "c2", "total"))
    if not bound <= value + TOLERANCE * scale:
        yield f"its lower bound is {bound}, above the cost {value}"
    if bound < 0:
        yield f"its lower bound must be zero or more, got {bound}"
    said = plan.cost.get(term, value)
    expected = 1 - bound / said if said > 0 else 0.0
    if gap is not None and not same(gap, expected, 1.0):
        yield f"its gap is {expected}, the plan says {gap}"


def _checked(plan: Tables, cost: Mapping[str, float], judge: Judge) -> Iterator[str]:
    yield from judge.checked(plan)
    if cost:
        yield f"cost recomputed: {', '.join(cost)}"
    unknown = sorted(plan.cost.keys() - cost.keys())
    if unknown:
        yield f"not recomputed, because the plan lacks the data: {', '.join(unknown)}"
    if plan.baselines:
        yield "baselines recomputed where that is cheap"
    if plan.lower_bound is not None:
        yield "the lower bound is at most the cost, and the gap is their difference"
    if plan.checks.get("seal"):
        yield "nothing was changed since the plan was checked"
