"""Which flow goes into which session, and which session into which group."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from time import monotonic, thread_time

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.errors import InputError, UnsupportedError
from narrowcast.model import Interest
from narrowcast.model.arrays import Ints, frozen, indices
from narrowcast.model.cost import Compared
from narrowcast.model.demand import Demand
from narrowcast.plans.channels.baselines import plan_baselines
from narrowcast.plans.channels.cost import check_prices, cost
from narrowcast.plans.channels.kernels.two_level import Prices
from narrowcast.plans.channels.limits import Limits, check_limits, fences
from narrowcast.plans.channels.lower_bound import plan_lower_bound
from narrowcast.plans.channels.methods.groups_first import groups_first
from narrowcast.plans.channels.methods.iterative import iterative
from narrowcast.plans.channels.methods.kmeans import compact
from narrowcast.plans.channels.methods.limited_search import limited_search
from narrowcast.plans.channels.methods.random_plan import random_plan
from narrowcast.plans.channels.methods.random_restart import random_restart
from narrowcast.plans.channels.methods.search import Clock, Maps, Progress, search
from narrowcast.plans.channels.methods.streams_first import streams_first
from narrowcast.plans.channels.points import Points, collapse, plain
from narrowcast.plans.channels.result import ChannelsPlan
from narrowcast.plans.unused import refuse_unused

# Pairs × sessions above which the published methods, run thirty times over, are not made as starts.
VERY_LARGE = 3 * 10**8
FREE_PART = 0.6  # of the time limit of a search under limits, for the plan without them
MOST_BUDGET = 10**7  # more groups or sessions than that are a slip of the keyboard
ROOM = 1000  # groups and sessions that are worked with though flows are fewer


def plan(
    interest: Interest | Demand,
    groups: int = 50,
    sessions: int = 500,
    method: str = "search",
    alpha: float = 1,
    beta: float = 1,
    seed: int = 0,
    time_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    limits: Limits | None = None,
    previous: ChannelsPlan | tuple[ArrayLike, ArrayLike] | None = None,
) -> ChannelsPlan:
    """Map flows to sessions and sessions to multicast groups so that subscribers filter the least.

    Parameters
    ----------
    interest : who wants which flow and how fast each is; or a Demand, which also knows the flow key
    groups, sessions : how many of each may be used
    method : `search` minimises the two-level cost itself and is never worse than the published methods, which it runs
        first: `sf`, `gf`, `it`, `rra` (Tock et al. 2005, §4). `random` is for comparison
    alpha, beta : what a message of a group costs everybody in it, and one of a session everybody who takes it
    seed : same seed, same plan
    time_limit : seconds, for `search`: the pace follows the clock, and the best plan so far is returned in time
    progress : told of each improvement, for `search`
    limits : what must be kept beside groups and sessions; for `search`
    previous : the plan that runs, or its two maps: groups and sessions keep their numbers, some may stay empty

    Returns
    -------
    ChannelsPlan : the session of each flow (−1: nobody wants it), the group of each session, the cost

    Raises
    ------
    InputError : a value out of range, or one that the method does not use
    InfeasibleError : no plan was found that keeps the limits; names the one that binds

    Memory is users × sessions × 3 bytes and a little.

    >>> interest = Interest.from_pairs([0, 0, 1, 1, 2, 3], [0, 1, 0, 1, 2, 3], [5.0, 4.0, 3.0, 1.0])
    >>> r = plan(interest, groups=2, sessions=3)
    >>> r.session_of_flow.tolist(), r.group_of_session.tolist(), r.cost.excess
    ([0, 0, 1, 2], [0, 1, 1], 4.0)
    """
    demand = Demand.of(interest)
    interest = demand.interest
    groups, sessions = check_budgets(groups, sessions)
    check_prices(alpha, beta)
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"time_limit must be above 0, got {time_limit}", name="time_limit", got=time_limit)
    if method not in METHODS:
        told = f"method must be one of {', '.join(METHODS)}, got {method!r}"
        raise InputError(told, name="method", allowed=tuple(METHODS), got=method)
    if method != "search":
        refuse_unused(f"method {method!r}", time_limit=time_limit, progress=progress)
    if time_limit is not None:
        _compiled()
    if limits is not None or previous is not None:
        return _limited(demand, groups, sessions, method, alpha, beta, seed, limits or Limits(), previous, time_limit)
    clock = Clock(monotonic(), time_limit)
    points, point_of_flow = collapse(interest)
    n_groups, n_sessions = usable(min(groups, sessions), interest), usable(sessions, interest)
    job = Job(points, n_groups, n_sessions, alpha, beta, seed, clock, progress)
    session_of, group_of = compact(*METHODS[method](job)) if points.n else _nothing()
    session = np.where(point_of_flow >= 0, session_of[point_of_flow] if points.n else -1, -1)
    return packed(demand, session, group_of, method, groups, sessions, alpha, beta, seed)


def packed(
    demand: Demand,
    session: Ints,
    group_of: Ints,
    method: str,
    groups: int,
    sessions: int,
    alpha: float,
    beta: float,
    seed: int,
    limits: Limits | None = None,
) -> ChannelsPlan:
    """The plan of two maps, with its cost and what that is held against."""
    interest = demand.interest
    price = cost(interest, session, group_of, alpha, beta)

    def compare() -> Compared:
        bound = plan_lower_bound(interest, groups, sessions, alpha, beta)
        gap = 1 - bound / price.excess if price.excess > 0 else 0.0
        return Compared(plan_baselines(interest, groups, alpha, beta), bound, gap)

    return ChannelsPlan(
        demand=demand,
        cost=price.comparing(compare),
        parameters={"method": method, "groups": groups, "sessions": sessions, "alpha": alpha, "beta": beta},
        seed=seed,
        inputs=demand.inputs,
        session_of_flow=frozen(session),
        group_of_session=frozen(group_of),
        limits=limits,
    )


def _limited(
    demand: Demand,
    groups: int,
    sessions: int,
    method: str,
    alpha: float,
    beta: float,
    seed: int,
    limits: Limits,
    previous: ChannelsPlan | tuple[ArrayLike, ArrayLike] | None,
    time_limit: float | None,
) -> ChannelsPlan:
    clock, interest = Clock(monotonic(), time_limit), demand.interest
    if method != "search":
        raise UnsupportedError(f"method {method!r} does not support limits or a previous plan", works=("search",))
    apart = check_limits(interest, groups, limits)
    points, point_of_flow = plain(interest)
    maps, joined = _previous(interest, groups, sessions, previous)
    n_groups, n_sessions = _room(interest, groups, sessions, limits, maps)
    walls = fences(points, point_of_flow, n_groups, limits, apart, maps, joined)
    prices = Prices(float(alpha), float(beta), 0.0, np.inf)
    session = np.full(interest.n_flows, -1)
    group_of = np.zeros(0, np.int64)

    def free() -> Maps:
        classes, class_of_flow = collapse(interest)
        part = Clock(clock.began, None if time_limit is None else FREE_PART * time_limit)
        chosen = _search(Job(classes, min(n_groups, n_sessions), n_sessions, alpha, beta, seed, part))
        return chosen[0][class_of_flow[point_of_flow >= 0]], chosen[1]

    if points.n:
        session_of, group_of = limited_search(points, n_groups, n_sessions, prices, walls, maps, seed, clock, free)
        session[point_of_flow >= 0] = session_of
    return packed(demand, session, group_of, method, groups, sessions, alpha, beta, seed, limits)


def _room(interest: Interest, groups: int, sessions: int, limits: Limits, maps: Maps | None) -> tuple[int, int]:
    """The groups and sessions to work with: those there is use for, and every number that is spoken for."""
    kept = np.zeros(0, np.int64) if maps is None else maps[1]
    named = max(max(limits.pinned.values(), default=-1), int(kept.max(initial=-1)))
    return max(usable(groups, interest), named + 1), max(usable(sessions, interest), kept.size)


def _previous(
    interest: Interest, groups: int, sessions: int, previous: ChannelsPlan | tuple[ArrayLike, ArrayLike] | None
) -> tuple[Maps | None, Interest]:
    """The previous maps, and the interest that its users had joined for."""
    if previous is None:
        return None, interest
    if isinstance(previous, ChannelsPlan):
        named = interest.flow_names is not None and previous.interest.flow_names is not None
        previous = previous.for_interest(interest) if named else previous
        maps, joined = (previous.session_of_flow, previous.group_of_session), previous.interest
    else:
        group = indices("previous", previous[1], high=groups)
        maps, joined = (indices("previous", previous[0], low=-1, high=group.size), group), interest
    if maps[0].size != interest.n_flows or joined.n_users != interest.n_users:
        raise InputError(
            f"previous must be for {interest.n_flows} flows and {interest.n_users} subscribers, got {maps[0].size} and "
            f"{joined.n_users}",
            name="previous",
        )
    if maps[1].size > sessions or maps[1].max(initial=-1) >= groups:
        raise InputError(
            f"previous must fit {sessions} sessions and {groups} groups, got {maps[1].size} and {maps[1].max() + 1}",
            name="previous",
        )
    return maps, joined


@dataclass(frozen=True, eq=False)
class Job:
    """All that a method is told."""

    points: Points
    groups: int
    sessions: int
    alpha: float
    beta: float
    seed: int
    clock: Clock
    progress: Callable[[Progress], None] | None = None

    def rng(self, method: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, *method.encode()])


def _sf(job: Job) -> Maps:
    return streams_first(job.points, job.groups, job.sessions, job.rng("sf"))


def _gf(job: Job) -> Maps:
    return groups_first(job.points, job.groups, job.sessions, job.rng("gf"))


def _it(job: Job) -> Maps:
    return iterative(job.points, job.groups, job.sessions, job.rng("it"), job.alpha, job.beta)


def _rra(job: Job) -> Maps:
    return random_restart(job.points, job.groups, job.sessions, job.rng("rra"), job.alpha, job.beta)


def _random(job: Job) -> Maps:
    return random_plan(job.points, job.groups, job.sessions, job.rng("random"))


def _search(job: Job) -> Maps:
    prices = Prices(float(job.alpha), float(job.beta), 0.0, np.inf)
    return search(job.points, job.groups, job.sessions, prices, _starts(job), job.seed, job.clock, job.progress)


def _starts(job: Job) -> list[Maps]:
    """Every published plan, as far as time allows: a very large system starts from GF alone, and under
    a time limit only those are made that leave most of it to the search.
    """
    began = thread_time()
    starts = [_gf(job)]
    took = thread_time() - began
    if job.points.users.size * job.sessions > VERY_LARGE:
        return starts
    limit = np.inf if job.clock.limit is None else job.clock.limit
    # They take about so many times as long as GF; two threads share them.
    others = [method for method, runs in ((_sf, 4), (_it, 12), (_rra, 16)) if took * runs < 0.3 * limit]
    with ThreadPoolExecutor(2) as threads:
        return starts + list(threads.map(lambda method: method(job), reversed(others)))


@cache
def _compiled() -> None:
    """Plan something small, so that compiling, which cannot be cut short, is no part of a time limit."""
    rng = np.random.default_rng(0)
    small = Interest.from_pairs(rng.integers(0, 99, 400), rng.integers(0, 9, 400), np.ones(99), n_users=9)
    job = Job(collapse(small)[0], 3, 6, 1.0, 1.0, 0, Clock(monotonic(), None))
    search(job.points, 3, 6, Prices(1.0, 1.0, 0.0, np.inf), _starts(job), 0, job.clock, work=1e6)


make = plan  # the name that every kind's planner has

METHODS: dict[str, Callable[[Job], Maps]] = {
    "search": _search,
    "sf": _sf,
    "gf": _gf,
    "it": _it,
    "rra": _rra,
    "random": _random,
}


def check_budgets(groups: int, sessions: int) -> tuple[int, int]:
    for name, value in (("groups", groups), ("sessions", sessions)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise InputError(f"{name} must be a whole number above 0, got {value!r}", name=name, got=value)
        if value > MOST_BUDGET:
            raise InputError(f"{name} must be at most {MOST_BUDGET}, got {value}", name=name, got=value)
    return int(groups), int(sessions)


def usable(budget: int, interest: Interest) -> int:
    """How much of a budget of groups or sessions to work with: no plan has a use for more of them than flows.

    A little more is taken as it is: numbers are drawn from all there are, so that another bound is another plan.
    """
    return min(budget, max(int(np.count_nonzero(interest.audience_sizes)), ROOM))


def _nothing() -> Maps:
    return np.zeros(0, np.int64), np.zeros(0, np.int64)
