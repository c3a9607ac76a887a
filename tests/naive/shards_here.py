"""The points of a clustering in this process, for comparison: every shard swept in turn, without Spark."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from narrowcast.data.planning.shards import Moves, Pass, Shard
from narrowcast.plans.channels.points import Points


class ShardsHere:
    """`minibatch.Shards` in memory; remembers the most pairs that were ever asked for at once."""

    def __init__(self, points: Points, n_shards: int) -> None:
        self.points, self.shards, self.most = points, list(dealt(points, n_shards)), 0

    def sweep(self, clusters: object, session_of: np.ndarray, prices: object, task: Pass) -> Iterator[Moves]:
        for shard in self.shards:
            yield shard.sweep(clusters, session_of, prices, task)  # type: ignore[arg-type]

    def gather(self, chosen: np.ndarray) -> Points:
        found = self.points.subset(chosen)
        self.most = max(self.most, found.users.size)
        return found


def dealt(points: Points, n_shards: int) -> Iterator[Shard]:
    """Points dealt to shards by their numbers."""
    for index in range(n_shards):
        yield Shard(index, n_shards, points.subset(np.arange(index, points.n, n_shards)))
