"""Cluster more points than one machine can hold: passes over shards of them, then a polish in parts that fit.

1. The points that weigh most, as many as fit, are planned on the driver as any small system is.
2. The others are put where they cost least.
3. Passes with a heat bath that cools down. In each, a batch of every shard moves against the same broadcast
   clusters, and the changes are added up. Two shards may do what only one should have; batches keep that rare.
4. Polish: some whole groups at a time, as many as fit, are fetched with all their points and searched
   on the driver. Points of other groups do not matter to their cost, so every gain there is exact.

The best plan seen is kept. Mini-batches as in Sculley 2010, with the two-level cost in place of distances;
docs/decisions/0065 has the measurements.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple, Protocol

import numpy as np

from narrowcast.data.planning.clusters import Counts, SessionClusters, empty
from narrowcast.data.planning.shards import Moves, Pass
from narrowcast.model.arrays import Floats, Ints
from narrowcast.plans.channels.kernels.two_level import Prices
from narrowcast.plans.channels.methods.groups_first import groups_first
from narrowcast.plans.channels.methods.kmeans import in_order
from narrowcast.plans.channels.methods.search import WORK, Clock, search
from narrowcast.plans.channels.methods.state import anneal, pack, state_cost
from narrowcast.plans.channels.points import Points

# Heats as parts of the mean cost of a point, as in the driver's own search (channels.search).
HOT, WARM, COLD = 0.2, 0.06, 0.02
AT_A_TIME = 8


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is done. `driver_pairs` bounds what the driver holds of the points at any time.

    All points get their first place in `placings` batches. Then come `coolings` sweeps with falling heat
    and `settlings` without, each in `batches` passes that go `sweeps` times over their points; at the end
    `polishes` rounds in which every group is searched once.
    """

    driver_pairs: int = 20_000_000
    placings: int = 4
    coolings: int = 160
    settlings: int = 3
    batches: int = 4
    sweeps: int = 4
    polishes: int = 8
    work: float = WORK


class Table(NamedTuple):
    """What the driver knows of every point: its rate and the size of its audience."""

    rates: Floats
    sizes: Ints
    n_users: int


class Shards(Protocol):
    """The points, wherever they are."""

    def sweep(self, clusters: SessionClusters, session_of: Counts, prices: Prices, task: Pass) -> Iterable[Moves]:
        """One pass over every shard."""

    def gather(self, chosen: Ints) -> Points:
        """These points, in this order (ascending)."""


def cluster(
    table: Table, shards: Shards, groups: int, sessions: int, prices: Prices, seed: int, effort: Effort
) -> tuple[Ints, SessionClusters]:
    """(session of each point, clusters): no session or group is empty. Same seed, same plan."""
    work = _Work(table, shards, prices, seed, effort, empty(table.n_users, min(groups, sessions), sessions))
    if work.begin():
        return work.result()
    work.settle(effort.placings)
    work.cool()
    for number in range(effort.polishes):
        work.polish(number)
    return work.result()


