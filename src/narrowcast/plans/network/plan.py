"""One plan for one network: every piece in one cost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from narrowcast.errors import InfeasibleError, InputError
from narrowcast.model.cost import Compared, Cost
from narrowcast.model.demand import Demand
from narrowcast.model.intake import read_measured
from narrowcast.model.network_demand import NetworkDemand
from narrowcast.model.quarantine import Quarantine
from narrowcast.model.tables import find_table
from narrowcast.plans.network.baselines import network_baselines
from narrowcast.plans.network.bounds import lower_bounds
from narrowcast.plans.network.cost import priced
from narrowcast.plans.network.decisions import Decisions, NetworkProblem
from narrowcast.plans.network.intake import read_network
from narrowcast.plans.network.methods.joint import Timer, improved, stitched
from narrowcast.plans.network.methods.merging import MergedNetwork, alone, merged_networks, previous_sets
from narrowcast.plans.network.methods.previous import carried_over, within_moves
from narrowcast.plans.network.prices import NetworkPrices
from narrowcast.plans.network.queries import with_answers, without_answers
from narrowcast.plans.network.result import NetworkPlan

METHODS = ("joint", "stitched")
MOST = 10_000


class NetworkProgress(NamedTuple):
    """What a progress callback is told: seconds so far, the piece that was planned, the cost of the whole then."""

    elapsed_s: float
    piece: str
    cost: float


def make(
    demand: NetworkDemand | Demand | str | Path,
    channels: int = 32,
    filters: int = 4,
    price_cpu: float = NetworkPrices().price_cpu,
    price_send: float = NetworkPrices().price_send,
    price_filter: float = NetworkPrices().price_filter,
    price_group: float = NetworkPrices().price_group,
    filter_delay: float = 0.0,
    method: str = "joint",
    network: str | Path | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    progress: Callable[[NetworkProgress], None] | None = None,
    previous: NetworkPlan | None = None,
    moves: int | None = None,
    period_s: float | None = None,
    row_bytes: float | None = None,
) -> NetworkPlan:
    """Plan sites, backbone, filters, unicast and merged queries of a network in one cost.

    Parameters
    ----------
    demand : a NetworkDemand, or a folder with its tables, or a Demand whose network is in the folder `network`
    channels : the most channels on the backbone; each has one tree of links
    filters : the most brokers that filter
    price_cpu, price_send, price_filter, price_group : per CPU hour, million copies, filter hour and group hour; what
        a link costs per GB stands in the topology
    filter_delay : ms that a filter delays what it forwards
    method : `joint`, or `stitched`: each piece by its own planner, put together
    network : a folder with the tables sites, hosts, topology, subscriptions and sources
    seed : same seed, same plan
    time_limit : seconds; the best plan so far is returned about then
    progress : told of each piece as it is planned
    previous : the plan that runs: the new one starts from it
    moves : with `previous`, the most flows that may change their way on the backbone or in a site; queries then stay
        in the sets that they are in
    period_s, row_bytes : of a demand with queries, seconds between their answers and bytes of a row; 60 and 100

    Returns
    -------
    NetworkPlan : what each flow does on its way, with the cost per hour by term

    Raises
    ------
    InputError : a value out of range, or a table that cannot be used
    InfeasibleError : no plan was found that keeps a capacity or a latency bound

    >>> from narrowcast.workloads.network import network
    >>> plan = make(network(sites=3, users=20, symbols=50), channels=4)
    >>> plan.cost.total <= plan.cost.baselines["stitched"] <= plan.cost.baselines["unicast"]
    True
    """
    given = _network_demand(demand, network)
    prices = NetworkPrices(float(price_cpu), float(price_send), float(price_filter), float(price_group))
    for name, value, low in (("channels", channels, 0), ("filters", filters, 0), ("moves", moves, 0)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not low <= value <= MOST):
            raise InputError(f"{name} must be a whole number from {low} to {MOST}, got {value!r}", name=name, got=value)
    if not (np.isfinite(filter_delay) and filter_delay >= 0):
        raise InputError(f"filter_delay must be zero or more ms, got {filter_delay}", name="filter_delay")
    if method not in METHODS:
        known = f"method must be one of {', '.join(METHODS)}, got {method!r}"
        raise InputError(known, name="method", allowed=METHODS, got=method)
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"time_limit must be above 0, got {time_limit}", name="time_limit", got=time_limit)
    if moves is not None and previous is None:
        raise InputError("moves must be left out without a previous plan", name="moves", got=moves)
    given = _served(without_answers(given), period_s, row_bytes)
    problem, began = NetworkProblem(given, prices, channels, filters, float(filter_delay)), monotonic()

    def told(piece: str, cost: float) -> None:
        if progress is not None:
            progress(NetworkProgress(monotonic() - began, piece, cost))

    def decide(posed: NetworkProblem, timer: Timer) -> tuple[Decisions, Decisions]:
        _refuse_hopeless(posed)
        return _decided(posed, method, seed, timer, told, previous, moves)

    timer, queries = Timer(time_limit), given.queries
    if queries is None:
        return packed(problem, *decide(problem, timer), method, seed)
    kept = previous_sets(queries, previous.demand) if previous is not None else None
    sets = alone(problem, queries) if kept is None else kept
    if method == "stitched" or moves is not None:
        posed = replace(problem, demand=with_answers(given, sets))
        return packed(posed, *decide(posed, timer), method, seed)
    best, first = merged_networks(problem, sets, decide, timer, seed)
    return packed(best.problem, best.made, best.start, method, seed, first)


def _served(demand: NetworkDemand, period_s: float | None, row_bytes: float | None) -> NetworkDemand:
    """The demand with its queries answered so often, in rows of so many bytes."""
    said = {n: float(v) for n, v in (("period_s", period_s), ("row_bytes", row_bytes)) if v is not None}
    if demand.queries is None:
        for name, value in said.items():
            raise InputError(f"{name} must be left out: the demand has no queries", name=name, got=value)
        return demand
    return replace(demand, queries=replace(demand.queries, **said))  # type: ignore[arg-type]


def _decided(
    problem: NetworkProblem, method: str, seed: int, timer: Timer, told: Callable[[str, float], None],
    previous: NetworkPlan | None, moves: int | None,
) -> tuple[Decisions, Decisions]:  # fmt: skip
    start = stitched(problem, seed, timer)
    told("stitched", priced(problem, start).total)
    best = improved(problem, start, seed, timer, told) if method == "joint" else start
    if previous is None:
        return best, start
    old = carried_over(problem, previous.problem, previous.decisions)
    if moves is not None:
        return within_moves(problem, old, best, moves), start
    again = improved(problem, old, seed, timer, told)
    return min((again, best), key=lambda each: priced(problem, each).total), start


def packed(
    problem: NetworkProblem, made: Decisions, start: Decisions, method: str, seed: int,
    first: MergedNetwork | None = None,
) -> NetworkPlan:  # fmt: skip
    """The plan of some decisions, with its cost and what that is held against; `first` has queries merged alone."""
    found = priced(problem, made)
    # Other sets have other answers, so what no plan goes below counts flows alone.
    bounds = lower_bounds(replace(problem, demand=without_answers(problem.demand)))
    total, bound = found.total, min(sum(bounds.values()), found.total)
    parameters: dict[str, Any] = {
        "method": method, "channels": problem.channels, "filters": problem.filters,
        "filter_delay": problem.filter_delay, **asdict(problem.prices), "lower_bounds": bounds,
    }  # fmt: skip

    def compare() -> Compared:
        costs = network_baselines(problem, made, start)
        if first is not None:
            kept = priced(first.problem, first.start)
            costs = {name: cost for name, cost in costs.items() if name != "stitched"}
            costs |= {"stitched": kept.total} if kept.legal else {}
        baselines = {name: Cost(cost) for name, cost in costs.items()}
        return Compared(baselines, bound, 1 - bound / total if total > 0 else 0.0)

    return NetworkPlan(
        demand=problem.demand,
        cost=Cost(total, found.terms, compare),
        parameters=parameters,
        seed=seed,
        inputs=problem.demand.inputs,
        decisions=made,
    )


def demand_in(folder: str | Path) -> NetworkDemand | Demand:
    """What is in a folder: a whole network, or flows and interest alone, for a network that is elsewhere."""
    if find_table(folder, "sites") is not None:
        return read_network(folder)
    return read_measured(folder, Quarantine())


def _network_demand(demand: NetworkDemand | Demand | str | Path, network: str | Path | None) -> NetworkDemand:
    if isinstance(demand, NetworkDemand):
        if network is not None:
            raise InputError("network must be left out: the demand has one", name="network")
        return demand
    if isinstance(demand, str | Path):
        return read_network(network or demand, demand if network else None)
    folder = network or getattr(demand, "folder", None)
    if not isinstance(demand, Demand) or folder is None:
        raise InputError(
            f"demand must be a NetworkDemand, a Demand or a folder, got {type(demand).__name__}",
            name="demand",
            hint="give network=FOLDER with the tables sites, hosts, topology, subscriptions and sources",
        )
    return read_network(folder, demand)


def _refuse_hopeless(problem: NetworkProblem) -> None:
    """Every site that wants something must be reachable from where it enters, and in time."""
    d = problem.demand
    flow, site = np.nonzero(problem.remote)
    pairs = np.unique(np.column_stack((d.source[flow], site)), axis=0)
    apart = ~np.isfinite(problem.by_cost.distance[d.gateway[pairs[:, 0]], d.gateway[pairs[:, 1]]])
    if apart.any():
        a, b = pairs[np.argmax(apart)].tolist()
        raise InputError(
            f"no path joins the sites {d.sites[a]} and {d.sites[b]}", name="topology", hint="add a link between them"
        )
    flow, site = np.nonzero(problem.wanted)
    least = problem.by_delay.delay[d.gateway[d.source[flow]], d.gateway[site]]
    late = least > problem.tightest[flow, site] * (1 + 1e-9)
    if late.any():
        at = int(np.argmax(late))
        needed = float(least[at] + d.lan_delay[site[at]])
        flows = d.interest.flow_names or tuple(map(str, range(d.interest.n_flows)))
        raise InfeasibleError(
            f"latency_bound must be at least {needed:g} ms in {d.sites[site[at]]} for flow {flows[flow[at]]}, got "
            f"{float(problem.tightest[flow[at], site[at]] + d.lan_delay[site[at]]):g}",
            budget="latency_bound",
            smallest=needed,
        )
