"""From who wants what to f(v), the flow every vertex of the tree needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from narrowcast.errors import InputError
from narrowcast.model import Tree
from narrowcast.model.intake import numbers_in, read_tree, table_in, texts_in
from narrowcast.model.quarantine import Quarantine, Sieve
from narrowcast.model.tables import read_table
from narrowcast.plans.filters.kernels.demand import flow_of
from narrowcast.plans.filters.problem import flow_array, named

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def flow_from_demand(tree: Tree, leaf: ArrayLike, item: ArrayLike, size: ArrayLike | None = None) -> Floats:
    """f(v) per vertex: the total size of the union of the items wanted by the leaves below v.

    `leaf` and `item` are parallel: this leaf wants this item (a pair given twice counts once).
    `size[item]` weighs the items, 1 each by default. Exact. Each item climbs from its leaves until
    it meets itself: O(pairs log pairs + vertices on the items' paths).

    >>> import narrowcast as nc
    >>> tree = nc.Tree([-1, 0, 0, 1, 1])
    >>> nc.filters.flow_from_demand(tree, leaf=[3, 4, 4, 2], item=[0, 0, 1, 2]).tolist()
    [3.0, 2.0, 1.0, 1.0, 2.0]
    """
    leaves, items, sizes = demand_arrays(tree, leaf, item, size)
    by_item = np.argsort(items, kind="stable")
    return flow_of(tree.parents, leaves[by_item], items[by_item], sizes)


def is_tree_demand(path: str | Path) -> bool:
    """Whether this is what `measure` found to be wanted below each node: its folder, or the table itself."""
    if Path(path).is_dir() and any(Path(path).glob("tree_demand.*")):
        return True
    found = read_table(path, name="demand").column_names
    return "item" not in found and {"node", "items", "size"} <= set(found)


def measured_flow(path: str | Path, tree: Tree | None = None) -> tuple[Tree, Floats]:
    """The tree and the flow of each of its vertices in a table `tree_demand`, or in the folder that has one.

    Parameters
    ----------
    tree : the tree to plan for, if the table's own is not to be used; it must have the same nodes

    Raises
    ------
    InputError : no such table, a node of the tree that it lacks, a flow that cannot be
    """
    source = table_in(Path(path), "tree_demand") if Path(path).is_dir() else Path(path)
    shape = read_tree(source) if tree is None else tree
    table = read_table(source, name="tree_demand", columns=("node", "size"))
    sieve = Sieve(source, table.num_rows, Quarantine(strict=True))
    size = numbers_in(table["size"], sieve, "size")
    wanted = dict(zip(texts_in(table["node"]).to_pylist(), size.tolist(), strict=True))
    names: Any = shape.names or ()
    for node in names:
        if node not in wanted:
            raise InputError(
                f"{source}: node {node} of the tree is not in the tree_demand table",
                name="demand",
                got=node,
                hint="measure again with this tree",
            )
    return shape, flow_array(shape, np.array([wanted[node] for node in names]))


def demand_arrays(
    tree: Tree, leaf: ArrayLike, item: ArrayLike, size: ArrayLike | None = None
) -> tuple[Ints, Ints, Floats]:
    """The pairs and sizes, checked."""
    leaves, items = _whole("leaf", leaf), _whole("item", item)
    if leaves.size != items.size:
        raise InputError(f"leaf and item must have the same length, got {leaves.size} and {items.size}", name="item")
    outside = leaves >= tree.n
    if outside.any():
        at = int(np.argmax(outside))
        raise InputError(f"leaf[{at}] must be a vertex below {tree.n}, got {leaves[at]}", name="leaf", got=at)
    interior = ~tree.is_leaf[leaves]
    if interior.any():
        at = int(np.argmax(interior))
        raise InputError(
            f"leaf[{at}] must be a leaf, got {named(tree, int(leaves[at]))}",
            name="leaf",
            got=int(leaves[at]),
            hint="attach subscribers of an interior vertex at a leaf of their own",
        )
    return leaves, items, _sizes(size, int(items.max(initial=-1)) + 1)


def _sizes(size: ArrayLike | None, n_items: int) -> Floats:
    if size is None:
        return np.ones(n_items)
    sizes = np.asarray(size, dtype=np.float64)
    if sizes.ndim != 1 or sizes.size < n_items:
        raise InputError(f"size must have {n_items} entries, got shape {sizes.shape}", name="size", got=sizes.shape)
    bad = ~np.isfinite(sizes) | (sizes < 0)
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(f"size[{at}] must be finite and zero or more, got {sizes[at]}", name="size", got=at)
    return sizes


def _whole(name: str, values: ArrayLike) -> Ints:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(
            f"{name} must be a 1-d array of indices, got {array.ndim}-d {array.dtype}", name=name, got=array.shape
        )
    if (array < 0).any():
        raise InputError(f"{name}[{int(np.argmax(array < 0))}] must be zero or more, got {array.min()}", name=name)
    return array.astype(np.int64)
