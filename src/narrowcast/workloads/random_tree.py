"""Large trees of many shapes, with a demand whose f is a true union."""

from __future__ import annotations

import numpy as np

from narrowcast.model import Tree
from narrowcast.model.arrays import Floats, Ints, frozen
from narrowcast.workloads.checks import choice, generator, share, whole
from narrowcast.workloads.tree_demand import TreeWorkload
from narrowcast.workloads.union import Words, levels_up

SHAPES = ("random", "complete", "deep")


def random_tree(
    n: int = 1000,
    *,
    shape: str = "random",
    arity: int = 3,
    items: int = 256,
    per_leaf: int = 4,
    locality: float = 0.8,
    seed: int = 0,
) -> TreeWorkload:
    """A tree of n vertices with a few items wanted at each leaf, for trees of up to millions of vertices.

    Shapes: `random` (each vertex hangs below an earlier one picked at random: depth about e·ln n),
    `complete` (`arity` children each, filled from the left), `deep` (below one of the last √n
    vertices: depth of the order of √n). A leaf wants up to `per_leaf` of the items: with chance
    `locality` one at home near the leaf's place from left to right, else any, the popular more often.
    So f grows slowly towards the root: f(child) ≤ f(parent) ≤ Σ f(children), being sizes of unions.

    O(n · items/64) time and memory; 5 million vertices take some seconds.

    >>> demand = random_tree(10_000, seed=1)
    >>> above = demand.flow[demand.tree.parents[1:]]
    >>> demand.tree.n, bool((demand.flow[1:] <= above).all())
    (10000, True)
    """
    whole("n", n, low=1)
    whole("items", items, low=1)
    whole("per_leaf", per_leaf, low=1)
    share("locality", locality)
    rng = generator(seed)
    tree = Tree(_parents(n, choice("shape", shape, SHAPES), whole("arity", arity, low=1), rng))
    words = _draw_wants(rng, places(tree)[tree.leaves], items, per_leaf, locality)
    return TreeWorkload(tree, frozen(words), items)


def _parents(n: int, shape: str, arity: int, rng: np.random.Generator) -> Ints:
    vertex = np.arange(n)
    if shape == "complete":
        return (vertex - 1) // arity
    window = vertex if shape == "random" else np.minimum(vertex, max(1, int(n**0.5)))
    parents: Ints = vertex - 1 - (rng.random(n) * window).astype(np.int64)
    parents[0] = -1
    return parents


def places(tree: Tree) -> Floats:
    """Where each vertex's leaves begin from left to right, as a share in [0, 1) of all leaves."""
    below: Ints = tree.is_leaf.astype(np.int64)
    levels = list(levels_up(tree))
    for vertices, starts, parents in levels:
        below[parents] += np.add.reduceat(below[vertices], starts)
    place = np.zeros(tree.n, np.int64)
    for vertices, starts, parents in reversed(levels):
        before = np.cumsum(below[vertices]) - below[vertices]
        run = np.diff(np.append(starts, vertices.size))
        place[vertices] = before - np.repeat(before[starts], run) + np.repeat(place[parents], run)
    shares: Floats = place / below[tree.root]
    return shares


def _draw_wants(rng: np.random.Generator, place: Floats, items: int, per_leaf: int, locality: float) -> Words:
    words = np.zeros((place.size, -(-items // 64)), np.uint64)
    row = np.arange(place.size)
    for _ in range(per_leaf):
        near = (place + rng.normal(0.0, 0.5 / items, place.size)) % 1.0
        popular = rng.random(place.size) ** 2
        at = np.where(rng.random(place.size) < locality, near, popular)
        item = np.minimum((at * items).astype(np.int64), items - 1)
        words[row, item // 64] |= np.uint64(1) << (item % 64).astype(np.uint64)
    return words
