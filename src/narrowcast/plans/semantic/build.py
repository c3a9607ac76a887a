"""How a plan is put together: channels found, trees rooted, the rule made, and of several plans the steadiest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np

from narrowcast.errors import InfeasibleError
from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.network import Paths
from narrowcast.plans.semantic.channel import Channel, ChannelRule, routed
from narrowcast.plans.semantic.content import Content, same
from narrowcast.plans.semantic.cost import rates_and_cost, traversals
from narrowcast.plans.semantic.demand import OverlayDemand
from narrowcast.plans.semantic.methods.bounds import Bounds
from narrowcast.plans.semantic.methods.expected import with_unseen
from narrowcast.plans.semantic.methods.hierarchies import Estimator, Hierarchies, hierarchies
from narrowcast.plans.semantic.methods.merging import JOIN_AT_BROKER, PUBLISHED, Merged, merge, merge_under
from narrowcast.plans.semantic.methods.rendezvous import Rooted, ways
from narrowcast.plans.semantic.methods.search import Groups, search
from narrowcast.plans.semantic.methods.trees import Trees, tree_kind
from narrowcast.plans.semantic.result import SemanticPlan
from narrowcast.plans.semantic.routers.audience import AudienceContents, AudienceRouter
from narrowcast.plans.semantic.routers.content import ContentRouter
from narrowcast.plans.semantic.window import OverlaySystem, Window

#: Under a cap the published methods are tried too, up to this many profiles.
MOST_TRIED_PROFILES = 4000
#: So much may central trees save against the others.
NEAR = 1.05
#: The trees of the published channels; the others join at the nearest gateway of the tree, as §4 has it.
TREES = {"central": "steiner", JOIN_AT_BROKER: "join-broker"}


class _Joining(NamedTuple):
    """What the published methods start from: the gateways' joining order, tree estimates and hierarchies."""

    order: Ints
    estimate: Estimator
    found: Hierarchies


