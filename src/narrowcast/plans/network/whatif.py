"""What other budgets and prices would make of a network plan."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from narrowcast.evaluate.whatif import Family, Outcome, Settings, share_of
from narrowcast.plans.network.plan import make
from narrowcast.plans.network.prices import UNITS
from narrowcast.plans.network.result import NetworkPlan
from narrowcast.reports.whatif import Whatif

BUDGETS = ("channels", "filters", "groups", "sessions", "joins_per_host")


def family(plan: NetworkPlan) -> Family:
    """Channels and filters of the backbone; groups, sessions and joins per host of every site that has multicast."""
    return Family(
        budgets=BUDGETS,
        prices=tuple(UNITS),
        measure="cost per hour",
        yardstick="each piece planned alone",
        present=partial(_share, plan),
        setting=partial(_setting, plan),
        replan=partial(_again, plan),
        warm_up=_warm_up,
        keeps_time=True,
    )


def _share(plan: NetworkPlan) -> Outcome:
    return share_of(plan.cost, float(plan.cost.baselines.get("stitched", plan.cost)))


def _setting(plan: NetworkPlan, name: str) -> float | None:
    if name in plan.parameters:
        return float(plan.parameters[name])
    most = int(getattr(plan.demand, name).max(initial=0))
    return None if most < 0 or (name == "joins_per_host" and (plan.demand.joins_per_host < 0).any()) else float(most)


def _again(plan: NetworkPlan, settings: Settings, time_limit: float | None) -> Outcome:
    demand, changed = plan.demand, dict[str, Any](settings)
    for name in ("groups", "sessions", "joins_per_host"):
        if name in changed:
            value = int(changed.pop(name))
            multicast = (demand.groups > 0) & (demand.sessions > 0)
            other: dict[str, Any] = {name: np.where(multicast, value, getattr(demand, name))}
            demand = replace(demand, **other)
    whole: dict[str, Any] = {name: int(changed.pop(name)) for name in ("channels", "filters") if name in changed}
    own: dict[str, Any] = {name: plan.parameters[name] for name in ("channels", "filters", "filter_delay", *UNITS)}
    made = make(demand, **(own | whole | changed), seed=plan.seed, time_limit=time_limit)
    return share_of(made.cost, float(plan.cost.baselines.get("stitched", plan.cost)))


def _warm_up() -> None:
    from narrowcast.workloads.network import network

    make(network(sites=2, users=6, symbols=20), channels=2)


def quick(plan: NetworkPlan) -> Whatif | None:
    """A network has no curve that is quick to make."""
    return None
