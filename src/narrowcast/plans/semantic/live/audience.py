"""Coming and going under the rule of `search`: the rule is total, so only gateways join and leave."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from narrowcast.model.arrays import Bools
from narrowcast.network import DisseminationTree, Paths
from narrowcast.plans.semantic.channel import Channel
from narrowcast.plans.semantic.content import Content
from narrowcast.plans.semantic.methods.rendezvous import Rooted, ways
from narrowcast.plans.semantic.result import SemanticPlan
from narrowcast.plans.semantic.routers.audience import AudienceContents, AudienceRouter
from narrowcast.plans.semantic.window import OverlaySystem

Shown = list[tuple[Channel, DisseminationTree, Callable[[], Content]]]


def join_in_time(tree: DisseminationTree, gateway: int, bound: float, quick: Paths | None) -> None:
    """Join by the cheapest path; where delays are bounded, by one that keeps the bound, or else by the quickest."""
    if quick is None or not np.isfinite(bound):
        tree.join(gateway)
    else:
        tree.join_within(gateway, bound, quick, anyway=True)


class LiveAudience:
    """A new profile at a known gateway changes nothing but what the gateway wants: the rule finds a channel, or
    the fallback block that every gateway is in. A new gateway joins its nearest block."""

    def __init__(self, plan: SemanticPlan, trees: list[DisseminationTree], bound: float) -> None:
        router = plan.router
        self.bound, self.quick = bound, plan.quick
        assert isinstance(router, AudienceRouter)
        self.channels, self.trees, self.paths, self.sources = plan.channels, trees, plan.system.paths, plan.sources
        self.known: list[int] = plan.system.gateways.tolist()
        self.core, self.reach, self.blocks = router.core.copy(), router.reach.copy(), router.blocks.copy()

    def gateways(self, clients: Any) -> list[int]:
        return self.known

    def subscribe(self, profile: int, gateway: int, known: bool) -> tuple[int, int]:
        if gateway in self.known:
            return 0, 0
        self.known.append(gateway)
        none = np.zeros((len(self.core), 1), np.bool_)
        self.core, self.reach = np.hstack((self.core, none)), np.hstack((self.reach, none))
        fallback = self.trees[len(self.core) :]
        near = [tree.paths.distance[gateway, sorted(tree.parent)].min() for tree in fallback]
        at = int(np.argmin(near))
        join_in_time(fallback[at], gateway, self.bound, self.quick)
        self.blocks = np.hstack((self.blocks, (np.arange(len(self.blocks)) == at)[:, None]))
        return 1, 0

    def unsubscribe(self, gateway: int, left: set[int]) -> None:
        """The last client of a gateway gone, no audience holds it any more: it leaves every tree."""
        if left:
            return
        at = self.known.index(gateway)
        self.known.pop(at)
        self.core, self.reach = np.delete(self.core, at, axis=1), np.delete(self.reach, at, axis=1)
        self.blocks = np.delete(self.blocks, at, axis=1)
        for tree in self.trees:
            if gateway in tree.members:
                tree.leave(gateway)
        self._end_empty()

    def _end_empty(self) -> None:
        """Channels without a gateway end; one block stays, for whoever comes next."""
        audiences: Bools = np.asarray(self.reach.any(axis=1))
        blocks: Bools = np.asarray(self.blocks.any(axis=1))
        if not blocks.any():
            blocks[:1] = True
        self.core, self.reach, self.blocks = self.core[audiences], self.reach[audiences], self.blocks[blocks]
        stay = np.flatnonzero(np.concatenate((audiences, blocks)))
        self.channels = tuple(self.channels[c] for c in stay)
        self.trees = [self.trees[c] for c in stay]

    def snapshot(self, system: OverlaySystem) -> tuple[Shown, AudienceRouter]:
        n = len(self.core)
        shape = [Rooted(tree.root, np.zeros((0, 2), np.int32), tree.cost) for tree in self.trees]
        way, block_way = (ways(self.paths, None, self.sources, some) for some in (shape[:n], shape[n:]))
        router = AudienceRouter(way, block_way, self.core, self.reach, self.blocks)
        contents = AudienceContents(router, system.wants)
        shown: Shown = [
            (channel, tree, partial(contents.of, c))
            for c, (channel, tree) in enumerate(zip(self.channels, self.trees, strict=True))
        ]
        return shown, router
