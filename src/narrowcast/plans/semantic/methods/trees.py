"""How the trees of a plan are rooted and built: one choice for all its channels."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from narrowcast.errors import InfeasibleError
from narrowcast.model.arrays import Floats, Ints
from narrowcast.network import Paths
from narrowcast.plans.semantic.methods.bounds import Bounds, Nearest, bounded
from narrowcast.plans.semantic.methods.rendezvous import Rooted, best_rooted, rooted
from narrowcast.threads import thread_count

RENDEZVOUS = ("best", "random")
#: Trees whose members join one by one, in random order.
IN_ORDER = ("join", "join-broker")
#: Fewer trees than this are not worth a thread.
FEW = 32
#: A central Steiner approximation is tried for each channel up to this many; it takes milliseconds each.
MOST_STEINER = 400


def tree_kind(channel: str, n_audiences: int) -> str:
    """How the tree of a channel of `search` is built, by the channel's kind and how many audiences were seen."""
    return "best" if channel == "audience" and n_audiences <= MOST_STEINER else "cheaper"


@dataclass(frozen=True, eq=False)
class Trees:
    """`rendezvous` is "best" (least total for these sources) or "random"; `kind` is one of `tree_edges`."""

    paths: Paths
    sources: Ints
    rendezvous: str
    kind: str
    rng: np.random.Generator
    bounds: Bounds | None = None

    def all_rooted(self, members: Sequence[Ints], weights: Sequence[Floats]) -> list[Rooted]:
        """A tree each, in order. Kernels release the GIL, so threads use every core where no chance is drawn."""
        if self.bounds is not None:
            return self._all_in_time(members, weights)
        threads = thread_count()
        if threads == 1 or self.rendezvous == "random" or self.kind in IN_ORDER or len(members) < FEW:
            return [self.rooted(each, weight) for each, weight in zip(members, weights, strict=True)]
        with ThreadPoolExecutor(threads) as pool:
            return list(pool.map(self.rooted, members, weights, chunksize=1))

    def _all_in_time(self, members: Sequence[Ints], weights: Sequence[Floats]) -> list[Rooted]:
        """A tree each; if some cannot keep the bounds, the error with the bound that would do for all."""
        found, worst = [], None
        for each, weight in zip(members, weights, strict=True):
            try:
                found.append(self.rooted(each, weight))
            except InfeasibleError as error:
                if worst is None or (error.smallest or 0.0) > (worst.smallest or 0.0):
                    worst = error
        if worst is not None:
            raise worst
        return found

    def single(self, gateway: int) -> Rooted:
        """A channel to one gateway that starts there: nothing but the way to it."""
        allowed = np.inf if self.bounds is None else float(self.bounds.limit[gateway])
        return Rooted(gateway, np.zeros((0, 2), np.int32), 0.0, allowed)

    def rooted(self, members: Ints, weight: Floats) -> Rooted:
        """A tree to these brokers for what the sources send, `weight` by source; within their bounds."""
        free = self._free(members, weight)
        if self.bounds is None:
            return free
        users = self.sources[weight > 0] if self.sources.size else self.sources
        ways: Floats = np.zeros(self.paths.n_brokers)
        if users.size:
            ways = weight[weight > 0] @ self.paths.distance[users] / weight.sum()
        nearest: Nearest = "member" if self.kind == "join" else "broker"
        return bounded(self.paths, self.bounds, free, members, users, ways, nearest)

    def _free(self, members: Ints, weight: Floats) -> Rooted:
        joining = self.rng.permutation(members) if self.kind in IN_ORDER else members
        if self.rendezvous == "random":
            near = np.flatnonzero(np.isfinite(self.paths.distance[int(members[0])]))
            return rooted(self.paths, int(self.rng.choice(near)), joining, self.kind)
        return best_rooted(self.paths, joining, self.sources, weight, self.kind)
