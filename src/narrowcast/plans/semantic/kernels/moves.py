"""Audience classes moved between channels one by one, as long as that lowers what all of it costs."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit
from narrowcast.network.kernels.paths import OUTSIDE
from narrowcast.plans.semantic.kernels.near import ones
from narrowcast.plans.semantic.kernels.price import price

Array = NDArray[Any]
#: Relative to the price of the channels concerned: less than this is rounding.
LEAST_GAIN = 1e-9


class PricedOverlay(NamedTuple):
    """All shortest paths, the brokers that publish and the brokers with clients."""

    distance: Array
    next_hop: Array
    sources: Array
    gateways: Array


@jit
def _price(on: PricedOverlay, count: Array, weight: Array, members: Array, parent: Array) -> Any:
    n = 0
    for g in range(count.size):
        if count[g] > 0:
            members[n] = on.gateways[g]
            n += 1
    return price(on.distance, on.next_hop, on.sources, weight, members[:n], parent)


@jit
def _shift(count: Array, weight: Array, bits: Array, reach: Array, by: int, s: int, w: float) -> None:
    """Put a class into a channel (by = 1) or take it out (−1)."""
    for g in range(count.size):
        if reach[g]:
            count[g] += by
            if count[g] > 0:
                bits[g // 64] |= np.uint64(1) << np.uint64(g % 64)
            else:
                bits[g // 64] &= ~(np.uint64(1) << np.uint64(g % 64))
    weight[s] = max(0.0, weight[s] + by * w)


@jit
def _likeliest(bits: Array, total: Array, mine: Array, w: float, old: int, found: Array) -> int:
    """The channels, other than `old`, that would waste least with this class; how many."""
    waste = np.empty(found.size)
    n = 0
    for c in range(total.size):
        if c == old:
            continue
        here = 0.0
        for word in range(mine.size):
            here += total[c] * ones(mine[word] & ~bits[c, word]) + w * ones(bits[c, word] & ~mine[word])
        if n == found.size and here >= waste[n - 1]:
            continue
        at = n if n < found.size else n - 1
        while at > 0 and waste[at - 1] > here:
            waste[at], found[at] = waste[at - 1], found[at - 1]
            at -= 1
        waste[at], found[at] = here, c
        n = min(n + 1, found.size)
    return n


@jit
def move_classes(
    on: PricedOverlay,
    reach: Array,
    words: Array,
    source: Array,
    weight: Array,
    given_up: Array,
    order: Array,
    channel: Array,
    n_channels: int,
    k: int,
    passes: int,
) -> Array:
    """Move each class to the channel, of the k likeliest, or to the blocks (−1) where the total falls most.

    Class i wants reach[i] (as bits words[i]), comes from source[i], weighs weight[i] and costs given_up[i] at
    the blocks; channel[i] is where it is now and is changed in place. `order` is the order of a pass; it ends with
    a pass that moves nothing, or after so many. Returns the price of each channel. Every move lowers the sum of
    prices and given-up costs.
    """
    counts = np.zeros((n_channels, reach.shape[1]), np.int64)
    weights = np.zeros((n_channels, max(1, on.sources.size)))
    bits = np.zeros((n_channels, words.shape[1]), np.uint64)
    total = np.zeros(n_channels)
    prices = np.zeros(n_channels)
    members = np.empty(reach.shape[1], np.int64)
    parent = np.full(on.distance.shape[0], OUTSIDE, np.int32)
    for i in range(channel.size):
        if channel[i] >= 0:
            _shift(counts[channel[i]], weights[channel[i]], bits[channel[i]], reach[i], 1, source[i], weight[i])
            total[channel[i]] += weight[i]
    for c in range(n_channels):
        prices[c] = _price(on, counts[c], weights[c], members, parent)
    tried = np.empty(k, np.int64)
    for _ in range(passes):
        moved = 0
        for i in order:
            old, s, w = channel[i], source[i], weight[i]
            saved, without = given_up[i], 0.0
            if old >= 0:
                _shift(counts[old], weights[old], bits[old], reach[i], -1, s, w)
                without = _price(on, counts[old], weights[old], members, parent)
                saved = prices[old] - without
            best, least, there = -1, given_up[i], 0.0
            n = _likeliest(bits, total, words[i], w, old, tried)
            for at in range(n):
                c = tried[at]
                _shift(counts[c], weights[c], bits[c], reach[i], 1, s, w)
                joint = _price(on, counts[c], weights[c], members, parent)
                _shift(counts[c], weights[c], bits[c], reach[i], -1, s, w)
                if joint - prices[c] < least:
                    best, least, there = c, joint - prices[c], joint
            if least < saved - LEAST_GAIN * (abs(saved) + abs(least)):
                moved += 1
                if old >= 0:
                    prices[old] = without
                    total[old] -= w
                channel[i] = best
                if best >= 0:
                    _shift(counts[best], weights[best], bits[best], reach[i], 1, s, w)
                    prices[best] = there
                    total[best] += w
            elif old >= 0:
                _shift(counts[old], weights[old], bits[old], reach[i], 1, s, w)
        if moved == 0:
            break
    return prices
