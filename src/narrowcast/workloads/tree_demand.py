"""Who wants which items at the leaves of a multicast tree, and how that drifts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.errors import InputError, UnsupportedError
from narrowcast.model import Tree
from narrowcast.model.arrays import Bools, Floats, Ints, amounts, frozen
from narrowcast.workloads.checks import choice, generator, number, share, whole
from narrowcast.workloads.union import Words, pack, sizes_of, unions, unpack

KINDS = ("uniform", "locality", "commuters")


@dataclass(frozen=True, eq=False)
class TreeWorkload:
    """A tree and the items wanted at its leaves; row i belongs to `tree.leaves[i]`.

    `words` holds the wants packed, 64 items to a word. `chance[i, j]` is the chance that user i wants
    item j, from which a user redraws; None where wants were not drawn that way. `sizes` are the items'
    sizes, None for all 1. `step` counts the commuters who have moved.
    """

    tree: Tree
    words: Words
    items: int
    chance: Floats | None = None
    sizes: Floats | None = None
    step: int = 0

    @cached_property
    def wants(self) -> Bools:
        """users × items, unpacked."""
        return frozen(unpack(self.words, self.items))

    @cached_property
    def flow(self) -> Floats:
        """f(v) per vertex: the total size of the union of the items wanted below v."""
        return frozen(sizes_of(unions(self.tree, self.words), self.sizes, self.items))

    @property
    def n_users(self) -> int:
        """How many users there are, one at each leaf."""
        return len(self.words)

    def pairs(self) -> tuple[Ints, Ints]:
        """The demand table: (leaf vertex, item) of every want."""
        user, item = np.nonzero(self.wants)
        return self.tree.leaves[user], item

    def redraw(self, share_of_users: float = 0.2, *, chance: ArrayLike | None = None, seed: int = 0) -> TreeWorkload:
        """The next batch: each user, with this chance, draws all its wants again (CBM, §7.1.3).

        `chance`, one number or one per user, replaces the users' own chances before they draw, for
        rates that change fast; by default a user keeps its taste and only its wants change.

        >>> now = tree_demand(levels=3, items=4, seed=1)
        >>> later = now.redraw(0.5, seed=2)
        >>> now.words.shape == later.words.shape, later is not now
        (True, True)
        """
        if self.chance is None:
            raise UnsupportedError("redraw supports only demand that tree_demand(...) drew")
        rng = generator(seed)
        again = rng.random(self.n_users) < share("share_of_users", share_of_users)
        now = self.chance.copy()
        if chance is not None:
            now[again] = _per_user(chance, self.n_users)[again, None]
        words = self.words.copy()
        words[again] = pack(rng.random((int(again.sum()), self.items)) < now[again])
        return replace(self, words=frozen(words), chance=frozen(now))

    def commute(self, steps: int = 1) -> TreeWorkload:
        """Let the next users of the left half change places with their mirror in the right (CBM, §7.1.4).

        At step t user t of the left half swaps with user t of the right one; after users/2 steps
        everybody has moved and the next step starts over.

        >>> home = tree_demand("commuters", levels=4, q=0.3, seed=0)
        >>> work = home.commute(4)
        >>> bool((work.wants[:4] == home.wants[4:]).all()), work.step
        (True, 4)
        """
        whole("steps", steps)
        half = self.n_users // 2
        order = np.arange(self.n_users)
        moved, times = np.unique((self.step + np.arange(steps)) % half, return_counts=True)
        moved = moved[times % 2 == 1]
        order[moved], order[moved + half] = moved + half, moved
        chance = None if self.chance is None else frozen(self.chance[order])
        return replace(self, words=frozen(self.words[order]), chance=chance, step=self.step + steps)


def tree_demand(
    kind: str = "uniform",
    *,
    levels: int = 7,
    items: int = 64,
    p: float | None = None,
    q: float | None = None,
    mean: float = 0.2,
    sizes: ArrayLike | None = None,
    seed: int = 0,
) -> TreeWorkload:
    """Demand on a complete binary tree: the defaults are CBM's 127 vertices, 64 leaves and 64 items (§7.1).

    P(i, j) is the chance that user i (the i-th leaf) wants item j.
    - `uniform`: P(i, j) = p, by default 0.2.
    - `locality`: P(i, j) = min(1, q^r / N) with r the height of the lowest common ancestor of leaf i
      and the leaf where item j is at home (leaf j when there are as many); N sets the mean to `mean`.
      q, by default 0.5, is in (0, 1]: at 1 there is no locality.
    - `commuters`: the left half wants p + q, the right half p − q (by default 0.3 ± 0.2); `commute` moves them.

    `.flow` is f(v) per vertex, for `nc.filters`; `.redraw` and `.commute` give the next batch.

    >>> demand = tree_demand(seed=7)
    >>> demand.tree.n, demand.n_users, demand.items, float(demand.flow[0])
    (127, 64, 64, 64.0)
    """
    choice("kind", kind, KINDS)
    whole("levels", levels, low=1 if kind != "commuters" else 2, high=24)
    whole("items", items, low=1)
    tree = complete_tree(levels)
    chance = _chances(kind, levels, items, p, q, mean)
    rng = generator(seed)
    words = pack(rng.random(chance.shape) < chance)
    weights = None if sizes is None else frozen(amounts("sizes", sizes, items).copy())
    return TreeWorkload(tree, frozen(words), items, frozen(chance), weights)


def complete_tree(levels: int, arity: int = 2) -> Tree:
    """A complete tree in breadth-first order: the root is 0, the leaves come last, left to right.

    >>> complete_tree(3).leaves.tolist()
    [3, 4, 5, 6]
    """
    whole("levels", levels, low=1)
    whole("arity", arity, low=1)
    n = levels if arity == 1 else (arity**levels - 1) // (arity - 1)
    return Tree((np.arange(n) - 1) // arity)


def _chances(kind: str, levels: int, items: int, p: float | None, q: float | None, mean: float) -> Floats:
    """P(i, j), users × items."""
    leaves = 2 ** (levels - 1)
    if kind == "locality":
        if p is not None:
            raise InputError(f"p must be left out for locality, which takes mean and q, got {p}", name="p", got=p)
        return _locality(levels, items, number("q", 0.5 if q is None else q, low=0.0, high=1.0), mean)
    base = share("p", (0.2 if kind == "uniform" else 0.3) if p is None else p)
    if kind == "uniform":
        if q is not None:
            raise InputError(f"q must be left out for uniform, which takes p only, got {q}", name="q", got=q)
        return np.full((leaves, items), base)
    skew = number("q", 0.2 if q is None else q)
    if not (0 <= base - skew <= 1 and 0 <= base + skew <= 1):
        raise InputError(f"p ± q must be in the range 0 to 1, got {base:g} ± {skew:g}", name="q", got=skew)
    side = np.where(np.arange(leaves) < leaves // 2, base + skew, base - skew)
    return np.repeat(side[:, None], items, axis=1)


def _locality(levels: int, items: int, q: float, mean: float) -> Floats:
    """min(1, q^r / N), N by bisection so that the clipped mean is right."""
    if q == 0.0:
        raise InputError(
            "q must be above 0, got 0: otherwise nobody wants anything but its own item", name="q", hint="0 < q ≤ 1"
        )
    if not 0 < share("mean", mean) <= 1:
        raise InputError(
            "mean must be above 0, got 0: otherwise nobody wants anything", name="mean", hint="0 < mean ≤ 1"
        )
    leaves = 2 ** (levels - 1)
    home = np.arange(items) * leaves // items
    # The height of the lowest common ancestor is the bit length of i xor j.
    r = np.frexp((np.arange(leaves)[:, None] ^ home[None, :]).astype(np.float64))[1]
    raw: Floats = q ** r.astype(np.float64)
    low, high = 0.0, 1.0 / float(raw.min())  # scale = 1/N: nothing at 0, everything at 1/min
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if np.minimum(1.0, raw * middle).mean() < mean else (low, middle)
    return np.minimum(1.0, raw * high)


def _per_user(chance: ArrayLike, users: int) -> Floats:
    given = amounts("chance", chance, users)
    if (given > 1).any():
        raise InputError(f"chance must be at most 1, got {given.max():g}", name="chance")
    return given
