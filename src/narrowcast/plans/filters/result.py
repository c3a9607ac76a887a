"""A filter placement as the tables of a plan folder, with names in place of indices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from narrowcast.model import Tree
from narrowcast.model.plan import Plan
from narrowcast.plans.filters.cost import loads

Ints = NDArray[np.int64]


def as_plan(
    tree: Tree,
    flow: ArrayLike,
    filters: ArrayLike,
    *,
    cost: Mapping[str, float],
    parameters: Mapping[str, Any],
    baselines: Mapping[str, float] | None = None,
    inputs: Mapping[str, str] | None = None,
    lower_bound: float | None = None,
    gap: float | None = None,
) -> Plan:
    """The placement in the form that is written and checked: the tree with its loads, and the filters.

    >>> import narrowcast as nc
    >>> tree = nc.Tree([-1, 0, 0], names=["w", "a", "b"])
    >>> plan = as_plan(tree, [2, 1, 1], [0], cost={"traffic": 2.0}, parameters={"k": 1})
    >>> plan.tables["filters"]["node"].to_pylist(), plan.tables["trees"]["load"].to_pylist()
    (['w'], [None, 1.0, 1.0])
    """
    import pyarrow as pa

    on_link = loads(tree, flow, filters)
    is_root = tree.parents < 0
    trees = pa.table(
        {
            "node": _names(tree, np.arange(tree.n)),
            "parent": pa.array(_names(tree, np.maximum(tree.parents, 0)), pa.string(), mask=is_root),
            "flow": np.asarray(flow, np.float64),
            "load": pa.array(on_link, mask=is_root),
            "link_cost": tree.link_cost,
            "can_filter": tree.can_filter,
            "users": tree.users,
        }
    )
    chosen = np.flatnonzero(_as_mask(tree, filters))
    return Plan(
        kind="filters",
        tables={"trees": trees, "filters": pa.table({"node": pa.array(_names(tree, chosen), pa.string())})},
        cost=cost,
        parameters=parameters,
        baselines=baselines or {},
        inputs=inputs or {},
        lower_bound=lower_bound,
        gap=gap,
    )


def _as_mask(tree: Tree, filters: ArrayLike) -> NDArray[np.bool_]:
    array = np.asarray(filters)
    return array if array.dtype.kind == "b" else np.isin(np.arange(tree.n), array)


def _names(tree: Tree, vertices: Ints) -> Any:
    if tree.names is None:
        return vertices.astype(np.str_)
    return np.array(tree.names, object)[vertices]
