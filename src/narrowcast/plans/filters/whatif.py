"""What other numbers of filters, delays and prices would make of a filters plan."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from narrowcast.evaluate.knee import knee_of
from narrowcast.evaluate.whatif import Family, Outcome, Settings, share_of
from narrowcast.model import Tree
from narrowcast.plans.filters.methods.optimum import place
from narrowcast.plans.filters.methods.weighted import place_for_delay
from narrowcast.plans.filters.plan import OBJECTIVES, make
from narrowcast.plans.filters.result import FiltersPlan
from narrowcast.reports.whatif import Whatif, parse_whatif

MOST = 400  # filters of a quick curve
POINTS = 40  # of it that are shown


def family(plan: FiltersPlan) -> Family:
    """What can be changed: the number of filters where traffic was made small, else delays and prices."""
    names = tuple(OBJECTIVES[plan.goal])
    return Family(
        budgets=names if plan.goal == "traffic" else (),
        prices=() if plan.goal == "traffic" else names,
        measure="traffic and delay" if plan.goal == "both" else plan.goal,
        yardstick="no filter",
        present=partial(_against_none, plan),
        setting=partial(_setting, plan),
        replan=partial(_again, plan),
        warm_up=_warm_up,
    )


def _setting(plan: FiltersPlan, name: str) -> float | None:
    known = plan.parameters.get(name)
    return None if known is None else float(known)


def _against_none(plan: FiltersPlan) -> Outcome:
    return share_of(plan.cost, plan.cost.baselines.get("no filter", 0.0))


def _again(plan: FiltersPlan, settings: Settings, time_limit: float | None) -> Outcome:
    own = {name: plan.parameters[name] for name in OBJECTIVES[plan.goal] if name in plan.parameters}
    changed: dict[str, Any] = {**own, **settings}
    if "k" in changed:
        changed["k"] = int(changed["k"])
    return _against_none(make(plan.demand, objective=plan.goal, **changed))


def _warm_up() -> None:
    tree = Tree([-1, 0, 0, 1, 1])
    place(tree, [3, 2, 1, 1, 1], 1)
    place_for_delay(tree, [3, 2, 1, 1, 1], filter_delay=1, link_delay=1)


def quick(plan: FiltersPlan) -> Whatif | None:
    """The least traffic for every number of filters: one run of the planner gives the whole curve."""
    if plan.goal != "traffic":
        return None
    present = len(plan.filters) if plan.k is None else plan.k
    most = min(max(2 * present, 8), int(plan.tree.can_filter.sum()), MOST)
    curve = np.asarray(place(plan.tree, plan.flow, most).curve, float)
    picked = np.round(np.linspace(0, len(curve) - 1, min(len(curve), POINTS))).astype(int).tolist()
    chosen, whole = sorted({*picked, min(present, len(curve) - 1)}), curve[0] or 1.0
    points = [{"filters": k, "cost": float(curve[k]), "relative": float(curve[k] / whole)} for k in chosen]
    if len(points) < 2:
        return None
    knee = knee_of([(point["filters"], point["cost"]) for point in points])
    return parse_whatif(
        {"x": "filters", "points": points, "present": present, "knee": knee}, "Optimal for every number."
    )
