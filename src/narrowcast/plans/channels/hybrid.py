"""Hybrid plans: some flows in multicast groups, some by unicast (the hybrid paper, §3–4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from narrowcast.errors import InfeasibleError, InputError, UnsupportedError
from narrowcast.model import Interest
from narrowcast.model.arrays import Bools, Ints, frozen
from narrowcast.model.cost import Compared, Cost
from narrowcast.model.demand import Demand
from narrowcast.plans.channels.baselines import hybrid_baselines
from narrowcast.plans.channels.choices import CHANNELIZERS, UNICAST, Task, random_numbers
from narrowcast.plans.channels.cost import check_prices
from narrowcast.plans.channels.lower_bound import hybrid_lower_bound
from narrowcast.plans.channels.methods.hybrid_search import two_level_hybrid
from narrowcast.plans.channels.methods.kmeans import compact, in_order
from narrowcast.plans.channels.mixed import Terms, Weights, terms, two_level_terms
from narrowcast.plans.channels.plan import check_budgets, usable
from narrowcast.plans.channels.points import Points, collapse, plain
from narrowcast.plans.channels.result import ChannelsPlan
from narrowcast.plans.unused import refuse_unused


def hybrid(
    interest: Interest | Demand,
    groups: int = 50,
    channelizer: str = "kmeans",
    unicast: str = "search",
    weights: Sequence[float] = (1, 1, 1),
    cap: float | None = None,
    seed: int = 0,
    sessions: int | None = None,
    beta: float = 1,
    time_limit: float | None = None,
    progress: object = None,
    previous: object = None,
) -> ChannelsPlan:
    """Channelize the flows, then choose what goes by unicast, so that C' is small.

    Parameters
    ----------
    interest : who wants which flow and how fast each is; or a Demand, which also knows the flow key
    groups : how many multicast groups may be used
    channelizer : kmeans, random, two-phase, bmd, interior-point or flow-merge (the hybrid paper, §3)
    unicast : `search` puts flows into groups or unicast in one cost, from the reverse start and from what every
        heuristic makes of every channelizer, and is never worse than any of them (of very large systems and for
        heuristics that channelize again and again: as far as the work is bounded). The published ones: none,
        {lightest,heaviest}-{flow,user}[-iterative], greedy-flow, greedy-user, greedy-pair, reverse (§4)
    weights : w1, w2, w3: what receiving, sending and unicast beside both cost
    cap : the largest share of C' that unicast may have
    seed : same seed, same plan
    sessions, beta : with `sessions` each flow goes to a session of a group or to unicast, and flow filtering counts
        too: C' + β Σ_users Σ_sessions subscribed θ, a unicast copy costing w3(w1 + β + w2); for `search`
    time_limit, progress, previous : not used yet; refused if given

    Returns
    -------
    ChannelsPlan : the group of each flow (−1: not multicast), the unicast pairs, C', percent_of_perfect, unicast_share

    Raises
    ------
    InputError : an unknown name, or a value out of range
    InfeasibleError : no plan with so little unicast was found

    >>> interest = Interest.from_pairs([0, 0, 0, 1, 2], [0, 1, 2, 3, 4], [5.0, 1.0, 1.0])
    >>> r = hybrid(interest, groups=1)
    >>> r.group_of_flow.tolist(), [a.tolist() for a in r.unicast], r.cost, r.percent_of_perfect
    ([0, -1, -1], [[1, 2], [3, 4]], 24.0, 100.0)
    """
    refuse_unused("plans with unicast", time_limit=time_limit, progress=progress, previous=previous)
    demand = Demand.of(interest)
    interest = demand.interest
    groups, _ = check_budgets(groups, groups)
    w = check_weights(weights, cap)
    for name, value, allowed in (
        ("channelizer", channelizer, tuple(CHANNELIZERS)),
        ("unicast", unicast, tuple(UNICAST)),
    ):
        if value not in allowed:
            raise InputError(
                f"{name} must be one of {', '.join(allowed)}, got {value!r}", name=name, allowed=allowed, got=value
            )
    if sessions is not None:
        return _two_level(demand, groups, check_budgets(groups, sessions)[1], unicast, w, beta, seed)
    points, point_of_flow = plain(interest)
    task = Task(interest, points, usable(groups, interest), w, channelizer, random_numbers(seed), seed)
    group_of, alone = UNICAST[unicast](task) if points.n else (np.zeros(0, np.int64), np.zeros(0, np.bool_))
    if points.n and terms(points, group_of, alone, w).unicast_share > w.cap * (1 + 1e-9):
        raise InfeasibleError(
            f"unicast={unicast!r} found no plan with a unicast share of at most {w.cap}", budget="cap"
        )
    more: dict[str, Any] = {} if cap is None else {"cap": cap}
    if unicast != "search":  # which asks every channelizer
        more |= {"channelizer": channelizer, "unicast": unicast}
    return _pack(demand, points, point_of_flow, group_of, alone, groups, w, seed, more)


def _two_level(
    demand: Demand, groups: int, sessions: int, unicast: str, w: Weights, beta: float, seed: int
) -> ChannelsPlan:
    if unicast != "search" or w.cap < 1:
        raise UnsupportedError("sessions need unicast='search' and no cap in plans with unicast", works=("search",))
    check_prices(1, beta)
    w, interest = replace(w, filter=float(beta)), demand.interest
    points, point_of_flow = plain(interest)
    classes, class_of_flow = collapse(interest)
    n_groups, n_sessions = usable(min(groups, sessions), interest), usable(sessions, interest)
    session_of, group_of = two_level_hybrid(classes, n_groups, n_sessions, w, seed)
    wanted = point_of_flow >= 0
    session = np.full(interest.n_flows, -1)
    session[wanted] = session_of[class_of_flow[wanted]]
    session, group_of = compact(session, group_of)
    alone = (session[wanted] < 0)[points.point_of_pair]
    price = two_level_terms(points, session[wanted], group_of, alone, w)
    more = {"sessions": sessions, "beta": float(beta)}
    return packed_hybrid(demand, price, session, group_of, alone, groups, w, seed, more)


def check_weights(weights: Sequence[float], cap: float | None) -> Weights:
    if len(weights) != 3 or not all(np.isfinite(w) and w >= 0 for w in weights):
        raise InputError(f"weights must be three numbers, zero or more, got {weights!r}", name="weights", got=weights)
    if cap is not None and not 0 <= cap <= 1:
        raise InputError(f"cap must be between 0 and 1, got {cap}", name="cap", got=cap)
    return Weights(float(weights[0]), float(weights[1]), float(weights[2]), 1.0 if cap is None else float(cap))


def _pack(
    demand: Demand,
    points: Points,
    point_of_flow: Ints,
    group_of: Ints,
    alone: Bools,
    groups: int,
    w: Weights,
    seed: int,
    more: Mapping[str, Any],
) -> ChannelsPlan:
    """Without sessions each group is one."""
    price = terms(points, group_of, alone, w)
    wanted = point_of_flow >= 0
    group_of_flow = np.full(demand.interest.n_flows, -1)
    used, group_of_flow[wanted] = in_order(group_of)
    return packed_hybrid(demand, price, group_of_flow, np.arange(used.size), alone, groups, w, seed, more)


def packed_hybrid(
    demand: Demand,
    price: Terms,
    session: Ints,
    group_of: Ints,
    alone: Bools,
    groups: int,
    w: Weights,
    seed: int,
    more: Mapping[str, Any],
) -> ChannelsPlan:
    """The plan of two maps and of the pairs by unicast, with its cost and what that is held against."""
    interest = demand.interest
    return ChannelsPlan(
        demand=demand,
        cost=_priced(interest, asdict(price), groups, w),
        parameters={"groups": groups, "weights": [w.receive, w.send, w.copy], **more},
        seed=seed,
        inputs=demand.inputs,
        session_of_flow=frozen(session),
        group_of_session=frozen(group_of),
        unicast=(frozen(interest.flow_of_pair[alone]), frozen(interest.users[alone])),
    )


def _priced(interest: Interest, parts: Mapping[str, float], groups: int, w: Weights) -> Cost:
    """C' with its parts, held against the same without search."""
    total = parts["reception"] + parts["transmission"] + parts["unicast"]

    def compare() -> Compared:
        bound = min(hybrid_lower_bound(interest, (w.receive, w.send, w.copy), w.filter), total)
        # Without sessions to tell flows apart all is filtered too.
        baselines = hybrid_baselines(interest, groups, (w.receive + w.filter, w.send, w.copy))
        return Compared(baselines, bound, 1 - bound / total if total > 0 else 0.0)

    return Cost(total, parts, compare)
