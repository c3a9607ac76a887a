"""Ours, and the default: anneal the two-level cost itself, from the papers' plans (docs/decisions/0051).

The published methods cluster one level at a time; a move that lowers C2 may raise C1 by more. Here a
flow goes to the session with the least sum of both, sessions move between groups as wholes, and a
heat bath that cools down carries the plan out of the local optima where K-means stops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import NamedTuple

import numpy as np

from narrowcast.model.arrays import Ints
from narrowcast.plans.channels.kernels.two_level import Prices
from narrowcast.plans.channels.methods.kmeans import compact
from narrowcast.plans.channels.methods.rough import rough
from narrowcast.plans.channels.methods.state import anneal, pack
from narrowcast.plans.channels.points import Points

Maps = tuple[Ints, Ints]

# Heats, as parts of the mean cost of a point: above the first everything melts, below the last
# nothing moves any more. From rough groups a mild heat is enough.
HOT, MILD, COLD = 0.2, 0.1, 0.02
# Work without a time limit, in sessions priced; about ten seconds of two cores.
WORK = 4e9
ROUND = 8  # sweeps between two exchanges of groups among threads
MOST_SWEEPS = 4000
ROUGH = 0.4  # of the time or work for the groups alone
FEWEST_SWEEPS = 40  # with fewer an annealed plan is no better than a polished one
PARTS = 2
LARGE = 1e8  # work of one sweep above which polishing uses both threads too
SMALL, RESTARTS = 48, 16


class Progress(NamedTuple):
    """What a progress callback is told: seconds so far, cost of the plan in work, least cost so far."""

    elapsed_s: float
    current: float
    best: float


class Clock(NamedTuple):
    """When the search began and when it must end."""

    began: float
    limit: float | None

    @property
    def elapsed(self) -> float:
        return monotonic() - self.began

    @property
    def spent(self) -> float:
        """The part of the time limit that is used up; 0 without one."""
        return 0.0 if self.limit is None else self.elapsed / max(self.limit, 1e-9)


def search(
    points: Points,
    groups: int,
    sessions: int,
    prices: Prices,
    starts: list[Maps],
    seed: int,
    clock: Clock,
    progress: Callable[[Progress], None] | None = None,
    work: float = WORK,
) -> Maps:
    """The best plan found; never worse than any of `starts`, and a local optimum of single moves.

    Without a time limit `work` is fixed, and the same seed gives the same plan.
    """
    if points.n == 0:
        return starts[0]
    best = min((_padded(start, sessions) for start in starts), key=lambda m: _cost(points, m, groups, prices))
    rng = np.random.default_rng([seed, 1])
    best = polish(points, best, groups, prices, rng, clock)
    report = SearchReport(points, groups, prices, clock, progress, _cost(points, best, groups, prices))
    report.tell(best)
    for candidate in _annealed(points, best, groups, prices, rng, clock, report, work):
        polished = polish(points, candidate, groups, prices, rng, clock)
        if report.better(polished):
            best = polished
    return compact(*best)


class SearchReport:
    """Keeps the least cost and tells whoever listens."""

    def __init__(
        self,
        points: Points,
        groups: int,
        prices: Prices,
        clock: Clock,
        progress: Callable[[Progress], None] | None,
        least: float,
    ) -> None:
        self.points, self.groups, self.prices, self.clock, self.progress = points, groups, prices, clock, progress
        self.least = least

    def better(self, maps: Maps) -> bool:
        cost = _cost(self.points, maps, self.groups, self.prices)
        won = cost < self.least
        self.least = min(cost, self.least)
        if self.progress is not None:
            self.progress(Progress(self.clock.elapsed, cost, self.least))
        return won

    def tell(self, maps: Maps) -> None:
        if self.progress is not None:
            current = _cost(self.points, maps, self.groups, self.prices)
            self.progress(Progress(self.clock.elapsed, current, self.least))


def _annealed(
    points: Points,
    start: Maps,
    groups: int,
    prices: Prices,
    rng: np.random.Generator,
    clock: Clock,
    report: SearchReport,
    work: float,
) -> Iterator[Maps]:
    """Annealed plans: one, or several for a small system, or none where there is no time to cool."""
    mean = _cost(points, start, groups, prices) / points.n
    if mean <= 0 or work <= 0:
        return
    if points.n <= SMALL:
        heats = [HOT * mean * (COLD / HOT) ** (i / 79) for i in range(80)]
        for _ in range(RESTARTS):
            if clock.spent >= 1:
                return
            state = pack(points, *start, groups)
            anneal(points, state, prices, heats, rng)
            yield state.session_of, state.group_of
        return
    sweeps = affordable(points, start, groups, prices, clock, work)
    if sweeps < FEWEST_SWEEPS:
        return
    hot = HOT
    if _groups_first(points, start, groups, prices):
        start, hot, sweeps = _rough(points, start, groups, rng, clock, work), MILD, int(sweeps * (1 - ROUGH))
        mean = _cost(points, start, groups, prices) / points.n
    yield _cooled(points, start, groups, prices, sweeps, (hot * mean, COLD * mean), rng, clock, report)


def _groups_first(points: Points, maps: Maps, groups: int, prices: Prices) -> bool:
    """Whether groups cost more than sessions, all is multicast and there is a choice of groups."""
    session_of, group_of = maps
    if groups < 2 or np.isfinite(prices.unicast) or prices.send > 0:
        return False
    merged = points.merged(session_of, group_of.size)
    return prices.alpha * merged.merged(group_of, groups).useful > prices.beta * merged.useful


def _rough(points: Points, maps: Maps, groups: int, rng: np.random.Generator, clock: Clock, work: float) -> Maps:
    """A plan from groups that were annealed alone; takes the part ROUGH of what time or work is left."""
    session_of, group_of = maps
    sweeps = min(MOST_SWEEPS, ROUGH * work / sweep_work(points, groups))
    begin = clock.spent
    end = begin + ROUGH * (1 - begin)

    def part(done: int) -> float:
        return done / sweeps if clock.limit is None else (clock.spent - begin) / max(end - begin, 1e-9)

    return _padded(rough(points, groups, group_of.size, group_of[session_of], part, rng), group_of.size)


def sweep_work(points: Points, sessions: int) -> int:
    """What a sweep does: prices each session for each flow, and reads a byte of it for each user of the flow."""
    return int(points.n * (sessions + 100) + points.users.size * sessions // 8) + 1


def affordable(points: Points, start: Maps, groups: int, prices: Prices, clock: Clock, work: float) -> int:
    """How many sweeps there is time for."""
    if clock.limit is None:
        return int(min(MOST_SWEEPS, work / sweep_work(points, start[1].size // PARTS)))
    state = pack(points, *start, groups)
    began = monotonic()
    anneal(points, state, prices, [0.0], np.random.default_rng(0))
    # Two threads with half the flows and half the sessions each.
    return int((clock.limit - clock.elapsed) / max(monotonic() - began, 1e-6) * PARTS)


def _cooled(
    points: Points,
    maps: Maps,
    groups: int,
    prices: Prices,
    sweeps: int,
    heats: tuple[float, float],
    rng: np.random.Generator,
    clock: Clock,
    report: SearchReport,
) -> Maps:
    """One slow cooling from the first heat to the second; the time limit, if there is one, sets the pace."""
    rounds = max(1, sweeps // ROUND)
    done, from_spent = 0, clock.spent
    with ThreadPoolExecutor(PARTS) as threads:
        while True:
            part = done / rounds if clock.limit is None else (clock.spent - from_spent) / max(0.97 - from_spent, 1e-9)
            if part >= 1:
                return maps
            heat = heats[0] * (heats[1] / heats[0]) ** part
            maps = exchange(points, maps, groups, prices, [heat] * ROUND, rng, threads)
            report.tell(maps)
            done += 1


def exchange(
    points: Points,
    maps: Maps,
    groups: int,
    prices: Prices,
    heats: list[float],
    rng: np.random.Generator,
    threads: ThreadPoolExecutor,
) -> Maps:
    """Deal the groups into two halves at random and anneal each half in its own thread.

    The halves share no session and no group, so their gains add up. Unicast flows are dealt too.
    """
    n_parts = PARTS if groups >= 2 * PARTS else 1
    part_of_group = rng.permutation(np.arange(groups) % n_parts)
    session_of, group_of = maps
    part_of_session = part_of_group[group_of]
    part = np.where(session_of >= 0, part_of_session[session_of], rng.integers(0, n_parts, points.n))
    seeds = rng.integers(0, 2**63, n_parts)
    new_session, new_group = session_of.copy(), group_of.copy()

    def work(p: int) -> tuple[Ints, Ints, Ints, Ints]:
        flows, inside = np.flatnonzero(part == p), np.flatnonzero(part_of_session == p)
        mine = np.flatnonzero(part_of_group == p)
        if flows.size == 0 or inside.size == 0:
            return flows, session_of[flows], inside, group_of[inside]
        sub = points.subset(flows)
        local = _renumber(session_of[flows], inside, group_of.size)
        state = pack(sub, local, _renumber(group_of[inside], mine, groups), mine.size)
        anneal(sub, state, prices, heats, np.random.default_rng(seeds[p]))
        sessions = np.where(state.session_of >= 0, inside[state.session_of], -1)
        return flows, sessions, inside, mine[state.group_of]

    for flows, sessions, inside, group in threads.map(work, range(n_parts)):
        new_session[flows] = sessions
        new_group[inside] = group
    return new_session, new_group


def polish(
    points: Points, maps: Maps, groups: int, prices: Prices, rng: np.random.Generator, clock: Clock, most: int = 30
) -> Maps:
    """Only moves that lower the cost, until a sweep finds none; a very large system gets a few rounds."""
    size = sweep_work(points, maps[1].size)
    if size > LARGE:
        with ThreadPoolExecutor(PARTS) as threads:
            for _ in range(min(most, 4 + int(WORK / size))):
                maps = exchange(points, maps, groups, prices, [0.0], rng, threads)
                if clock.spent >= 1:
                    break
        return maps
    state = pack(points, *maps, groups)
    for _ in range(most):
        if anneal(points, state, prices, [0.0], rng) == 0 or clock.spent >= 1:
            break
    return state.session_of, state.group_of


def _renumber(values: Ints, kept: Ints, n: int) -> Ints:
    place = np.full(n, -1)
    place[kept] = np.arange(kept.size)
    return np.where(values >= 0, place[values], -1)


def _cost(points: Points, maps: Maps, groups: int, prices: Prices) -> float:
    """C of two maps, from the maps alone."""
    session_of, group_of = maps
    merged = points.merged(session_of, group_of.size)
    grouped = merged.merged(group_of, groups)
    alone = session_of < 0
    unicast = float(points.rates[alone] @ points.sizes[alone]) * prices.unicast if alone.any() else 0.0
    sent = float(points.rates[~alone].sum()) * prices.send
    return prices.alpha * grouped.useful + prices.beta * merged.useful + sent + unicast


def _padded(maps: Maps, sessions: int) -> Maps:
    """The same plan with room for all its sessions: the spare ones are empty."""
    session, group = maps
    return session, np.concatenate([group, np.zeros(max(sessions - group.size, 0), np.int64)])
