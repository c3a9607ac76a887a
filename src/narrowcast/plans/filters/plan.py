"""Which vertices of a multicast tree should filter: one entry for every objective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model.demand import Demand
from narrowcast.model.folder import fingerprint
from narrowcast.model.intake import table_in
from narrowcast.model.tables import find_table
from narrowcast.plans.filters.cost import DELAYS, WEIGHTS
from narrowcast.plans.filters.demand import measured_flow
from narrowcast.plans.filters.methods.flip import Goal, improve
from narrowcast.plans.filters.methods.optimum import METHODS, place
from narrowcast.plans.filters.methods.weighted import place_for_delay, place_weighted
from narrowcast.plans.filters.result import FiltersPlan, TreeDemand, placed
from narrowcast.plans.unused import refuse_unused

# The heuristic, where nobody says otherwise.
FLIP: Mapping[str, Any] = {"moves": 1, "move_price": 0.0}
# What belongs to each objective, and what it is where nobody says.
OBJECTIVES: Mapping[str, Mapping[str, Any]] = {"traffic": {"k": 15}, "delay": DELAYS, "both": {**DELAYS, **WEIGHTS}}


def make(
    demand: TreeDemand | Demand,
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
    previous: FiltersPlan | None = None,
    moves: int | None = None,
    move_price: float | None = None,
) -> FiltersPlan:
    """Place filters on a multicast tree so that links carry less of what nobody below wants.

    Parameters
    ----------
    demand : the tree, and what is wanted below each of its vertices; or what `measure` gave for a tree
    k : traffic: at most so many filters; 15 by default
    objective : "traffic", "delay" or "both"; for delay and both there are as many filters as pay
    filter_delay, link_delay : delay and both: of a filter (0 by default), of a link per unit of flow on it (1)
    traffic_weight, delay_weight, price : both: what each is worth, 1 by default, and the cost of a filter, 0
    method : "auto", "exact" or, for traffic, "price"; see `place`. For traffic and delay also "flip": one batch of
        the heuristic, which moves the filters of `previous`; see `improve`
    seed : kept in the plan; no method draws lots
    time_limit, progress : no method uses them; refused if given
    previous : flip: the plan in force, on a tree with the same node names
    moves, move_price : flip: the most filters to move, 1 by default, and what each move must save, 0

    Returns
    -------
    FiltersPlan : optimal, or with a gap that says how far from it it may be; from "flip", without a bound

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
    demand = _tree_demand(demand)
    refuse_unused("filters", time_limit=time_limit, progress=progress)
    if method != "flip":
        refuse_unused(f"method {method!r}", previous=previous, moves=moves, move_price=move_price)
    given = {
        "k": k, "filter_delay": filter_delay, "link_delay": link_delay, "traffic_weight": traffic_weight,
        "delay_weight": delay_weight, "price": price,
    }  # fmt: skip
    settings = _settings(objective, {name: value for name, value in given.items() if value is not None})
    if method == "flip":
        found = _flip(demand, objective, settings, previous, {"moves": moves, "move_price": move_price})
    else:
        found = _place(demand, objective, settings, method)
    made = replace(found, demand=replace(found.demand, key=demand.key, inputs=demand.inputs), seed=seed)
    return made.made_from(demand.inputs) if demand.inputs else made


def demand_in(folder: str | Path) -> TreeDemand:
    """The demand in a folder that `measure` wrote, or in its table `tree_demand`."""
    return TreeDemand(*measured_flow(folder), inputs={"tree_demand": fingerprint(_table(folder))})


def _table(folder: str | Path) -> Path:
    return table_in(Path(folder), "tree_demand") if Path(folder).is_dir() else Path(folder)


def _tree_demand(demand: object) -> TreeDemand:
    """A demand on a tree; what `measure` gave has one if it was told the tree."""
    if isinstance(demand, TreeDemand):
        return demand
    if isinstance(demand, Demand) and demand.folder is not None and find_table(demand.folder, "tree_demand"):
        return demand_in(demand.folder)
    got = type(demand).__name__
    hint = "It holds a tree and the flow of each of its vertices; nc.measure(..., tree=...) measures one"
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
    allowed = (*METHODS, "flip") if objective == "traffic" else ("auto", "exact", *(("flip",) * (objective == "delay")))
    if method not in allowed:
        _refuse("method", method, allowed)
    if objective == "traffic":
        return place(demand.tree, demand.flow, settings["k"], method=method)
    planner = place_for_delay if objective == "delay" else place_weighted
    return planner(demand.tree, demand.flow, **settings)


def _flip(
    demand: TreeDemand, objective: str, settings: Mapping[str, Any], previous: object, given: Mapping[str, Any]
) -> FiltersPlan:
    """One batch of the heuristic, from where the filters of another plan are."""
    if objective == "both":
        _refuse("method", "flip", ("auto", "exact"))
    if not isinstance(previous, FiltersPlan):
        hint = "The heuristic moves the filters of the plan in force"
        raise InputError(
            f"previous must be a filters plan for method 'flip', got {previous!r}. {hint}", name="previous"
        )
    place_of = {name: v for v, name in enumerate(demand.tree.names or map(str, range(demand.tree.n)))}
    names = [previous.node_names[v] for v in previous.filters.tolist()]
    for name in names:
        if name not in place_of:
            raise InputError(f"previous must be a plan for this tree; it has no node {name}", name="previous", got=name)
    fees = {**FLIP, **{name: value for name, value in given.items() if value is not None}}
    budget, delays = settings.get("k"), {name: settings[name] for name in DELAYS if name in settings}
    found = improve(
        demand.tree, demand.flow, np.array([place_of[name] for name in names], np.int64), cast(Goal, objective),
        fees["moves"], migration_cost=fees["move_price"], k=budget, **delays,
    )  # fmt: skip
    if budget is not None and found.filters.size > budget:
        raise InputError(f"previous must have at most k = {budget} filters, got {found.filters.size}", name="previous")
    return placed(demand, found.filters, {"objective": objective, "method": "flip", **settings, **fees})


def _refuse(name: str, got: str, allowed: tuple[str, ...]) -> None:
    raise InputError(f"{name} must be one of {', '.join(allowed)}, got {got!r}", name=name, allowed=allowed, got=got)
