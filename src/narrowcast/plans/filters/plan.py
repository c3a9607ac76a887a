"""Which vertices of a multicast tree should filter: one entry for every objective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from narrowcast.errors import InputError
from narrowcast.plans.filters.cost import DELAYS, WEIGHTS
from narrowcast.plans.filters.methods.optimum import METHODS, place
from narrowcast.plans.filters.methods.weighted import place_for_delay, place_weighted
from narrowcast.plans.filters.result import FiltersPlan, TreeDemand
from narrowcast.plans.unused import refuse_unused

# What belongs to each objective, and what it is where nobody says.
OBJECTIVES: Mapping[str, Mapping[str, Any]] = {
    "traffic": {"k": 15},
    "delay": DELAYS,
    "both": {**DELAYS, **WEIGHTS},
}


def make(
    demand: TreeDemand,
    k: int | None = None,
    objective: str = "traffic",
    filter_delay: float | None = None,
    link_delay: float | None = None,
    traffic_weight: float | None = None,
    delay_weight: float | None = None,
    price: float | None = None,
    method: str = "auto",
    seed: int = 0,
    time_limit: float | None = None,
    progress: object = None,
    previous: object = None,
) -> FiltersPlan:
    """Place filters on a multicast tree so that links carry less of what nobody below wants.

    Parameters
    ----------
    demand : the tree, and what is wanted below each of its vertices
    k : traffic: at most so many filters; 15 by default
    objective : "traffic", "delay" or "both"; for delay and both there are as many filters as pay
    filter_delay, link_delay : delay and both: of a filter (0 by default), of a link per unit of flow on it (1)
    traffic_weight, delay_weight, price : both: what each is worth, 1 by default, and the cost of a filter, 0
    method : "auto", "exact" or, for traffic, "price"; see `place`
    seed : kept in the plan; no method draws lots
    time_limit, progress, previous : no method uses them; refused if given

    Returns
    -------
    FiltersPlan : optimal, or with a gap that says how far from it it may be

    Raises
    ------
    InputError : an unknown name, or a parameter that the objective does not use

    >>> import narrowcast as nc
    >>> demand = TreeDemand(nc.Tree([-1, 0, 0, 1, 1, 2, 2]), [4, 2, 3, 1, 1, 2, 2])
    >>> make(demand, k=2).filters.tolist(), make(demand, objective="delay", filter_delay=2).delay
    ([0, 1], 28.0)
    >>> make(demand, k=2, objective="delay")
    Traceback (most recent call last):
    narrowcast.errors.InputError: k must be left out for objective 'delay', got 2. It uses filter_delay, link_delay
    """
    _check_demand(demand)
    refuse_unused("filters", time_limit=time_limit, progress=progress, previous=previous)
    given = {
        "k": k, "filter_delay": filter_delay, "link_delay": link_delay, "traffic_weight": traffic_weight,
        "delay_weight": delay_weight, "price": price,
    }  # fmt: skip
    settings = _settings(objective, {name: value for name, value in given.items() if value is not None})
    found = _place(demand, objective, settings, method)
    return replace(found, demand=replace(found.demand, key=demand.key), seed=seed)


def _check_demand(demand: object) -> None:
    if not isinstance(demand, TreeDemand):
        got = type(demand).__name__
        hint = "It holds a tree and the flow of each of its vertices"
        raise InputError(f"demand must be a TreeDemand, got {got}. {hint}", name="demand", got=got)


def _settings(objective: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """What an objective is made with; a name that it does not use is refused."""
    if objective not in OBJECTIVES:
        _refuse("objective", objective, tuple(OBJECTIVES))
    uses = OBJECTIVES[objective]
    for name, value in given.items():
        if name not in uses:
            told = f"{name} must be left out for objective {objective!r}, got {value!r}. It uses {', '.join(uses)}"
            raise InputError(told, name=name, allowed=tuple(uses), got=value)
    return {**uses, **given}


def _place(demand: TreeDemand, objective: str, settings: Mapping[str, Any], method: str) -> FiltersPlan:
    allowed = METHODS if objective == "traffic" else ("auto", "exact")
    if method not in allowed:
        _refuse("method", method, allowed)
    if objective == "traffic":
        return place(demand.tree, demand.flow, settings["k"], method=method)
    planner = place_for_delay if objective == "delay" else place_weighted
    return planner(demand.tree, demand.flow, **settings)


def _refuse(name: str, got: str, allowed: tuple[str, ...]) -> None:
    raise InputError(f"{name} must be one of {', '.join(allowed)}, got {got!r}", name=name, allowed=allowed, got=got)
