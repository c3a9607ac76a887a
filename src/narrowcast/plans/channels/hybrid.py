"""Hybrid plans: some flows in multicast groups, some by unicast (the hybrid paper, §3–4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial

import numpy as np

from narrowcast.errors import InfeasibleError, InputError, UnsupportedError
from narrowcast.model import Interest
from narrowcast.model.arrays import Bools, Ints, frozen
from narrowcast.model.cost import Compared, Cost
from narrowcast.model.demand import Demand
from narrowcast.plans.channels.baselines import hybrid_baselines
from narrowcast.plans.channels.cost import check_prices
from narrowcast.plans.channels.kernels.greedy_unicast import Mixed
from narrowcast.plans.channels.lower_bound import hybrid_lower_bound
from narrowcast.plans.channels.methods.bmd import bmd
from narrowcast.plans.channels.methods.flow_merge import flow_merge
from narrowcast.plans.channels.methods.greedy_unicast import greedy_flow, greedy_pair, greedy_user
from narrowcast.plans.channels.methods.hybrid_search import hybrid_search, two_level_hybrid
from narrowcast.plans.channels.methods.interior_point import interior_point
from narrowcast.plans.channels.methods.kmeans import compact, in_order, kmeans
from narrowcast.plans.channels.methods.ordered_unicast import iterative_unicast, ordered_unicast
from narrowcast.plans.channels.methods.reverse import one_flow_per_group, reverse
from narrowcast.plans.channels.methods.two_phase import two_phase
from narrowcast.plans.channels.mixed import Weights, mixed, terms
from narrowcast.plans.channels.plan import check_budgets
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
    unicast : `search` puts flows into groups or unicast in one cost, from the channelized plan and from the reverse
        start, and is never worse than any heuristic that channelizes once. The published ones: none,
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
                f"{name} is {value!r}; allowed: {', '.join(allowed)}", name=name, allowed=allowed, got=value
            )
    if sessions is not None:
        return _two_level(demand, groups, check_budgets(sessions, sessions)[0], unicast, w, beta, seed)
    points, point_of_flow = plain(interest)
    rng = np.random.default_rng([seed, 3])
    task = Task(interest, points, groups, w, channelizer, rng, seed)
    group_of, alone = UNICAST[unicast](task) if points.n else (np.zeros(0, np.int64), np.zeros(0, np.bool_))
    if points.n and terms(points, group_of, alone, w).unicast_share > w.cap * (1 + 1e-9):
        raise InfeasibleError(
            f"unicast={unicast!r} found no plan with a unicast share of at most {w.cap}", budget="cap"
        )
    more = {} if cap is None else {"cap": cap}
    return _pack(demand, points, point_of_flow, group_of, alone, groups, w, seed, more)


def _two_level(
    demand: Demand, groups: int, sessions: int, unicast: str, w: Weights, beta: float, seed: int
) -> ChannelsPlan:
    if unicast != "search" or w.cap < 1:
        raise UnsupportedError("with sessions only unicast='search' without a cap is there", works=("search",))
    check_prices(1, beta)
    w, interest = replace(w, filter=float(beta)), demand.interest
    points, point_of_flow = plain(interest)
    classes, class_of_flow = collapse(interest)
    session_of, group_of = two_level_hybrid(classes, min(groups, sessions), sessions, w, seed)
    wanted = point_of_flow >= 0
    session = np.full(interest.n_flows, -1)
    session[wanted] = session_of[class_of_flow[wanted]]
    session, group_of = compact(session, group_of)
    group = np.where(session >= 0, group_of[session] if group_of.size else -1, -1)[wanted]
    alone = (group < 0)[points.point_of_pair]
    more = {"sessions": sessions, "beta": float(beta)}
    found = _pack(demand, points, point_of_flow, group, alone, groups, w, seed, more)
    # The flow filter's part is reception too.
    filtered = beta * points.merged(session[wanted], group_of.size).useful
    price = dict(found.cost.terms)
    price["reception"] += filtered
    price["perfect"] += beta * points.useful
    return replace(
        found,
        cost=_priced(demand.interest, price, groups, w),
        session_of_flow=frozen(session),
        group_of_session=frozen(group_of),
    )


@dataclass(frozen=True, eq=False)
class Task:
    """All that a choice of unicast is told."""

    interest: Interest
    points: Points
    groups: int
    w: Weights
    channelizer: str
    rng: np.random.Generator
    seed: int

    def channelized(self) -> Ints:
        return CHANNELIZERS[self.channelizer](self)

    def again(self, thin: Points, start: Ints) -> Ints:
        """Channelize what is left: from where it was with K-means, afresh with the others."""
        if self.channelizer == "kmeans":
            return kmeans(thin, self.groups, self.rng, start)
        left = Interest(thin.offsets, thin.users, thin.rates, thin.n_users)
        return Task(left, thin, self.groups, self.w, self.channelizer, self.rng, self.seed).channelized()

    def plan(self) -> Mixed:
        return mixed(self.points, self.channelized(), None, self.groups)


Channelize = Callable[[Points, int, np.random.Generator], Ints]


def _classes(task: Task, channelize: Channelize) -> Ints:
    """Channelize audiences, each once, and give every flow the group of its audience."""
    points, point_of_flow = collapse(task.interest)
    group = channelize(points, task.groups, task.rng) if points.n else np.zeros(0, np.int64)
    return group[point_of_flow[point_of_flow >= 0]]


def _flows(task: Task, channelize: Channelize) -> Ints:
    return channelize(task.points, task.groups, task.rng) if task.points.n else np.zeros(0, np.int64)


CHANNELIZERS: dict[str, Callable[[Task], Ints]] = {
    "kmeans": partial(_classes, channelize=kmeans),
    "random": partial(_flows, channelize=lambda points, n, rng: rng.integers(0, n, points.n)),
    "two-phase": partial(_flows, channelize=two_phase),
    "bmd": partial(_flows, channelize=bmd),
    "interior-point": partial(_classes, channelize=interior_point),
    "flow-merge": partial(_classes, channelize=flow_merge),
}

Chosen = tuple[Ints, Bools]


def _none(task: Task) -> Chosen:
    plan = task.plan()
    return plan.group_of, plan.alone


def _greedy(task: Task, choose: Callable[[Points, Mixed, Weights], None]) -> Chosen:
    plan = task.plan()
    choose(task.points, plan, task.w)
    return plan.group_of, plan.alone


def _iterative(task: Task, *, heaviest: bool, by_user: bool) -> Chosen:
    plan = iterative_unicast(task.points, task.plan(), task.w, task.again, heaviest=heaviest, by_user=by_user)
    return plan.group_of, plan.alone


def _reverse(task: Task) -> Chosen:
    points, point_of_flow = collapse(task.interest)
    group = reverse(points, task.groups, task.w)[point_of_flow[point_of_flow >= 0]]
    return group, (group < 0)[task.points.point_of_pair]


def _search(task: Task) -> Chosen:
    points, w = task.points, task.w
    classes, point_of_flow = collapse(task.interest)
    class_of = point_of_flow[point_of_flow >= 0]
    plan = task.plan()
    found = [(plan.group_of, plan.alone), _reverse(task)]
    for choose in (*GREEDY.values(), *ORDERED.values()):
        trial = Mixed(*(array.copy() for array in plan))
        choose(points, trial, w)
        found.append((trial.group_of, trial.alone))
    starts = [_of_classes(group, class_of, classes.n) for group, _ in found]
    starts.append(one_flow_per_group(classes, task.groups, w))
    for group, alone in hybrid_search(classes, task.groups, w, starts, task.seed):
        found.append((group[class_of], _pairs_of_classes(points, classes, class_of, alone)))
    return min(found, key=lambda plan: _rank(points, plan, w))


def _of_classes(group_of: Ints, class_of: Ints, n: int) -> Ints:
    """A group for each audience: that of its last flow (they mostly agree)."""
    group = np.full(n, -1)
    group[class_of] = group_of
    return group


def _pairs_of_classes(points: Points, classes: Points, class_of: Ints, alone: Bools) -> Bools:
    inner = np.arange(points.users.size) - np.repeat(points.offsets[:-1], points.sizes)
    result: Bools = alone[np.repeat(classes.offsets[class_of], points.sizes) + inner]
    return result


def _rank(points: Points, plan: Chosen, w: Weights) -> tuple[bool, float]:
    found = terms(points, *plan, w)
    return found.unicast_share > w.cap * (1 + 1e-9), found.total


GREEDY: dict[str, Callable[[Points, Mixed, Weights], None]] = {
    "greedy-flow": greedy_flow,
    "greedy-user": greedy_user,
    "greedy-pair": greedy_pair,
}
# Name, then heaviest first, then by user.
_KINDS = (
    ("lightest-flow", False, False),
    ("lightest-user", False, True),
    ("heaviest-flow", True, False),
    ("heaviest-user", True, True),
)
ORDERED: dict[str, Callable[[Points, Mixed, Weights], None]] = {
    name: partial(ordered_unicast, heaviest=heaviest, by_user=by_user) for name, heaviest, by_user in _KINDS
}
UNICAST: dict[str, Callable[[Task], Chosen]] = {
    "none": _none,
    **{name: partial(_greedy, choose=choose) for name, choose in ORDERED.items()},
    **{
        f"{name}-iterative": partial(_iterative, heaviest=heaviest, by_user=by_user)
        for name, heaviest, by_user in _KINDS
    },
    **{name: partial(_greedy, choose=choose) for name, choose in GREEDY.items()},
    "reverse": _reverse,
    "search": _search,
}


def check_weights(weights: Sequence[float], cap: float | None) -> Weights:
    if len(weights) != 3 or not all(np.isfinite(w) and w >= 0 for w in weights):
        raise InputError(f"weights is {weights!r}; it must be three numbers, zero or more", name="weights", got=weights)
    if cap is not None and not 0 <= cap <= 1:
        raise InputError(f"cap is {cap}; it must be between 0 and 1", name="cap", got=cap)
    return Weights(float(weights[0]), float(weights[1]), float(weights[2]), 1.0 if cap is None else float(cap))


def _pack(
    demand: Demand,
    points: Points,
    point_of_flow: Ints,
    group_of: Ints,
    alone: object,
    groups: int,
    w: Weights,
    seed: int,
    more: Mapping[str, float],
) -> ChannelsPlan:
    """Without sessions each group is one."""
    alone = np.asarray(alone, np.bool_)
    price = terms(points, group_of, alone, w)
    wanted = point_of_flow >= 0
    group_of_flow = np.full(demand.interest.n_flows, -1)
    used, group_of_flow[wanted] = in_order(group_of)
    flow = np.flatnonzero(wanted)[points.point_of_pair[alone]]
    return ChannelsPlan(
        demand=demand,
        cost=_priced(demand.interest, asdict(price), groups, w),
        parameters={"groups": groups, "weights": [w.receive, w.send, w.copy], **more},
        seed=seed,
        inputs=demand.inputs,
        session_of_flow=frozen(group_of_flow),
        group_of_session=frozen(np.arange(used.size)),
        unicast=(frozen(flow), frozen(points.users[alone])),
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
