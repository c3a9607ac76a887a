"""f(v): the size of the union of what the leaves below each vertex want, level by level."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from narrowcast.model import Tree
from narrowcast.model.arrays import Bools, Floats, Ints

Words = NDArray[np.uint64]


def pack(wants: Bools) -> Words:
    """Boolean rows as rows of 64-bit words, item 64·w + b in bit b of word w.

    >>> pack(np.array([[True, False, True]])).tolist()
    [[5]]
    """
    n, items = wants.shape
    padded = np.zeros((n, -(-items // 64) * 8), np.uint8)
    packed = np.packbits(wants, axis=1, bitorder="little")
    padded[:, : packed.shape[1]] = packed
    return padded.view("<u8").astype(np.uint64, copy=False)


def unpack(words: Words, items: int) -> Bools:
    """The rows of `pack` again."""
    octets = np.ascontiguousarray(words.astype("<u8", copy=False)).view(np.uint8)
    return np.unpackbits(octets, axis=1, count=items, bitorder="little").view(np.bool_)


def levels_up(tree: Tree) -> Iterator[tuple[Ints, Ints, Ints]]:
    """From the deepest level to the root's children: (vertices sorted by parent, starts of runs, their parents)."""
    order, depth = tree.order, tree.depth
    bounds = np.searchsorted(depth[order], np.arange(int(depth.max()) + 2))
    for level in range(bounds.size - 2, 0, -1):
        below = order[bounds[level] : bounds[level + 1]]
        parent = tree.parents[below]
        by_parent = np.argsort(parent, kind="stable")
        below, parent = below[by_parent], parent[by_parent]
        starts = np.flatnonzero(np.diff(parent, prepend=-1))
        yield below, starts, parent[starts]


def unions(tree: Tree, words: Words) -> Words:
    """The union below every vertex, given the items of each leaf (rows parallel to `tree.leaves`).

    One or-reduction per level: O(vertices · words) work and O(depth) NumPy calls.
    """
    total = np.zeros((tree.n, words.shape[1]), np.uint64)
    total[tree.leaves] = words
    for below, starts, parents in levels_up(tree):
        total[parents] |= np.bitwise_or.reduceat(total[below], starts, axis=0)
    return total


def sizes_of(words: Words, sizes: Floats | None, items: int) -> Floats:
    """The total size of the items in each row; every item has size 1 by default."""
    if sizes is None:
        counted: Floats = np.bitwise_count(words).sum(axis=1, dtype=np.float64)
        return counted
    result = np.empty(len(words))
    for at in range(0, len(words), 1 << 16):
        result[at : at + (1 << 16)] = unpack(words[at : at + (1 << 16)], items) @ sizes
    return result
