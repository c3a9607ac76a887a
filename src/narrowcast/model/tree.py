"""A multicast tree: a source at the root, users at the leaves, places for filters between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.errors import InputError
from narrowcast.model.arrays import Bools, Floats, Ints, amounts, frozen, indices


@dataclass(frozen=True, eq=False, init=False)
class Tree:
    """A rooted tree of any arity, given by the parent of each vertex (−1 at the root).

    `link_cost[v]` belongs to the link into v (the root's is not used). `can_filter` marks the
    vertices able to host a filter: by default every interior vertex, the root included.
    `users[v]` counts the users attached at leaf v, by default one.

    >>> tree = Tree([-1, 0, 0, 1, 1])
    >>> tree.root, tree.leaves.tolist(), tree.depth.tolist()
    (0, [2, 3, 4], [0, 1, 1, 2, 2])
    """

    parents: Ints
    link_cost: Floats
    can_filter: Bools
    users: Floats
    depth: Ints = field(repr=False)
    names: tuple[str, ...] | None = None

    def __init__(
        self,
        parents: ArrayLike,
        *,
        link_cost: ArrayLike | None = None,
        can_filter: ArrayLike | None = None,
        users: ArrayLike | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        parent = indices("parents", parents, low=-1, high=np.asarray(parents).size)
        n = parent.size
        if n == 0:
            raise InputError("a tree must have at least one vertex, got none", name="parents")
        roots = np.flatnonzero(parent < 0)
        if roots.size != 1:
            raise InputError(
                f"a tree must have one root, got {roots.size} vertices without a parent", name="parents", got=roots.size
            )
        if names is not None and len(names) != n:
            raise InputError(f"names must have {n} entries, one per vertex, got {len(names)}", name="names")
        leaf = np.bincount(parent[parent >= 0], minlength=n) == 0
        cost = amounts("link_cost", 1.0 if link_cost is None else link_cost, n)
        population = amounts("users", 1.0 if users is None else users, n)
        hosts = ~leaf if can_filter is None else _mask(can_filter, n) & ~leaf
        values = {
            "parents": parent.copy(),
            "link_cost": cost.copy(),
            "can_filter": hosts,
            "users": np.where(leaf, population, 0.0),
            "depth": _depths(parent, int(roots[0])),
        }
        for name, value in values.items():
            object.__setattr__(self, name, frozen(value))
        object.__setattr__(self, "names", None if names is None else tuple(names))

    @property
    def n(self) -> int:
        """How many vertices there are."""
        return int(self.parents.size)

    @cached_property
    def root(self) -> int:
        """The vertex without a parent."""
        return int(np.flatnonzero(self.parents < 0)[0])

    @cached_property
    def order(self) -> Ints:
        """All vertices, every parent before its children; reverse it to go from the leaves up."""
        return frozen(np.argsort(self.depth, kind="stable"))

    @cached_property
    def children(self) -> tuple[Ints, Ints]:
        """(offsets, vertices): the children of v are `vertices[offsets[v]:offsets[v + 1]]`."""
        below = np.argsort(self.parents, kind="stable")[1:]
        offsets = np.zeros(self.n + 1, np.int64)
        np.cumsum(np.bincount(self.parents[below], minlength=self.n), out=offsets[1:])
        return frozen(offsets), frozen(below)

    @cached_property
    def is_leaf(self) -> Bools:
        """Per vertex, whether nothing is below it."""
        return frozen(np.diff(self.children[0]) == 0)

    @cached_property
    def leaves(self) -> Ints:
        """The vertices with nothing below them, ascending."""
        return frozen(np.flatnonzero(self.is_leaf))

    def __repr__(self) -> str:
        return f"Tree({self.n} vertices, {self.leaves.size} leaves, depth {int(self.depth.max())})"


def _mask(values: ArrayLike, n: int) -> Bools:
    array = np.asarray(values)
    if array.dtype.kind == "b" and array.shape == (n,):
        return array.astype(np.bool_)
    mask = np.zeros(n, np.bool_)
    mask[indices("can_filter", array, high=n)] = True
    return mask


def _depths(parents: Ints, root: int) -> Ints:
    """Depth of every vertex by pointer doubling; refuses cycles. O(n log depth)."""
    jump = parents.copy()
    jump[root] = root
    depth: Ints = (np.arange(parents.size) != root).astype(np.int64)
    for _ in range(int(parents.size).bit_length() + 1):
        if (jump == root).all():
            return depth
        depth += depth[jump]
        jump = jump[jump]
    at = int(np.flatnonzero(jump != root)[0])
    raise InputError(f"vertex {at} never reaches the root: its parents form a cycle", name="parents", got=at)
