"""What other prices of answering would make of a queries plan."""

from __future__ import annotations

from functools import partial
from typing import Any

from narrowcast.evaluate.whatif import Family, Outcome, Settings, share_of
from narrowcast.plans.queries.plan import CHOICES, make, merge
from narrowcast.plans.queries.result import CONSTANTS, QueriesPlan
from narrowcast.reports.whatif import Whatif

PRICES = ("km", "kt", "ku", "ka")


def family(plan: QueriesPlan) -> Family:
    """What can be changed: the constants of the cost, and how many physical channels there are."""
    return Family(
        budgets=() if plan.physical is None else ("channels",),
        prices=PRICES,
        measure="cost",
        yardstick="every query apart",
        present=lambda: share_of(plan.cost, plan.baseline),
        setting=partial(_setting, plan),
        replan=partial(_again, plan),
        warm_up=lambda: merge([[[0, 2], [0, 1]], [[0, 1], [0, 2]]]),
    )


def _setting(plan: QueriesPlan, name: str) -> float | None:
    known = plan.parameters.get(name)
    return None if known is None else float(known)


def _again(plan: QueriesPlan, settings: Settings, time_limit: float | None) -> Outcome:
    options: dict[str, Any] = {name: float(settings.get(name, getattr(plan.constants, name))) for name in CONSTANTS}
    options |= {name: plan.parameters[name] for name in CHOICES if name in plan.parameters}
    if "channels" in settings:
        options["channels"] = int(settings["channels"])
    found = make(plan.demand, plan.method, plan.procedure, seed=plan.seed, size=plan.problem().size, **options)
    return share_of(found.cost, found.baseline)


def quick(plan: QueriesPlan) -> Whatif | None:
    """None: merging has no budget to draw a curve over."""
    return None
