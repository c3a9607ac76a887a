"""Channels on an overlay for what clients want and what messages went by."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.errors import InfeasibleError, UnsupportedError
from narrowcast.model._arrays import Floats
from narrowcast.model.topology import Topology
from narrowcast.semantic.content import Content
from narrowcast.semantic.hierarchies import Estimator, hierarchies
from narrowcast.semantic.merging import VARIANTS as PUBLISHED
from narrowcast.semantic.merging import merge
from narrowcast.semantic.plan_result import Channel, SemanticPlan, rates, routed, traversals
from narrowcast.semantic.rendezvous import Rooted
from narrowcast.semantic.route_audience import AudienceContents, AudienceRouter
from narrowcast.semantic.route_content import ContentRouter
from narrowcast.semantic.search import search
from narrowcast.semantic.trees import Trees
from narrowcast.semantic.window import System, Wanted, Window, system, window

VARIANTS = ("search", *PUBLISHED)
#: A central Steiner approximation is tried for each channel up to this many; it takes milliseconds each.
MOST_STEINER = 400
#: Under a cap the published variants are tried too, up to this many profiles.
MOST_TRIED_PROFILES = 4000


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
) -> SemanticPlan:
    """Channels, their gateways and trees, and the rule from messages to channels (SemCast, and ours).

    `clients` are (profile index, gateway broker) pairs, `messages` the statistics window, `sources` the
    publisher's broker of each message or one for all. `search` makes a channel per audience (the
    set of gateways that want a message) and, under a cap, merges those that lose least; the others
    are as published. Whoever matches a message is reached, also by messages the window never saw.

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
    build = _Build(made, seen, max_channels, rendezvous, seed)
    if not made.gateways.size:
        return build.done(variant, [], [], [], [], ContentRouter(()))
    if variant != "search":
        return build.published(variant)
    return build.search()


class _Build:
    def __init__(self, made: System, seen: Window, max_channels: int | None, rendezvous: str, seed: int) -> None:
        self.made, self.seen, self.max_channels = made, seen, max_channels
        self.rendezvous, self.seed = rendezvous, seed
        self.parameters = {"max_channels": max_channels, "rendezvous": rendezvous, "seed": seed}

    def trees(self, kind: str) -> Trees:
        rng = np.random.default_rng([self.seed, 1])
        return Trees(self.made.paths, self.seen.sources, self.rendezvous, kind, rng)

    def search(self) -> SemanticPlan:
        made, seen = self.made, self.seen
        found = search(made, seen, self.trees("cheaper"), self.max_channels)
        groups, n = found.groups, len(found.groups.reach)
        trees = self.trees("best" if n <= MOST_STEINER else "cheaper")
        rooted = trees.all_rooted([made.gateways[r] for r in groups.reach], list(groups.weight))
        way = np.array([tree.link_cost for tree in rooted])[None, :]
        if seen.sources.size:
            roots = np.array([tree.rendezvous for tree in rooted], np.int64)
            way = way + made.paths.distance[seen.sources[:, None], roots]
        order = np.argsort(way, axis=1, kind="stable") if n else np.full((len(way), 1), -1)
        router = AudienceRouter(order, groups.core, groups.reach, found.blocks)
        contents = AudienceContents(router, made.wants)
        reach = np.concatenate((groups.reach, found.blocks))
        kinds = ["audience"] * n + ["fallback"] * len(found.blocks)
        tell = [partial(contents.of, c) for c in range(len(reach))]
        ours = self.done("search", list(reach), kinds, [*rooted, *found.block_trees], tell, router)
        if self.max_channels is None or len(made.profiles) > MOST_TRIED_PROFILES:
            return ours
        return min([ours, *self._as_published()], key=self.window_bandwidth)

    def _as_published(self) -> list[SemanticPlan]:
        """The published channelizations under the same cap, with our trees: the search may not do worse."""
        tried = (self.published(each, "best") for each in PUBLISHED if each != "central")
        return [replace(found, variant="search") for found in tried]

    def published(self, variant: str, kind: str | None = None) -> SemanticPlan:
        made, seen = self.made, self.seen
        rng = np.random.default_rng([self.seed, 2])
        joining = rng.permutation(made.gateways.size)
        estimate = Estimator(made.paths, made.gateways[joining])
        wants = made.wants[:, joining]
        if self.rendezvous == "random" or not seen.sources.size:
            roots = rng.integers(0, made.topology.n_brokers, len(made.profiles))
            near = np.isfinite(made.paths.distance[made.gateways[0]])
            roots = np.where(near[roots], roots, made.gateways[0])
        else:
            roots = np.full(len(made.profiles), self._middle())
        found = merge(hierarchies(seen, wants, roots, estimate), seen, estimate, variant, self.max_channels)
        reach = np.zeros_like(found.reach)
        reach[:, joining] = found.reach
        router = ContentRouter(tuple(found.contents))
        # How much each source sends to each channel decides where it is best rooted.
        rows, cols = routed(router, seen.matched, seen.audience, seen.source)
        weight = np.zeros((len(reach), max(1, seen.sources.size)))
        np.add.at(weight, (cols, seen.source[rows]), seen.weight[rows])
        trees = self.trees(kind or ("steiner" if variant == "central" else "join"))
        rooted = trees.all_rooted([made.gateways[r] for r in reach], list(weight))
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
            )
            for r, kind, tree, k, tell in zip(reach, kinds, rooted, rate, contents, strict=True)
        )
        cost = float(sum(channel.rate * channel.link_cost for channel in channels))
        return SemanticPlan(made, channels, variant, cost, seen.sources, router, self.parameters)

    def window_bandwidth(self, found: SemanticPlan) -> float:
        """What the window costs in full; with no source known, on the trees alone."""
        if not self.seen.sources.size:
            return found.cost
        rows, cols = routed(found.router, self.seen.matched, self.seen.audience, self.seen.source)
        brokers = self.seen.sources[self.seen.source]
        return float((traversals(found, rows, cols, brokers) * self.seen.weight[rows]).sum())


def _same(content: Content) -> Content:
    return content
