"""Channels on an overlay for what clients want and what messages went by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.errors import InfeasibleError, UnsupportedError
from narrowcast.model.arrays import Floats, Ints
from narrowcast.model.topology import Topology
from narrowcast.network import Paths
from narrowcast.plans.semantic.content import Content
from narrowcast.plans.semantic.methods.bounds import Bounds, check_reachable, read_bounds
from narrowcast.plans.semantic.methods.expected import with_unseen
from narrowcast.plans.semantic.methods.hierarchies import Estimator, Hierarchies, hierarchies
from narrowcast.plans.semantic.methods.merging import VARIANTS as PUBLISHED
from narrowcast.plans.semantic.methods.merging import Merged, merge, merge_under
from narrowcast.plans.semantic.methods.rendezvous import Rooted, ways
from narrowcast.plans.semantic.methods.search import Groups, search
from narrowcast.plans.semantic.methods.trees import Trees
from narrowcast.plans.semantic.result import Channel, SemanticPlan, rates, routed, traversals
from narrowcast.plans.semantic.routers.audience import AudienceContents, AudienceRouter
from narrowcast.plans.semantic.routers.content import ContentRouter
from narrowcast.plans.semantic.window import System, Wanted, Window, system, window

VARIANTS = ("search", *PUBLISHED)
#: A central Steiner approximation is tried for each channel up to this many; it takes milliseconds each.
MOST_STEINER = 400
#: Under a cap the published variants are tried too, up to this many profiles.
MOST_TRIED_PROFILES = 4000
#: So much may central trees save against the others.
NEAR = 1.05


def plan(
    topology: Topology,
    profiles: Sequence[Wanted | str],
    clients: ArrayLike,
    messages: Any,
    sources: ArrayLike | None = None,
    variant: str = "search",
    max_channels: int | None = None,
    rendezvous: str = "best",
    seed: int = 0,
    *,
    half_life: float | None = None,
    latency_bound: ArrayLike | None = None,
) -> SemanticPlan:
    """Channels, their gateways and trees, and the rule from messages to channels (SemCast, and ours).

    `clients` are (profile index, gateway broker) pairs, `messages` the statistics window, `sources` the
    publisher's broker of each message or one for all; of messages measured elsewhere their Statistics do.
    `search` makes a channel per audience (the set of gateways that want a message) and, under a cap,
    merges those that lose least; the others are as published. Whoever matches a message is reached,
    also by messages the window never saw.

    With a `latency_bound`, one for all clients or one each (nan for none), every message from a source of
    the window is at the client's gateway within that delay; if no plan can do so an InfeasibleError
    says which bound would do.

    >>> import pyarrow as pa
    >>> line = Topology([(0, 1), (1, 2), (1, 3)])
    >>> window = pa.table({"x": [1, 2, 3, 9]})
    >>> made = plan(line, ["x > 1", "x > 2"], [(0, 2), (1, 3)], window, sources=0)
    >>> made.cost, [channel.gateways for channel in made.channels if channel.kind == "audience"]
    (8.0, [(2,), (2, 3)])
    >>> [pairs.tolist() for pairs in made.route(pa.table({"x": [2, 1000]}), sources=0)]
    [[0, 1], [0, 1]]
    """
    if variant not in VARIANTS:
        raise UnsupportedError(f"there is no variant {variant!r}; there are {', '.join(VARIANTS)}", works=VARIANTS)
    if max_channels is not None and max_channels < 1:
        raise InfeasibleError("any audience needs at least one channel", budget="max_channels", smallest=1)
    made = system(topology, profiles, clients)
    seen = window(made, messages, sources, half_life)
    each, bounds = read_bounds(made, latency_bound)
    if bounds is not None:
        check_reachable(made, seen, bounds)
    build = _Build(made, seen, max_channels, rendezvous, seed, {"half_life": half_life}, each, bounds)
    if not made.gateways.size:
        return build.done(variant, [], [], [], [], ContentRouter(()))
    if variant != "search":
        return build.published(variant)
    return build.search()


class _Joining(NamedTuple):
    """What the published variants start from: the gateways' joining order, tree estimates and hierarchies."""

    order: Ints
    estimate: Estimator
    found: Hierarchies


