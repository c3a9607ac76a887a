"""Which flow goes into which session, and which session into which group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from time import monotonic

import numpy as np

from narrowcast.channels.baselines import plan_baselines
from narrowcast.channels.cost import Cost, check_prices, cost
from narrowcast.channels.groups_first import groups_first
from narrowcast.channels.iterative import iterative
from narrowcast.channels.kmeans import compact
from narrowcast.channels.lower_bound import plan_lower_bound
from narrowcast.channels.points import Points, collapse
from narrowcast.channels.random_plan import random_plan
from narrowcast.channels.random_restart import random_restart
from narrowcast.channels.search import Clock, Maps, Progress, search
from narrowcast.channels.streams_first import streams_first
from narrowcast.errors import InputError
from narrowcast.kernels.two_level import Prices
from narrowcast.model import Interest
from narrowcast.model._arrays import Ints, frozen

PUBLISHED = ("sf", "gf", "it", "rra")


@dataclass(frozen=True, eq=False)
class ChannelPlan:
    """A plan: the session of each flow (−1: nobody wants it), the group of each session, the cost."""

    session_of_flow: Ints
    group_of_session: Ints
    cost: Cost
    method: str
    groups: int
    sessions: int
    alpha: float
    beta: float
    seed: int
    interest: Interest = field(repr=False)

    @cached_property
    def group_of_flow(self) -> Ints:
        """The group of each flow, −1 for a flow nobody wants."""
        group = np.full(self.session_of_flow.size, -1)
        sent = self.session_of_flow >= 0
        group[sent] = self.group_of_session[self.session_of_flow[sent]]
        return frozen(group)

    @cached_property
    def baselines(self) -> dict[str, float]:
        """The excess cost of well-known ways to do the same, by name."""
        return plan_baselines(self.interest, self.groups, self.alpha, self.beta)

    @cached_property
    def lower_bound(self) -> float:
        """No plan with so many groups and sessions has a smaller excess cost (docs/decisions/0052)."""
        return plan_lower_bound(self.interest, self.groups, self.sessions, self.alpha, self.beta)

    @cached_property
    def gap(self) -> float:
        """How far, at most, the excess cost is above the least possible, as a part of it."""
        excess = self.cost.excess
        return 1 - self.lower_bound / excess if excess > 0 else 0.0


def plan(
    interest: Interest,
    groups: int = 50,
    sessions: int = 500,
    method: str = "search",
    alpha: float = 1,
    beta: float = 1,
    seed: int = 0,
    time_limit: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> ChannelPlan:
    """Map flows to sessions and sessions to multicast groups so that receivers filter the least.

    `search` minimises the two-level cost itself and is never worse than the published methods, which
    it runs first: `sf`, `gf`, `it`, `rra` (Tock et al. 2005). `random` is for comparison. Same seed,
    same plan; with `time_limit` (seconds, `search` only) the pace follows the clock instead and the
    best plan so far is returned in time. Memory is users × sessions × 3 bytes and a little.

    >>> interest = Interest.from_pairs([0, 0, 1, 1, 2, 3], [0, 1, 0, 1, 2, 3], [5.0, 4.0, 3.0, 1.0])
    >>> r = plan(interest, groups=2, sessions=3)
    >>> r.session_of_flow.tolist(), r.group_of_session.tolist(), r.cost.excess
    ([0, 0, 1, 2], [0, 1, 1], 4.0)
    """
    groups, sessions = check_budgets(groups, sessions)
    check_prices(alpha, beta)
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"time_limit is {time_limit}; it must be above 0", name="time_limit", got=time_limit)
    if method not in METHODS:
        raise InputError(
            f"method is {method!r}; allowed: {', '.join(METHODS)}", name="method", allowed=tuple(METHODS), got=method
        )
    clock = Clock(monotonic(), time_limit)
    points, point_of_flow = collapse(interest)
    job = Job(points, min(groups, sessions), sessions, alpha, beta, seed, clock, progress)
    session_of, group_of = compact(*METHODS[method](job)) if points.n else _nothing()
    session = np.where(point_of_flow >= 0, session_of[point_of_flow] if points.n else -1, -1)
    price = cost(interest, session, group_of, alpha, beta)
    return ChannelPlan(
        frozen(session), frozen(group_of), price, method, groups, sessions, alpha, beta, seed, interest
    )


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
    return search(
        job.points, job.groups, job.sessions, prices, _starts(job), job.seed, job.clock, job.progress
    )


def _starts(job: Job) -> list[Maps]:
    """Every published plan; under a time limit only those that leave most of it to the search."""
    starts = [_gf(job)]
    for method, runs in ((_sf, 4), (_it, 10), (_rra, 15)):
        # A published method takes about so many times the time of GF.
        if job.clock.spent * (runs + 1) > 0.3 and len(starts) == 1 and job.clock.limit is not None:
            break
        starts.append(method(job))
        if job.clock.spent > 0.3:
            break
    return starts


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
            raise InputError(f"{name} is {value!r}; it must be a whole number above 0", name=name, got=value)
    return int(groups), int(sessions)


def _nothing() -> Maps:
    return np.zeros(0, np.int64), np.zeros(0, np.int64)