@dataclass(frozen=True, eq=False)
class Build:
    """The demand with what was made of it: the overlay with its wishes, the window and the bounds by broker."""

    demand: OverlayDemand
    made: OverlaySystem
    seen: Window
    bounds: Bounds | None
    max_channels: int | None
    rendezvous: str
    seed: int
    others: Mapping[str, Any]

    def plan(self, method: str) -> SemanticPlan:
        """The plan by one of the methods."""
        if not self.made.gateways.size:
            return self._done(method, [], [], [], [], ContentRouter(()))
        return self._search() if method == "search" else self._published(method)

    @property
    def quick(self) -> Paths | None:
        return None if self.bounds is None else self.bounds.quick

    def _trees(self, kind: str) -> Trees:
        rng = np.random.default_rng([self.seed, 1])
        return Trees(self.made.paths, self.seen.sources, self.rendezvous, kind, rng, self.bounds)

    def _search(self) -> SemanticPlan:
        ours = self._searched(self.seen)
        if self.max_channels is None or len(self.made.profiles) > MOST_TRIED_PROFILES:
            return ours
        tried = [ours]
        if self._after.weight.size > self.seen.weight.size:
            tried.append(self._searched(self._after))
        return self._steadiest(tried, self._as_published(ours.window_cost))

    def _searched(self, known: Window) -> SemanticPlan:
        made = self.made
        found = search(made, known, self._trees(tree_kind("fallback", 0)), self.max_channels)
        groups, n = found.groups, found.n_seen
        rooted = self._rooted(groups, slice(n), tree_kind("audience", n))
        rooted += self._rooted(groups, slice(n, None), tree_kind("expected", n))
        router = AudienceRouter(
            self._ways(rooted), self._ways(found.block_trees), groups.core, groups.reach, found.blocks
        )
        contents = AudienceContents(router, made.wants)
        reach = np.concatenate((groups.reach, found.blocks))
        kinds = ["audience"] * n + ["expected"] * (len(groups.reach) - n) + ["fallback"] * len(found.blocks)
        tell = [partial(contents.of, c) for c in range(len(reach))]
        return self._done("search", list(reach), kinds, [*rooted, *found.block_trees], tell, router)

    @cached_property
    def _after(self) -> Window:
        """The window, and what it has not seen yet but is likely to come."""
        return with_unseen(self.made, self.seen, np.random.default_rng([self.seed, 3]))

    def _steadiest(self, ours: list[SemanticPlan], published: list[SemanticPlan]) -> SemanticPlan:
        """Of the plans that cost the window no more than the published ones, the least in the window and after it.

        After it the same audiences are wanted from other sources, and unseen profiles are matched: a plan
        that learned by heart which source sent what loses there.
        """
        least = min((each.window_cost for each in published), default=np.inf)
        good = [each for each in (*ours, *published) if each.window_cost <= least * (1 + 1e-12)]
        turned = np.random.default_rng([self.seed, 4]).permutation(self._after.source)
        after = replace(self._after, source=turned)
        return min(good or ours, key=lambda each: each.window_cost + self._after_bandwidth(each, after))

    def _rooted(self, groups: Groups, which: slice, kind: str) -> list[Rooted]:
        members = [self.made.gateways[reach] for reach in groups.reach[which]]
        return self._trees(kind).all_rooted(members, list(groups.weight[which]))

    def _ways(self, rooted: Sequence[Rooted]) -> Floats:
        """(source group × channel): what a message costs in full."""
        return ways(self.made.paths, self.quick, self.seen.sources, rooted)

    def _as_published(self, ours: float) -> list[SemanticPlan]:
        """The published channelizations under the same cap: the search may not do worse.

        Those that come near the search are also tried with central trees, which take longer, and with the
        trees as published, which chance may have made better.
        """
        found = []
        for each in self._channelized():
            for kinds in (("cheaper",), ("best", "join-broker", "join")):
                try:
                    tried = [self._on_trees("search", each, kind) for kind in kinds]
                except InfeasibleError:  # its channels are too wide for the latency bounds; ours are not
                    break
                found += tried
                if tried[0].window_cost > NEAR * ours:
                    break
        return found

    def _channelized(self) -> list[Merged]:
        """The published channels that the cap allows, made under it or without it; central has those of semcast."""
        joining, cap = self._joining, self.max_channels
        if cap is None or len(joining.found.members) <= cap:
            return [
                merge(joining.found, self.seen, joining.estimate, each, cap) for each in PUBLISHED if each != "central"
            ]
        free = merge(joining.found, self.seen, joining.estimate, "merge", None)
        return [
            *merge_under(joining.found, self.seen, joining.estimate, cap),
            *([free] if len(free.kinds) <= cap else []),
        ]

    @cached_property
    def _joining(self) -> _Joining:
        """The same for every method: the same seed draws order and roots."""
        made, seen = self.made, self.seen
        rng = np.random.default_rng([self.seed, 2])
        order = rng.permutation(made.gateways.size)
        if self.rendezvous == "random" or not seen.sources.size:
            roots = rng.integers(0, made.topology.n_brokers, len(made.profiles))
            near = np.isfinite(made.paths.distance[made.gateways[0]])
            roots = np.where(near[roots], roots, made.gateways[0])
        else:
            roots = np.full(len(made.profiles), self._middle())
        estimate = Estimator(made.paths, made.gateways[order])
        return _Joining(order, estimate, hierarchies(seen, made.wants[:, order], roots, estimate))

    def _published(self, method: str) -> SemanticPlan:
        joining = self._joining
        found = merge(joining.found, self.seen, joining.estimate, method, self.max_channels)
        return self._on_trees(method, found, TREES.get(method, "join"))

    def _on_trees(self, method: str, found: Merged, kind: str) -> SemanticPlan:
        made, seen = self.made, self.seen
        reach = np.zeros_like(found.reach)
        reach[:, self._joining.order] = found.reach
        router = ContentRouter(tuple(found.contents))
        # How much each source sends to each channel decides where it is best rooted.
        rows, cols = routed(router, seen.matched, seen.audience, seen.source)
        # Under bounds every source may come to use any channel.
        weight = np.full((len(reach), max(1, seen.sources.size)), 0.0 if self.bounds is None else 1e-9)
        np.add.at(weight, (cols, seen.source[rows]), seen.weight[rows])
        rooted = self._trees(kind).all_rooted([made.gateways[r] for r in reach], list(weight))
        tell = [partial(same, content) for content in found.contents]
        return self._done(method, list(reach), found.kinds, rooted, tell, router)

    def _middle(self) -> int:
        """The source that is nearest to all sources' messages."""
        brokers = self.seen.sources
        weight = np.bincount(self.seen.source, weights=self.seen.weight, minlength=brokers.size)
        return int(brokers[np.argmin(weight @ self.made.paths.distance[np.ix_(brokers, brokers)])])

    def _done(
        self,
        method: str,
        reach: list[Bools],
        kinds: list[str],
        rooted: list[Rooted],
        contents: Sequence[Callable[[], Content]],
        router: ChannelRule,
    ) -> SemanticPlan:
        """Route the window to know the rates, then freeze."""
        made, seen = self.made, self.seen
        rows, cols = routed(router, seen.matched, seen.audience, seen.source)
        rates, cost = rates_and_cost(made, self.quick, rooted, seen, rows, cols)
        each = zip(reach, kinds, rooted, rates.tolist(), contents, strict=True)
        channels = tuple(
            Channel(
                tuple(made.gateways[r].tolist()), tree.rendezvous, tree.edges, rate, tree.link_cost, kind, tell,
                made.profiles, tree.allowed, number,
            )
            for number, (r, kind, tree, rate, tell) in enumerate(each)
        )  # fmt: skip
        rule = "audience" if isinstance(router, AudienceRouter) else "content"
        given = {"max_channels": self.max_channels, "rendezvous": self.rendezvous}
        return SemanticPlan(
            demand=self.demand,
            cost=cost,
            parameters={"variant": method, "rule": rule, **given, **self.others},
            seed=self.seed,
            system=made,
            channels=channels,
            router=router,
            sources=seen.sources,
            quick=self.quick,
        )

    def _after_bandwidth(self, found: SemanticPlan, after: Window) -> float:
        """What a window after this one costs in full; with no source known, the cost of this one."""
        if not after.sources.size:
            return found.window_cost
        rows, cols = routed(found.router, after.matched, after.audience, after.source)
        brokers = after.sources[after.source]
        paid = traversals(self.made.paths, self.quick, found.channels, rows, cols, brokers)
        return float((paid * after.weight[rows]).sum())
