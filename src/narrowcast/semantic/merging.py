"""SemCast, second phase (§3.2.3): hierarchies that overlap share a channel for what is common.

Two channels with contents A and B to D(A) and D(B) become A∧B to D(A) ∪ D(B), and what is left of each
to its own: each message of A still reaches D(A). (The paper prints ∩, which would drop deliveries.)
With the tree estimates t this gains |A∧B| · (t_A + t_B − t_AB).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from narrowcast.model._arrays import Bools, Floats, Ints
from narrowcast.semantic.content import Content, Wants, both, either, less
from narrowcast.semantic.hierarchies import Estimator, Hierarchies
from narrowcast.semantic.window import Window

Bits = NDArray[np.uint8]
VARIANTS = ("semcast", "merge", "noise-merge", "central")
#: A merge makes at most two new candidates; past this many per hierarchy the search ends.
MOST_MERGES = 4


@dataclass(frozen=True, eq=False)
class Merged:
    """Channels: contents, kinds, and reach by joining order."""

    contents: list[Content]
    kinds: list[str]
    reach: Bools
    roots: Ints


def merge(found: Hierarchies, window: Window, estimate: Estimator, variant: str, max_channels: int | None) -> Merged:
    """Merge the best pair, again and again, until nothing gains or the channels would be too many."""
    pool = _Pool(found, window, estimate, union=variant == "merge")
    if max_channels is not None and pool.n_channels > max_channels:
        pool.union, pool.overlapping = True, False
        pool.refresh_all()
        while pool.n_channels > max_channels:
            pool.unite(*pool.best(least=-np.inf))
    if variant == "merge":
        while (pair := pool.best(least=0.0))[0] >= 0:
            pool.unite(*pair)
        return pool.result()
    if not pool.overlapping:
        return pool.result()
    for _ in range(MOST_MERGES * len(found.members)):
        pair = pool.best(least=0.0)
        if pair[0] < 0 or (max_channels is not None and pool.n_channels >= max_channels):
            break
        pool.split(*pair, noise_too=variant == "noise-merge")
    return pool.result()


class _Pool:
    """Candidate channels with, for each, its best partner: only what a merge touches is priced again."""

    def __init__(self, found: Hierarchies, window: Window, estimate: Estimator, *, union: bool) -> None:
        self.estimate, self.union, self.weight = estimate, union, window.weight
        self.overlapping = True  # only channels with common messages are candidates
        self.even = bool((window.weight == 1).all())
        dense = window.matched.toarray() > 0
        self.contents: list[Content] = [Wants(tuple(members)) for members in found.members]
        self.kinds = ["hierarchy"] * len(self.contents)
        carried = [dense[:, members].any(axis=1) for members in found.members]
        self.bits = np.packbits(np.array(carried).reshape(len(carried), -1), axis=1)
        self.n_messages = dense.shape[0]
        self.reach, self.roots, self.tree = found.reach.copy(), found.roots.copy(), found.tree.copy()
        self.rate = self._count(self.bits)
        n = len(self.contents)
        self.there, self.open = np.ones(n, np.bool_), np.ones(n, np.bool_)
        self.gain, self.partner = np.full(n, -np.inf), np.full(n, -1)
        self.refresh_all()

    @property
    def n_channels(self) -> int:
        return int(self.there.sum())

    def result(self) -> Merged:
        kept = np.flatnonzero(self.there).tolist()
        return Merged(
            [self.contents[i] for i in kept], [self.kinds[i] for i in kept], self.reach[kept], self.roots[kept]
        )

    def best(self, least: float) -> tuple[int, int]:
        i = int(np.argmax(self.gain)) if self.gain.size else -1
        if i < 0 or not self.gain[i] > least:
            return -1, -1
        return i, int(self.partner[i])

    def refresh_all(self) -> None:
        """Price every pair once."""
        self.gain[:], self.partner[:] = -np.inf, -1
        for i in np.flatnonzero(self.open).tolist():
            self._prefer(i, *self.gains(i, np.flatnonzero(self.open[:i])))

    def refresh(self, i: int) -> tuple[Ints, Floats]:
        """Price channel i against all others and remember its best partner."""
        others = np.flatnonzero(self.open)
        others, gain = self.gains(i, others[others != i])
        self.gain[i], self.partner[i] = -np.inf, -1
        if others.size:
            at = int(np.argmax(gain))
            self.gain[i], self.partner[i] = gain[at], others[at]
        return others, gain

    def gains(self, i: int, others: Ints) -> tuple[Ints, Floats]:
        """What merging with each of the others gains; only those that overlap, unless all must be tried."""
        common = self._count(self.bits[others] & self.bits[i])
        if self.overlapping:
            others, common = others[common > 0], common[common > 0]
        joint = self.estimate(self.roots, self.reach, np.minimum(others, i), np.maximum(others, i))
        if not self.union:
            return others, common * (self.tree[others] + self.tree[i] - joint)
        both = self.rate[others] + self.rate[i] - common
        return others, self.rate[others] * self.tree[others] + self.rate[i] * self.tree[i] - both * joint

    def _prefer(self, new: int, others: Ints, gain: Floats) -> None:
        """Remember the new pairs where they are better than what was known."""
        if others.size and gain.max() > self.gain[new]:
            at = int(np.argmax(gain))
            self.gain[new], self.partner[new] = gain[at], others[at]
        better = gain > self.gain[others]
        self.gain[others[better]], self.partner[others[better]] = gain[better], new

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
        for x in np.flatnonzero(self.open & np.isin(self.partner, (i, j))).tolist():
            self.refresh(x)

    def _enter(self, new: int) -> None:
        """Open a new channel: price it, and let others prefer it."""
        self.open[new] = True
        self._prefer(new, *self.refresh(new))

    def _add(self, content: Content, kind: str, bits: Bits, i: int, j: int) -> int:
        self.contents.append(content)
        self.kinds.append(kind)
        self.bits = np.concatenate((self.bits, bits[None]))
        self.reach = np.concatenate((self.reach, (self.reach[i] | self.reach[j])[None]))
        self.roots = np.append(self.roots, self.roots[min(i, j)])
        low, high = np.array([min(i, j)]), np.array([max(i, j)])
        self.tree = np.append(self.tree, self.estimate(self.roots, self.reach, low, high))
        self.rate = np.append(self.rate, self._count(bits[None]))
        self.there, self.open = np.append(self.there, True), np.append(self.open, False)
        self.gain, self.partner = np.append(self.gain, -np.inf), np.append(self.partner, -1)
        return len(self.contents) - 1

    def _count(self, bits: Bits) -> Floats:
        """The weight of the messages in each row of bits."""
        if self.even:
            return np.asarray(np.bitwise_count(bits).sum(axis=1), np.float64)
        return np.asarray(np.unpackbits(bits, axis=1, count=self.n_messages) @ self.weight)
