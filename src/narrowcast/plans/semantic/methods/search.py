"""Our own channelization: one channel per audience, merged where the cap asks for it, by least loss.

A channel is made for audiences between its core (the gateways that all of them share) and its reach
(their union). Any other audience goes to the channel that serves most of it, and to the blocks of the
fallback that hold the rest, whatever costs least; every gateway is in a block, so the rule is total.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np

from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.plans.semantic.kernels.moves import PricedOverlay, move_classes
from narrowcast.plans.semantic.kernels.near import least_waste
from narrowcast.plans.semantic.kernels.price import union_prices
from narrowcast.plans.semantic.methods.audiences import AudienceClasses, audience_classes, meet, packed
from narrowcast.plans.semantic.methods.blocks import LEAST_WEIGHT, blocks
from narrowcast.plans.semantic.methods.expected import MOST_EXPECTED, expected
from narrowcast.plans.semantic.methods.rendezvous import Rooted, ways
from narrowcast.plans.semantic.methods.trees import Trees
from narrowcast.plans.semantic.window import OverlaySystem, Window

NEIGHBOURS = 8
#: A class may move to so many channels, in so many passes over all classes.
LIKELIEST = 4
PASSES = 3
#: With more classes than this one number of blocks is tried instead of several.
MOST_TRIED = 3000


@dataclass(frozen=True, eq=False)
class Groups:
    """Channels of audiences: `core ⊆ audience ⊆ reach`, used by the sources where `weight[:, s]` > 0."""

    core: Bools
    reach: Bools
    weight: Floats


@dataclass(frozen=True, eq=False)
class Searched:
    """The first `n_seen` groups are of audiences in the window, the others of audiences yet to come."""

    groups: Groups
    n_seen: int
    blocks: Bools
    block_trees: tuple[Rooted, ...]


def search(made: OverlaySystem, window: Window, trees: Trees, max_channels: int | None) -> Searched:
    """Channels for these audience classes, at most `max_channels` of them, blocks of the fallback included."""
    classes = audience_classes(window)
    n_gateways = made.gateways.size
    if max_channels is None or classes.n + n_gateways <= max_channels:
        return _one_each(made, window, classes, trees, max_channels)
    if classes.n + 1 <= max_channels:
        (parted,) = blocks(made, window, classes, [max_channels - classes.n])
        rooted = _block_trees(made, window, classes, trees, parted)
        return Searched(_each_alone(classes, window), classes.n, parted, rooted)
    tried: list[tuple[float, int, _Merging, Bools, tuple[Rooted, ...]]] = []
    for parted in blocks(made, window, classes, _numbers_of_blocks(max_channels, n_gateways, classes.n)):
        rooted = _block_trees(made, window, classes, trees, parted)
        merging = _Merging(made, window, classes, _block_costs(made, window, classes, parted, rooted))
        merging.run(max_channels - len(parted))
        tried.append((merging.total, len(tried), merging, parted, rooted))
    _, _, merging, parted, rooted = min(tried, key=lambda each: each[:2])
    groups = moved(made, window, classes, merging)
    return Searched(groups, len(groups.reach), parted, rooted)


def _one_each(
    made: OverlaySystem, window: Window, classes: AudienceClasses, trees: Trees, max_channels: int | None
) -> Searched:
    """Room for all: a channel per audience seen and per audience expected, and one per gateway."""
    room = MOST_EXPECTED if max_channels is None else max_channels - classes.n - made.gateways.size
    more = expected(made, window, classes, min(room, MOST_EXPECTED))
    every = AudienceClasses(
        np.concatenate((classes.reach, more.reach)),
        np.concatenate((classes.source, more.source)),
        np.concatenate((classes.weight, np.full(more.n, LEAST_WEIGHT))),
    )
    parted = np.eye(made.gateways.size, dtype=np.bool_)
    return Searched(_each_alone(every, window), classes.n, parted, tuple(trees.single(int(g)) for g in made.gateways))


def _numbers_of_blocks(cap: int, n_gateways: int, n_classes: int) -> list[int]:
    """How many blocks to try; each takes a merging of its own, so the fewer the more classes there are."""
    most = min(cap, n_gateways)
    quarter = max(1, min(most, cap // 4))
    if n_classes > MOST_TRIED:
        return [quarter]
    if n_classes > MOST_TRIED // 5:
        return sorted({1, quarter})
    return sorted({1, quarter, max(1, min(most, cap // 2)), most})


def _each_alone(classes: AudienceClasses, window: Window) -> Groups:
    return Groups(classes.reach, classes.reach, _by_source(classes, window))


def _by_source(classes: AudienceClasses, window: Window) -> Floats:
    weight = np.zeros((classes.n, max(1, window.sources.size)))
    weight[np.arange(classes.n), classes.source] = classes.weight
    return weight


def _block_trees(
    made: OverlaySystem, window: Window, classes: AudienceClasses, trees: Trees, parted: Bools
) -> tuple[Rooted, ...]:
    """A block serves every source; where no message went yet, all sources alike."""
    hit = meet(classes.reach, parted)
    weight = hit.T.astype(np.float64) @ _by_source(classes, window) + 1e-3
    return tuple(trees.all_rooted([made.gateways[reach] for reach in parted], list(weight)))


def _block_costs(
    made: OverlaySystem, window: Window, classes: AudienceClasses, parted: Bools, rooted: tuple[Rooted, ...]
) -> Floats:
    """What each class costs if it goes to the blocks."""
    hit = meet(classes.reach, parted)
    cost = ways(made.paths, None, window.sources, rooted)[classes.source]
    return np.asarray((cost * hit).sum(axis=1) * classes.weight)


def moved(made: OverlaySystem, window: Window, classes: AudienceClasses, merging: _Merging) -> Groups:
    """The merged channels after classes have moved between them one by one, which only lowers the cost."""
    channel = merging.channel_of_class()
    n = int(channel.max(initial=-1)) + 1
    on = PricedOverlay(made.paths.distance, made.paths.next_hop, window.sources, made.gateways)
    order = np.argsort(-classes.weight, kind="stable")
    move_classes(
        on, classes.reach, packed(classes.reach), classes.source, classes.weight, merging.block_cost, order, channel, n,
        LIKELIEST, PASSES,
    )  # fmt: skip
    return _grouped(classes, window, channel)


def _grouped(classes: AudienceClasses, window: Window, channel: Ints) -> Groups:
    """The channels that have any class."""
    kept, weights = np.unique(channel[channel >= 0]), _by_source(classes, window)
    mine = [channel == c for c in kept.tolist()]
    shape = (len(mine), classes.reach.shape[1])
    core = np.array([classes.reach[each].all(axis=0) for each in mine], np.bool_).reshape(shape)
    reach = np.array([classes.reach[each].any(axis=0) for each in mine], np.bool_).reshape(shape)
    weight = np.array([weights[each].sum(axis=0) for each in mine]).reshape(len(mine), weights.shape[1])
    return Groups(core, reach, weight)


class _Merging:
    """Channels become fewer by the step that costs least more: two in one, or one given up to the fallback."""

    def __init__(self, made: OverlaySystem, window: Window, classes: AudienceClasses, block_cost: Floats) -> None:
        self.made, self.window = made, window
        n = 2 * classes.n  # every merge makes one new channel
        self.reach = np.zeros((n, made.gateways.size), np.bool_)
        self.core = np.zeros((n, made.gateways.size), np.bool_)
        self.weight = np.zeros((n, max(1, window.sources.size)))
        self.reach[: classes.n] = self.core[: classes.n] = classes.reach
        self.weight[: classes.n] = _by_source(classes, window)
        self.given_up = np.zeros(n)  # cost at the blocks
        self.given_up[: classes.n] = block_cost
        self.price = np.zeros(n)
        self.alive = np.zeros(n, np.bool_)
        self.alive[: classes.n] = True
        self.bits = np.zeros((n, max(1, -(-made.gateways.size // 64))), np.uint64)
        self.bits[: classes.n] = packed(classes.reach)
        self.total_weight = self.weight.sum(axis=1)
        self.lost = 0.0
        self.n, self.made_of, self.block_cost = classes.n, dict[int, tuple[int, int]](), block_cost
        self.heap: list[tuple[float, int, int]] = []
        every = np.arange(classes.n)
        self.price[: classes.n] = self._prices(every, every)
        self._offer(every)

    @property
    def total(self) -> float:
        return float(self.price[self.alive].sum() + self.lost)

    def run(self, n_channels: int) -> None:
        left = int(self.alive.sum())
        while left > n_channels:
            _, i, j = heapq.heappop(self.heap)
            if not self.alive[i] or (j >= 0 and not self.alive[j]):
                continue
            self.alive[i] = False
            left -= 1
            if j < 0:
                self.lost += self.given_up[i]
            else:
                self.alive[j] = False
                self._merge(i, j)

    def channel_of_class(self) -> Ints:
        """Which of the channels left each class is in, −1 where it was given up."""
        number = np.full(self.n + 1, -1)
        number[np.flatnonzero(self.alive)] = np.arange(int(self.alive.sum()))
        for made, parts in reversed(self.made_of.items()):
            number[list(parts)] = number[made]
        return number[: len(self.block_cost)]

    def _merge(self, i: int, j: int) -> None:
        new = self.n
        self.made_of[new] = (i, j)
        self.n += 1
        self.reach[new] = self.reach[i] | self.reach[j]
        self.bits[new] = self.bits[i] | self.bits[j]
        self.core[new] = self.core[i] & self.core[j]
        self.weight[new] = self.weight[i] + self.weight[j]
        self.total_weight[new] = self.total_weight[i] + self.total_weight[j]
        self.given_up[new] = self.given_up[i] + self.given_up[j]
        self.alive[new] = True
        self.price[new] = self._prices(np.array([new]), np.array([new]))[0]
        self._offer(np.array([new]))

    def _prices(self, first: Ints, second: Ints) -> Floats:
        paths = self.made.paths
        return union_prices(
            paths.distance,
            paths.next_hop,
            self.window.sources,
            self.made.gateways,
            self.reach,
            self.weight,
            first,
            second,
        )

    def _offer(self, new: Ints) -> None:
        """Put the steps of these channels on the heap: with their nearest others, and giving up."""
        first, second = self._nearest(new)
        more = self._prices(first, second) - self.price[first] - self.price[second]
        for step in zip(more.tolist(), first.tolist(), second.tolist(), strict=True):
            heapq.heappush(self.heap, step)
        for i in new.tolist():
            heapq.heappush(self.heap, (float(self.given_up[i] - self.price[i]), i, -1))

    def _nearest(self, new: Ints) -> tuple[Ints, Ints]:
        """For each its neighbours by the deliveries that sharing a channel would waste."""
        near = least_waste(self.bits, self.total_weight, np.flatnonzero(self.alive), new, NEIGHBOURS)
        found = near >= 0
        return np.repeat(new, found.sum(axis=1)), near[found]
