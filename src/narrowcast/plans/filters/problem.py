"""What every algorithm of this room checks first, and the one form of objective they share.

Traffic, delay and both together are Σ weight(v) · f(A(v)) over the links plus Σ price(v) over the
filters; only the weights and prices differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from narrowcast.errors import InputError
from narrowcast.model import Tree
from narrowcast.plans.filters.kernels.core import Core, core_of
from narrowcast.plans.filters.kernels.cost import below, first_rise
from narrowcast.plans.filters.kernels.walk import preorder

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

# Flows kept up to date by adding and taking away sizes may be off by rounding.
SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class WeightedObjective:
    """Per vertex: the cost of one unit of flow on the link into it, and of a filter at it."""

    weight: Floats
    price: Floats


def traffic_objective(tree: Tree) -> WeightedObjective:
    return WeightedObjective(np.array(tree.link_cost), np.zeros(tree.n))


def delay_objective(tree: Tree, filter_delay: float, link_delay: float) -> WeightedObjective:
    users = below(tree.order, tree.parents, tree.users)
    return WeightedObjective(amount("link_delay", link_delay) * users, amount("filter_delay", filter_delay) * users)


def amount(name: str, value: float) -> float:
    """One finite number, not negative."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise InputError(f"{name} must be a number, got {type(value).__name__}", name=name, got=value)
    if not np.isfinite(value) or value < 0:
        raise InputError(f"{name} must be finite and zero or more, got {value}", name=name, got=value)
    return float(value)


def count(name: str, value: int, least: int = 0) -> int:
    """A whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InputError(f"{name} must be a whole number, got {type(value).__name__}", name=name, got=value)
    if value < least:
        raise InputError(f"{name} must be at least {least}, got {value}", name=name, got=int(value))
    return int(value)


def flow_array(tree: Tree, flow: ArrayLike) -> Floats:
    """f(v) per vertex: finite, not negative, and never more than the parent's."""
    try:
        array = np.asarray(flow, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"flow must be numbers: {error}", name="flow") from None
    if array.shape != (tree.n,):
        raise InputError(f"flow must have shape ({tree.n},), got {array.shape}", name="flow", got=array.shape)
    bad = ~np.isfinite(array) | (array < 0)
    if bad.any():
        v = int(np.argmax(bad))
        raise InputError(
            f"the flow of {named(tree, v)} must be finite and zero or more, got {array[v]}",
            name="flow",
            got=float(array[v]),
        )
    v = first_rise(tree.parents, array, SLACK)
    if v >= 0:
        u = int(tree.parents[v])
        raise InputError(
            f"flow of {named(tree, v)} must be at most {array[u]:g}, as its parent {named(tree, u)}, got {array[v]:g}",
            name="flow",
            got=float(array[v]),
            hint="f(v) is the size of the union of what the leaves below v want",
        )
    return np.array(array)  # a copy: ours to keep, and one type for the compiled loops


def filter_mask(tree: Tree, filters: ArrayLike) -> Bools:
    """A mask from vertex indices or from a mask; only able vertices may hold a filter."""
    array = np.asarray(filters)
    if array.dtype.kind == "b":
        if array.shape != (tree.n,):
            raise InputError(
                f"filters must be a mask of shape ({tree.n},), got {array.shape}", name="filters", got=array.shape
            )
        mask: Bools = array.astype(np.bool_)
    else:
        mask = np.zeros(tree.n, np.bool_)
        mask[_vertices(tree, array)] = True
    wrong = mask & ~tree.can_filter
    if wrong.any():
        v = int(np.argmax(wrong))
        why = "is a leaf" if tree.is_leaf[v] else "is not able to host one (can_filter)"
        raise InputError(f"no filter can be at {named(tree, v)}: it {why}", name="filters", got=v)
    return mask


def _vertices(tree: Tree, array: NDArray[np.generic]) -> Ints:
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(
            f"filters must be a 1-d array of vertex indices or a mask, got {array.ndim}-d {array.dtype}",
            name="filters",
            got=str(array.dtype),
        )
    vertices: Ints = array.astype(np.int64)
    outside = (vertices < 0) | (vertices >= tree.n)
    if outside.any():
        at = int(np.argmax(outside))
        raise InputError(
            f"filters[{at}] must be a vertex from 0 to {tree.n - 1}, got {vertices[at]}",
            name="filters",
            got=int(vertices[at]),
        )
    return vertices


def named(tree: Tree, v: int) -> str:
    """How a message calls a vertex."""
    return f"vertex {v}" if tree.names is None else f"vertex {v} ({tree.names[v]})"


@dataclass(frozen=True, slots=True)
class Walk:
    """A tree relabelled in preorder, so that a vertex and its parent are near in memory."""

    order: Ints  # 0, 1, 2, …
    vertex: Ints  # place → vertex
    place: Ints  # vertex → place
    parent: Ints
    size: Ints


_WALKS: WeakKeyDictionary[Tree, Walk] = WeakKeyDictionary()


def walk_of(tree: Tree) -> Walk:
    """The walk of a tree, made once. O(n)."""
    walk = _WALKS.get(tree)
    if walk is None:
        vertex, up, size = preorder(tree.order, tree.parents)
        order = np.arange(tree.n)
        place = np.empty_like(vertex)
        place[vertex] = order
        walk = _WALKS[tree] = Walk(order, vertex, place, up, size)
    return walk


@dataclass(frozen=True, slots=True)
class Walked:
    """The part of the tree that matters for placing, in walk order, and the way back."""

    core: Core
    price: Floats
    vertex: Ints  # core place → vertex of the tree

    def filters(self, chosen: Bools) -> Ints:
        """The chosen vertices of the tree, ascending."""
        return np.sort(self.vertex[chosen])


def walked(tree: Tree, flow: Floats, objective: WeightedObjective) -> Walked:
    """Relabel in walk order and cut off what can host no filter. O(n)."""
    walk = walk_of(tree)
    core = core_of(walk.parent, flow[walk.vertex], objective.weight[walk.vertex], tree.can_filter[walk.vertex])
    kept = walk.vertex[core.vertex]
    return Walked(core, objective.price[kept], kept)
