"""How the trees of a plan are rooted and built: one choice for all its channels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from narrowcast.errors import UnsupportedError
from narrowcast.model._arrays import Floats, Ints
from narrowcast.network import Paths
from narrowcast.semantic.rendezvous import Rooted, best_rooted, rooted

RENDEZVOUS = ("best", "random")


@dataclass(frozen=True, eq=False)
class Trees:
    """`rendezvous` is "best" (least total for these sources) or "random"; `kind` is one of `tree_edges`."""

    paths: Paths
    sources: Ints
    rendezvous: str
    kind: str
    rng: np.random.Generator

    def __post_init__(self) -> None:
        if self.rendezvous not in RENDEZVOUS:
            raise UnsupportedError(
                f"there is no rendezvous {self.rendezvous!r}; there are {', '.join(RENDEZVOUS)}", works=RENDEZVOUS
            )

    def all_rooted(self, members: Sequence[Ints], weights: Sequence[Floats]) -> list[Rooted]:
        """A tree each, in order. Kernels release the GIL, so threads use every core where no chance is drawn."""
        if self.rendezvous == "random" or self.kind == "join":
            return [self.rooted(each, weight) for each, weight in zip(members, weights, strict=True)]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(self.rooted, members, weights, chunksize=1))

    def rooted(self, members: Ints, weight: Floats) -> Rooted:
        """A tree to these brokers for what the sources send, `weight` by source."""
        joining = self.rng.permutation(members) if self.kind == "join" else members
        if self.rendezvous == "random":
            near = np.flatnonzero(np.isfinite(self.paths.distance[int(members[0])]))
            return rooted(self.paths, int(self.rng.choice(near)), joining, self.kind)
        return best_rooted(self.paths, joining, self.sources, weight, self.kind)