class _Work:
    """A plan of all points in work."""

    def __init__(
        self, table: Table, shards: Shards, prices: Prices, seed: int, effort: Effort, clusters: SessionClusters
    ) -> None:
        self.table, self.shards, self.prices, self.seed, self.effort = table, shards, prices, seed, effort
        self.clusters = clusters
        self.session_of = np.full(table.rates.size, -1, np.int32)
        self.passes = 0

    def begin(self) -> bool:
        """Plan the heaviest points on the driver; True if these are all."""
        order = np.argsort(-self.table.rates * self.table.sizes, kind="stable")
        held = np.cumsum(self.table.sizes[order]) <= self.effort.driver_pairs
        chosen = np.sort(order[held])
        if chosen.size == 0:
            return False
        points, whole = self.shards.gather(chosen), chosen.size == order.size
        n_groups, n_sessions = self.clusters.n_groups, self.clusters.n_sessions
        start = groups_first(points, n_groups, n_sessions, np.random.default_rng([self.seed, 2]))
        effort = self.effort.work if whole else self.effort.work / 10
        clock = Clock(monotonic(), None)
        session, group = search(points, n_groups, n_sessions, self.prices, [start], self.seed, clock, work=effort)
        sessions = np.arange(group.size)
        self._adopt(chosen, points, session, sessions, group)
        return whole

    def settle(self, batches: int) -> None:
        """One sweep over everything that only takes what lowers the cost; a point in no session gets one."""
        for batch in range(batches):
            self._pass(batch, batches, 0.0)
        self.passes += 1

    def cool(self) -> None:
        """Sweeps with falling heat, then without; the best plan seen at the end of one stays."""
        effort, mean = self.effort, self.clusters.cost(self.prices) / max(self.table.rates.size, 1)
        falling = np.geomspace(HOT, COLD, effort.coolings) * mean
        best = (self.clusters.cost(self.prices), self.session_of.copy(), self.clusters)
        for heat in [*falling.tolist(), *[0.0] * effort.settlings]:
            for batch in range(effort.batches):
                self._pass(batch, effort.batches, heat)
            self.passes += 1
            cost = self.clusters.cost(self.prices)
            if cost < best[0]:
                best = (cost, self.session_of.copy(), self.clusters)
        _, self.session_of, self.clusters = best

    def _pass(self, batch: int, batches: int, heat: float) -> None:
        task = Pass(self.passes, batch, batches, heat, self.effort.sweeps, self.seed)
        count = self.clusters.count.copy()
        flat = count.reshape(-1)
        session_of = self.session_of.copy()
        for moves in self.shards.sweep(self.clusters, self.session_of, self.prices, task):
            session_of[moves.points] = moves.sessions
            # Whole numbers: the sum is the same in whatever order the shards come.
            flat[moves.places] += moves.changes.astype(np.int32)
        self.session_of = session_of
        self._count(count)
        rng = np.random.default_rng([self.seed, task.number, batch, 3])
        self.clusters = self.clusters.regrouped(self.prices, heat, rng)

    def _count(self, count: Counts) -> None:
        """The clusters of the present sessions; their rates are added up anew, so that no error grows."""
        held = self.session_of >= 0
        session, n = self.session_of[held], self.clusters.n_sessions
        theta = np.bincount(session, self.table.rates[held], minlength=n).astype(np.float64)
        n_points = np.bincount(session, minlength=n).astype(np.int64)
        self.clusters = SessionClusters(count, theta, n_points, self.clusters.group_of, self.clusters.n_groups)

    def polish(self, number: int) -> None:
        """Search every group once, together with as many others as fit."""
        rng = np.random.default_rng([self.seed, number, 4])
        heats = np.geomspace(WARM, COLD, max(2, self.effort.polishes))[number] * np.geomspace(1, 0.5, 24)
        group_of_point = self.clusters.group_of[self.session_of]
        pairs = np.bincount(group_of_point, self.table.sizes, minlength=self.clusters.n_groups).astype(np.float64)
        for part in _packed(rng.permutation(self.clusters.n_groups), pairs, self.effort.driver_pairs):
            self._search_groups(np.sort(part), np.flatnonzero(np.isin(group_of_point, part)), heats, rng)

    def _search_groups(self, groups: Ints, chosen: Ints, heats: Floats, rng: np.random.Generator) -> None:
        points = self.shards.gather(chosen)
        sessions = np.flatnonzero(np.isin(self.clusters.group_of, groups))
        if points.n < 2 or sessions.size < 2:
            return
        start = np.searchsorted(sessions, self.session_of[chosen])
        start_group = np.searchsorted(groups, self.clusters.group_of[sessions])
        state = pack(points, start, start_group, groups.size)
        before = state_cost(points, state, self.prices)
        mean = before / points.n
        for at in range(0, heats.size, AT_A_TIME):
            anneal(points, state, self.prices, (heats[at : at + AT_A_TIME] * mean).tolist(), rng)
        for _ in range(30):
            if anneal(points, state, self.prices, [0.0], rng) == 0:
                break
        if state_cost(points, state, self.prices) < before:
            self._adopt(chosen, points, state.session_of, sessions, groups[state.group_of])

    def _adopt(self, chosen: Ints, points: Points, session: Ints, sessions: Ints, group: Ints) -> None:
        """Give these points, which are all of the named sessions, new places among them."""
        count, group_of = self.clusters.count.copy(), self.clusters.group_of.copy()
        inside = np.zeros((points.n_users, sessions.size), np.int32)
        np.add.at(inside, (points.users, session[points.point_of_pair]), 1)
        count[:, sessions] = inside
        group_of[sessions] = group
        self.session_of[chosen] = sessions[session]
        self.clusters = SessionClusters(
            count, self.clusters.theta, self.clusters.n_points, group_of, self.clusters.n_groups
        )
        self._count(count)

    def result(self) -> tuple[Ints, SessionClusters]:
        """The plan without empty sessions and groups, numbered as they first come."""
        used, session = in_order(self.session_of.astype(np.int64))
        kept, group = in_order(self.clusters.group_of[used])
        whole = self.clusters
        clusters = SessionClusters(whole.count[:, used], whole.theta[used], whole.n_points[used], group, kept.size)
        return session, clusters


def _packed(groups: Ints, pairs: Floats, most: int) -> list[Ints]:
    """Groups in this order cut into stretches that hold at most so many pairs; too large ones are left out."""
    parts: list[list[int]] = [[]]
    held = 0.0
    for g in groups.tolist():
        if pairs[g] > most:
            continue
        if held + pairs[g] > most:
            parts.append([])
            held = 0.0
        parts[-1].append(g)
        held += pairs[g]
    return [np.array(part) for part in parts if part]
