"""The fallback: gateways in blocks, one channel each, so that any audience at all is reached."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.plans.semantic.kernels.price import union_prices
from narrowcast.plans.semantic.methods.audiences import AudienceClasses, meet
from narrowcast.plans.semantic.window import OverlaySystem, Window

MOST_START = 300
MOST_CLASSES = 2000
#: A block is priced together with this many of its nearest others.
NEIGHBOURS = 16
#: Tomorrow is unknown: every block counts at least this much, so that near gateways come together.
LEAST_WEIGHT = 1e-3


def blocks(made: OverlaySystem, window: Window, classes: AudienceClasses, numbers: Sequence[int]) -> list[Bools]:
    """(block × gateway) for each of these numbers: every gateway in exactly one block, at most so many blocks.

    A message goes to each block with a gateway that wants it. Starting from single gateways (from
    `MOST_START` groups of near ones if there are more) the two blocks whose union costs least more, or
    saves most, become one. What is kept are the blocks that would cost the window's audiences least:
    audiences yet unseen are likely to be of that kind. O(start · neighbours) prices.
    """
    merging = _Merging(made, window, classes)
    found, least = [merging.reach[merging.alive]] * len(numbers), [np.inf] * len(numbers)
    while True:
        for at, number in enumerate(numbers):
            if merging.alive.size <= max(1, number) and merging.total < least[at]:
                found[at], least[at] = merging.reach[merging.alive], merging.total
        if merging.alive.size == 1:
            return found
        merging.step()


class _Merging:
    def __init__(self, made: OverlaySystem, window: Window, classes: AudienceClasses) -> None:
        self.made, self.window = made, window
        self.reach = _start(made)
        n = len(self.reach)
        heavy = np.argsort(-classes.weight, kind="stable")[:MOST_CLASSES]
        heavy = heavy[np.argsort(classes.source[heavy], kind="stable")]
        self.weight = classes.weight[heavy]
        self.sources, self.first = np.unique(classes.source[heavy], return_index=True)
        # hit[b, c] is 1 where class c goes to block b.
        self.hit = meet(self.reach, classes.reach[heavy]).astype(np.float64)
        self.alive: Ints = np.arange(n)
        self.price, self.joint = np.zeros(n), np.full((n, n), np.inf)
        self.apart = _apart(made, self.reach)
        for i in range(n):
            self.reprice(i)

    @property
    def total(self) -> float:
        return float(self.price[self.alive].sum())

    def reprice(self, i: int) -> None:
        """The price of block i, and of its union with its nearest others."""
        others = self.alive[self.alive != i]
        others = others[np.argsort(self.apart[i, others], kind="stable")[:NEIGHBOURS]]
        hit = np.concatenate((self.hit[[i]], np.maximum(self.hit[others], self.hit[i])))
        weight: Floats = np.full((len(hit), max(1, self.window.sources.size)), LEAST_WEIGHT)
        if self.first.size:
            weight[:, self.sources] += np.add.reduceat(hit * self.weight, self.first, axis=1)
        sets = np.concatenate((self.reach[[i]], self.reach[others] | self.reach[i]))
        each, paths = np.arange(len(sets)), self.made.paths
        cost = union_prices(
            paths.distance, paths.next_hop, self.window.sources, self.made.gateways, sets, weight, each, each
        )
        self.price[i] = cost[0]
        self.joint[i], self.joint[:, i] = np.inf, np.inf
        self.joint[i, others] = self.joint[others, i] = cost[1:]

    def step(self) -> None:
        alive = self.alive
        more = self.joint[np.ix_(alive, alive)] - self.price[alive][:, None] - self.price[alive]
        at = int(np.argmin(more))
        i, j = int(alive[at // alive.size]), int(alive[at % alive.size])
        self.reach[i] |= self.reach[j]
        self.hit[i] = np.maximum(self.hit[i], self.hit[j])
        self.alive = alive[alive != j]
        self.joint[j], self.joint[:, j] = np.inf, np.inf
        self.apart[i] = self.apart[:, i] = np.minimum(self.apart[i], self.apart[j])
        self.reprice(i)


def _apart(made: OverlaySystem, reach: Bools) -> Floats:
    """The least distance between gateways of two blocks."""
    distance = made.paths.distance[np.ix_(made.gateways, made.gateways)]
    first = np.array([distance[row].min(axis=0) for row in reach])
    return np.array([first[:, row].min(axis=1) for row in reach])


def _start(made: OverlaySystem) -> Bools:
    """Single gateways, or groups around gateways that are far from each other."""
    n = made.gateways.size
    if n <= MOST_START:
        return np.eye(n, dtype=np.bool_)
    distance = made.paths.distance[np.ix_(made.gateways, made.gateways)]
    centres, near = [0], distance[0].copy()
    while len(centres) < MOST_START:
        centres.append(int(np.argmax(near)))
        near = np.minimum(near, distance[centres[-1]])
    owner = np.argmin(distance[centres], axis=0)
    return np.asarray(owner[None, :] == np.arange(MOST_START)[:, None])
