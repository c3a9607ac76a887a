"""Small random trees with demand, and the study's workloads (content-based multicast, §7)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import narrowcast as nc


class Problem(NamedTuple):
    tree: nc.Tree
    flow: NDArray[np.float64]
    wanted: list[set[int]]  # items per vertex, empty for interior ones
    size: NDArray[np.float64]


def random_parents(rng: np.random.Generator, n: int, reach: int) -> list[int]:
    """A random tree of any shape: small reach gives long thin ones, large reach bushy ones."""
    label = rng.permutation(n)
    parents = [-1] * n
    for i in range(1, n):
        parents[label[i]] = int(label[rng.integers(max(0, i - reach), i)])
    return parents


def random_problem(seed: int, most: int = 11, whole: bool = True) -> Problem:
    """Any arity, link costs (zero too), restricted hosts, several or no users per leaf, weighted items."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, most + 1))
    parents = random_parents(rng, n, int(rng.choice([1, 2, 3, n])))
    cost = rng.integers(0, 4, n) if whole else rng.random(n)
    able = rng.random(n) < rng.choice([0.3, 0.7, 1.0])
    tree = nc.Tree(parents, link_cost=cost, can_filter=able, users=rng.integers(0, 3, n))
    n_items = int(rng.integers(1, 9))
    size = rng.integers(0, 5, n_items).astype(float) if whole else rng.random(n_items)
    wants = rng.random((n, n_items)) < rng.choice([0.1, 0.3, 0.6])
    wants[~tree.is_leaf] = False
    leaf, item = np.nonzero(wants)
    flow = nc.filters.flow_from_demand(tree, leaf, item, size)
    return Problem(tree, flow, [set(np.flatnonzero(row).tolist()) for row in wants], size)


def complete_binary(levels: int) -> nc.Tree:
    return nc.Tree((np.arange(2**levels - 1) + 1) // 2 - 1)


def recursive_tree(n: int, seed: int) -> nc.Tree:
    """Each vertex hangs below a random earlier one: depth about e·ln n."""
    rng = np.random.default_rng(seed)
    parents = (rng.random(n) * np.arange(n)).astype(np.int64)
    parents[0] = -1
    return nc.Tree(parents)


def flow_of_wants(tree: nc.Tree, wants: NDArray[np.bool_]) -> NDArray[np.float64]:
    """f from a matrix: row i says what the i-th leaf wants."""
    user, item = np.nonzero(wants)
    return nc.filters.flow_from_demand(tree, tree.leaves[user], item)


def some_flow(tree: nc.Tree, seed: int, items: int = 500, each: int = 3) -> NDArray[np.float64]:
    """Every leaf wants a few items, the popular ones more often."""
    rng = np.random.default_rng(seed)
    leaf = np.repeat(tree.leaves, each)
    return nc.filters.flow_from_demand(tree, leaf, (items * rng.random(leaf.size) ** 2).astype(np.int64))
