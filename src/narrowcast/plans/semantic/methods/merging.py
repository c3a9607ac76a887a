"""SemCast, second phase (§3.2.3): hierarchies that overlap share a channel for what is common.

Two channels with contents A and B to D(A) and D(B) become A∧B to D(A) ∪ D(B), and what is left of each
to its own: each message of A still reaches D(A). (The paper prints ∩, which would drop deliveries.)
With the tree estimates t this gains |A∧B| · (t_A + t_B − t_AB).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.plans.semantic.content import Content, Wants, both, either, less
from narrowcast.plans.semantic.methods.audiences import packed
from narrowcast.plans.semantic.methods.hierarchies import Estimator, Hierarchies
from narrowcast.plans.semantic.window import Window

Bits = NDArray[np.uint64]
PUBLISHED = ("semcast", "merge", "noise-merge", "central")
#: Our improvement of `semcast`: the same channels, gateways joined at the nearest broker of the tree.
JOIN_AT_BROKER = "semcast-broker"
#: A merge makes at most two new candidates; past this many per hierarchy the search ends.
MOST_MERGES = 4
#: So many partners of a channel are remembered.
MOST_KEPT = 256


#: The pool's arrays, a row per channel, and what stands in a row that has none yet.
EMPTY = {"bits": 0, "reach": False, "roots": 0, "tree": 0.0, "rate": 0.0, "there": False, "open": False,
         "gain": -np.inf, "partner": -1}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Merged:
    """Channels: contents, kinds, and reach by joining order."""

    contents: list[Content]
    kinds: list[str]
    reach: Bools
    roots: Ints


def merge(found: Hierarchies, window: Window, estimate: Estimator, method: str, max_channels: int | None) -> Merged:
    """Merge the best pair, again and again, until nothing gains or the channels would be too many."""
    pool = _Pool(found, window, estimate, union=method == "merge")
    if max_channels is not None and pool.n_channels > max_channels:
        pool.shrink(max_channels)
        return pool.gaining() if method == "merge" else pool.result()
    pool.price_all()
    if method == "merge":
        return pool.gaining()
    for _ in range(MOST_MERGES * len(found.members)):
        pair = pool.best(least=0.0)
        if pair[0] < 0 or (max_channels is not None and pool.n_channels >= max_channels):
            break
        pool.split(*pair, noise_too=method == "noise-merge")
    return pool.result()


def merge_under(found: Hierarchies, window: Window, estimate: Estimator, max_channels: int) -> tuple[Merged, Merged]:
    """What `semcast` (and so `noise-merge`) and `merge` give under a cap below the number of hierarchies: one run."""
    pool = _Pool(found, window, estimate, union=True)
    pool.shrink(max_channels)
    return pool.result(), pool.gaining()


class _Pool:
    """Candidate channels. Each is priced once, against those before it, and keeps its partners from the best on."""

    def __init__(self, found: Hierarchies, window: Window, estimate: Estimator, *, union: bool) -> None:
        self.estimate, self.union, self.weight = estimate, union, window.weight
        self.overlapping = True  # only channels with common messages are candidates
        self.even = bool((window.weight == 1).all())
        dense = window.matched.toarray() > 0
        self.contents: list[Content] = [Wants(tuple(members)) for members in found.members]
        self.kinds = ["hierarchy"] * len(self.contents)
        carried = [dense[:, members].any(axis=1) for members in found.members]
        self.n_messages = dense.shape[0]
        self.bits = packed(np.array(carried, np.bool_).reshape(len(carried), -1))
        self.reach, self.roots, self.tree = found.reach.copy(), found.roots.copy(), found.tree.copy()
        self.rate = self._count(self.bits)
        n = len(self.contents)
        self.there, self.open = np.ones(n, np.bool_), np.ones(n, np.bool_)
        self.gain, self.partner = np.full(n, -np.inf), np.full(n, -1)
        self.ranked: dict[int, tuple[Ints, Floats]] = {}

    @property
    def n_channels(self) -> int:
        return int(self.there.sum())

    def result(self) -> Merged:
        kept = np.flatnonzero(self.there).tolist()
        return Merged(
            [self.contents[i] for i in kept], [self.kinds[i] for i in kept], self.reach[kept], self.roots[kept]
        )

    def shrink(self, n_channels: int) -> None:
        """Unite those that lose least until so many are left, whether they overlap or not."""
        self.union, self.overlapping = True, False
        self.price_all()
        while self.n_channels > n_channels:
            self.unite(*self.best(least=-np.inf))

    def gaining(self) -> Merged:
        """Unite as long as that gains (SemCast-Merge)."""
        while (pair := self.best(least=0.0))[0] >= 0:
            self.unite(*pair)
        return self.result()

    def best(self, least: float) -> tuple[int, int]:
        i = int(np.argmax(self.gain)) if self.gain.size else -1
        if i < 0 or not self.gain[i] > least:
            return -1, -1
        return i, int(self.partner[i])

    def price_all(self) -> None:
        for i in np.flatnonzero(self.open).tolist():
            self.price(i)

    def price(self, i: int) -> None:
        """Price channel i with every open one before it, and keep the best of them in order."""
        others, gain = self.gains(i, np.flatnonzero(self.open[:i]))
        if others.size > MOST_KEPT:
            kept = np.argpartition(-gain, MOST_KEPT)[:MOST_KEPT]
            others, gain = others[kept], gain[kept]
        order = np.argsort(-gain, kind="stable")
        self.ranked[i] = others[order], gain[order]
        self._prefer(i)

    def _prefer(self, i: int) -> None:
        """The best partner of channel i that is still open; it is priced anew when all that it kept are gone."""
        others, gain = self.ranked[i]
        left = self.open[others]
        at = int(np.argmax(left)) if left.any() else -1
        self.gain[i], self.partner[i] = (gain[at], others[at]) if at >= 0 else (-np.inf, -1)
        if at < 0 and others.size >= MOST_KEPT:
            self.price(i)

    def gains(self, i: int, others: Ints) -> tuple[Ints, Floats]:
        """What merging with each of the others gains; only those that overlap, unless all must be tried."""
        common = self._count(self.bits[others] & self.bits[i])
        if self.overlapping:
            others, common = others[common > 0], common[common > 0]
        joint = self.estimate(self.roots, self.reach, others, np.full(others.size, i))
        if not self.union:
            return others, common * (self.tree[others] + self.tree[i] - joint)
        both = self.rate[others] + self.rate[i] - common
        return others, self.rate[others] * self.tree[others] + self.rate[i] * self.tree[i] - both * joint

    def unite(self, i: int, j: int) -> None:
        """One channel for both (SemCast-Merge)."""
        self._close(i, j)
        new = self._add(either(self.contents[i], self.contents[j]), "merged", self.bits[i] | self.bits[j], i, j)
        self._enter(new)

    def split(self, i: int, j: int, *, noise_too: bool) -> None:
        """What is common to both, and what is left of each."""
        a, b = self.contents[i], self.contents[j]
        self._close(i, j)
        common = self._add(both(a, b), "common", self.bits[i] & self.bits[j], i, j)
        left = self._add(less(a, b), "noise", self.bits[i] & ~self.bits[j], i, i)
        right = self._add(less(b, a), "noise", self.bits[j] & ~self.bits[i], j, j)
        self._enter(common)
        for noise in (left, right):
            if noise_too:
                self._enter(noise)

    def _close(self, i: int, j: int) -> None:
        for x in (i, j):
            self.there[x] = self.open[x] = False
            self.gain[x] = -np.inf
        for x in np.flatnonzero(self.open & ((self.partner == i) | (self.partner == j))).tolist():
            self._prefer(x)

    def _enter(self, new: int) -> None:
        """Open a new channel to be merged again."""
        self.price(new)
        self.open[new] = True

    def _add(self, content: Content, kind: str, bits: Bits, i: int, j: int) -> int:
        new, low, high = len(self.contents), min(i, j), max(i, j)
        if new == self.there.size:
            self._make_room()
        self.contents.append(content)
        self.kinds.append(kind)
        self.bits[new], self.reach[new] = bits, self.reach[i] | self.reach[j]
        self.roots[new], self.there[new] = self.roots[low], True
        self.tree[new] = self.estimate(self.roots, self.reach, np.array([low]), np.array([high]))[0]
        self.rate[new] = self._count(bits[None])[0]
        return new

    def _make_room(self) -> None:
        """Twice the rows; those without a channel yet are not there, not open, and gain nothing."""
        for name, empty in EMPTY.items():
            old = getattr(self, name)
            grown = np.full((2 * max(8, len(old)), *old.shape[1:]), empty, old.dtype)
            grown[: len(old)] = old
            setattr(self, name, grown)

    def _count(self, bits: Bits) -> Floats:
        """The weight of the messages in each row of bits."""
        if self.even:
            return np.asarray(np.bitwise_count(bits).sum(axis=1), np.float64)
        each = np.unpackbits(bits.view(np.uint8), axis=1, count=self.n_messages, bitorder="little")
        return np.asarray(each @ self.weight)
