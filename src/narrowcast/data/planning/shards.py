"""A part of the points to be clustered, small enough for one worker, and one pass over it.

Which points make a shard depends on their number alone, never on Spark's partitions, and each shard
starts a pass from the same clusters: so the plan is the same on one core and on a hundred.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from narrowcast.data.planning.clusters import Counts, SessionClusters
from narrowcast.model.arrays import Ints
from narrowcast.plans.channels.kernels import two_level as kernel
from narrowcast.plans.channels.kernels.two_level import Prices
from narrowcast.plans.channels.methods.state import NOISE
from narrowcast.plans.channels.points import Points


class Pass(NamedTuple):
    """One pass: which batch of every shard moves, how hot, how many times over, and its random numbers."""

    number: int
    batch: int
    batches: int
    heat: float
    sweeps: int
    seed: int


class Moves(NamedTuple):
    """What a pass over a shard did: points and their new sessions, and how that changes the counts.

    `places` are user · sessions + session, ascending, and `changes` what is added there.
    """

    points: Ints
    sessions: Ints
    places: Ints
    changes: Ints


@dataclass(frozen=True, eq=False)
class Shard:
    """Every point whose number leaves `index` when divided by `n_shards`, ascending."""

    index: int
    n_shards: int
    points: Points

    @property
    def numbers(self) -> Ints:
        return self.index + self.n_shards * np.arange(self.points.n)

    def sweep(self, clusters: SessionClusters, session_of: Counts, prices: Prices, task: Pass) -> Moves:
        """Move a batch of this shard's points to where they cost least, seeing all other shards as they were.

        Two shards that opened the same empty session would throw strangers together, so each has its own.
        """
        mine = session_of[self.index :: self.n_shards].astype(np.int64)
        order = np.random.default_rng([task.seed, task.number, self.index]).permutation(self.points.n)
        batch = order[task.batch :: task.batches]
        closed = np.arange(clusters.n_sessions) % self.n_shards != self.index
        state = clusters.state(mine, closed=closed if np.any(~closed) else None)
        rng = np.random.default_rng([task.seed, task.number, self.index, task.batch])
        offsets, users, rates = self.points.offsets, self.points.users, self.points.rates
        for _ in range(task.sweeps):
            starts = rng.integers(0, NOISE.size - clusters.n_sessions - 1, batch.size)
            kernel.sweep(offsets, users, rates, batch, state, prices, task.heat, NOISE, starts)
        return self._moves(mine, state.session_of, clusters.n_sessions)

    def _moves(self, before: Ints, after: Ints, n_sessions: int) -> Moves:
        moved = np.flatnonzero(before != after)
        part = self.points.subset(moved)
        old, new = before[moved][part.point_of_pair], after[moved][part.point_of_pair]
        left = old >= 0
        places = np.concatenate([part.users[left] * n_sessions + old[left], part.users * n_sessions + new])
        signs = np.concatenate([np.full(np.count_nonzero(left), -1), np.ones(part.users.size, np.int64)])
        found, index = np.unique(places, return_inverse=True)
        changes = np.bincount(index, signs, minlength=found.size).astype(np.int64)
        busy = changes != 0
        return Moves(self.numbers[moved], after[moved], found[busy], changes[busy])

    def pick(self, chosen: Ints) -> tuple[Ints, Points]:
        """Those of its points whose numbers are among the chosen, and their numbers."""
        mine = chosen[chosen % self.n_shards == self.index]
        return mine, self.points.subset(mine // self.n_shards)

    def to_bytes(self) -> dict[str, bytes]:
        """Its points as columns of bytes."""
        return {
            "offsets": self.points.offsets.astype(np.int64).tobytes(),
            "users": self.points.users.astype(np.int32).tobytes(),
            "rates": self.points.rates.tobytes(),
        }

    @classmethod
    def from_bytes(cls, index: int, n_shards: int, n_users: int, offsets: bytes, users: bytes, rates: bytes) -> Shard:
        points = Points(
            np.frombuffer(offsets, np.int64),
            np.frombuffer(users, np.int32).astype(np.int64),
            np.frombuffer(rates, np.float64),
            n_users,
        )
        return cls(index, n_shards, points)


def interleaved(parts: list[tuple[Ints, Points]], n_users: int) -> Points:
    """Points with their numbers from several shards as one, in the order of the numbers."""
    numbers = np.concatenate([n for n, _ in parts]) if parts else np.zeros(0, np.int64)
    sizes = np.concatenate([p.sizes for _, p in parts]) if parts else np.zeros(0, np.int64)
    users = np.concatenate([p.users for _, p in parts]) if parts else np.zeros(0, np.int64)
    rates = np.concatenate([p.rates for _, p in parts]) if parts else np.zeros(0)
    offsets = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return Points(offsets, users, rates, n_users).subset(np.argsort(numbers, kind="stable"))