class _Build:
    def __init__(
        self,
        made: System,
        seen: Window,
        max_channels: int | None,
        rendezvous: str,
        seed: int,
        others: Mapping[str, Any],
        bound_of_client: Floats | None,
        bounds: Bounds | None,
    ) -> None:
        self.bound_of_client, self.bounds = bound_of_client, bounds
        self.made, self.seen, self.max_channels = made, seen, max_channels
        self.rendezvous, self.seed = rendezvous, seed
        self.parameters = {"max_channels": max_channels, "rendezvous": rendezvous, "seed": seed, **others}

    @property
    def quick(self) -> Paths | None:
        return None if self.bounds is None else self.bounds.quick

    def trees(self, kind: str) -> Trees:
        rng = np.random.default_rng([self.seed, 1])
        return Trees(self.made.paths, self.seen.sources, self.rendezvous, kind, rng, self.bounds)

    def search(self) -> SemanticPlan:
        ours = self._searched(self.seen)
        if self.max_channels is None or len(self.made.profiles) > MOST_TRIED_PROFILES:
            return ours
        tried = [ours]
        if self._after.weight.size > self.seen.weight.size:
            tried.append(self._searched(self._after))
        return self._steadiest(tried, self._as_published(self.window_bandwidth(ours)))

    def _searched(self, known: Window) -> SemanticPlan:
        made = self.made
        found = search(made, known, self.trees("cheaper"), self.max_channels)
        groups, n = found.groups, found.n_seen
        rooted = self._rooted(groups, slice(n), "best" if n <= MOST_STEINER else "cheaper")
        rooted += self._rooted(groups, slice(n, None), "cheaper")
        router = AudienceRouter(
            self._ways(rooted), self._ways(found.block_trees), groups.core, groups.reach, found.blocks
        )
        contents = AudienceContents(router, made.wants)
        reach = np.concatenate((groups.reach, found.blocks))
        kinds = ["audience"] * n + ["expected"] * (len(groups.reach) - n) + ["fallback"] * len(found.blocks)
        tell = [partial(contents.of, c) for c in range(len(reach))]
        return self.done("search", list(reach), kinds, [*rooted, *found.block_trees], tell, router)

    @cached_property
    def _after(self) -> Window:
        """The window, and what it has not seen yet but is likely to come."""
        return with_unseen(self.made, self.seen, np.random.default_rng([self.seed, 3]))

    def _steadiest(self, ours: list[SemanticPlan], published: list[SemanticPlan]) -> SemanticPlan:
        """Of the plans that cost the window no more than the published ones, the least in the window and after it.

        After it the same audiences are wanted from other sources, and unseen profiles are matched: a plan
        that learned by heart which source sent what loses there.
        """
        least = min((self.window_bandwidth(each) for each in published), default=np.inf)
        good = [each for each in (*ours, *published) if self.window_bandwidth(each) <= least * (1 + 1e-12)]
        turned = np.random.default_rng([self.seed, 4]).permutation(self._after.source)
        after = replace(self._after, source=turned)
        return min(good or ours, key=lambda each: self.window_bandwidth(each) + self.window_bandwidth(each, after))

    def _rooted(self, groups: Groups, which: slice, kind: str) -> list[Rooted]:
        members = [self.made.gateways[reach] for reach in groups.reach[which]]
        return self.trees(kind).all_rooted(members, list(groups.weight[which]))

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
            for kinds in (("cheaper",), ("best", "join-broker")):
                try:
                    tried = [self._on_trees("search", each, kind) for kind in kinds]
                except InfeasibleError:  # its channels are too wide for the latency bounds; ours are not
                    break
                found += tried
                if self.window_bandwidth(tried[0]) > NEAR * ours:
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
        """The same for every variant: the same seed draws order and roots."""
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

    def published(self, variant: str) -> SemanticPlan:
        joining = self._joining
        found = merge(joining.found, self.seen, joining.estimate, variant, self.max_channels)
        return self._on_trees(variant, found, "steiner" if variant == "central" else "join-broker")

    def _on_trees(self, variant: str, found: Merged, kind: str) -> SemanticPlan:
        made, seen = self.made, self.seen
        reach = np.zeros_like(found.reach)
        reach[:, self._joining.order] = found.reach
        router = ContentRouter(tuple(found.contents))
        # How much each source sends to each channel decides where it is best rooted.
        rows, cols = routed(router, seen.matched, seen.audience, seen.source)
        # Under bounds every source may come to use any channel.
        weight = np.full((len(reach), max(1, seen.sources.size)), 0.0 if self.bounds is None else 1e-9)
        np.add.at(weight, (cols, seen.source[rows]), seen.weight[rows])
        rooted = self.trees(kind).all_rooted([made.gateways[r] for r in reach], list(weight))
        tell = [partial(_same, content) for content in found.contents]
        return self.done(variant, list(reach), found.kinds, rooted, tell, router)

    def _middle(self) -> int:
        """The source that is nearest to all sources' messages."""
        brokers = self.seen.sources
        weight = np.bincount(self.seen.source, weights=self.seen.weight, minlength=brokers.size)
        return int(brokers[np.argmin(weight @ self.made.paths.distance[np.ix_(brokers, brokers)])])

    def done(
        self,
        variant: str,
        reach: list[Any],
        kinds: list[str],
        rooted: list[Rooted],
        contents: Sequence[Callable[[], Content]],
        router: Any,
    ) -> SemanticPlan:
        """Route the window to know the rates, then freeze."""
        made, seen = self.made, self.seen
        rows, cols = routed(router, seen.matched, seen.audience, seen.source)
        rate: Floats = rates(len(reach), cols, seen.weight[rows])
        channels = tuple(
            Channel(
                tuple(made.gateways[r].tolist()),
                tree.rendezvous,
                tree.edges,
                float(k),
                tree.link_cost,
                kind,
                tell,
                made.profiles,
                tree.allowed,
            )
            for r, kind, tree, k, tell in zip(reach, kinds, rooted, rate, contents, strict=True)
        )
        cost = float(sum(channel.rate * channel.link_cost for channel in channels))
        return SemanticPlan(
            made, channels, variant, cost, seen.sources, router, self.parameters, self.bound_of_client, self.quick
        )

    def window_bandwidth(self, found: SemanticPlan, window: Window | None = None) -> float:
        """What the window costs in full; with no source known, on the trees alone."""
        seen = self.seen if window is None else window
        if not seen.sources.size:
            return found.cost
        rows, cols = routed(found.router, seen.matched, seen.audience, seen.source)
        return float((traversals(found, rows, cols, seen.sources[seen.source]) * seen.weight[rows]).sum())


def _same(content: Content) -> Content:
    return content
