"""Filter plans judged from their tables alone: what each link carries, and whether anyone below lacks it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from narrowcast.model.plan import Plan

TOLERANCE = 1e-9


def filters_faults(plan: Plan) -> list[str]:
    """Every way in which the plan is unsound; an empty list is a sound plan. O(vertices)."""
    return list(_faults(plan))


def filters_cost(plan: Plan) -> dict[str, float]:
    """Traffic of the plan: over all links, cost × what the lowest tight ancestor lets through."""
    loads = _loads(plan)
    costs = _column(plan.tables["trees"], "link_cost", 1.0)
    return {"traffic": sum(costs[v] * load for v, load in loads.items())}


def _faults(plan: Plan) -> Iterator[str]:
    tree = plan.tables["trees"]
    nodes, parents = tree["node"].to_pylist(), tree["parent"].to_pylist()
    flow = dict(zip(nodes, tree["flow"].to_pylist(), strict=True))
    load = dict(zip(nodes, tree["load"].to_pylist(), strict=True))
    above = dict(zip(nodes, parents, strict=True))
    filters = plan.tables["filters"]["node"].to_pylist()
    if len(above) != len(nodes):
        yield "a node stands twice in the tree"
    if sum(parent is None for parent in parents) != 1:
        yield "the tree does not have exactly one root"
    interior = set(parents) - {None}
    for parent in sorted(interior - set(nodes)):
        yield f"parent {parent} is not a node"
    for node in filters:
        if node not in interior:
            yield f"the filter at {node} is not at an interior node"
    if len(set(filters)) != len(filters):
        yield "a filter stands twice"
    if interior - set(nodes) or _has_cycle(above):
        yield "the parents do not form a tree"
        return
    for node, parent in above.items():
        if parent is not None and flow[node] > flow[parent] * (1 + TOLERANCE):
            yield f"node {node} wants more than its parent {parent}: the flows are no unions"
    for node, carried in _loads(plan).items():
        if abs(carried - load[node]) > TOLERANCE * max(1.0, abs(carried)):
            yield f"the link into {node} carries {carried}, the plan says {load[node]}"
        if carried < flow[node] * (1 - TOLERANCE):
            yield f"the link into {node} carries less than what is wanted below it"


def _loads(plan: Plan) -> dict[Any, float]:
    """What the link into each node carries: f of the lowest ancestor whose parent filters (or the root)."""
    tree = plan.tables["trees"]
    above = dict(zip(tree["node"].to_pylist(), tree["parent"].to_pylist(), strict=True))
    flow = dict(zip(above, tree["flow"].to_pylist(), strict=True))
    filters = set(plan.tables["filters"]["node"].to_pylist())
    tight: dict[Any, Any] = {}
    for node in above:
        path = []
        while node not in tight and above[node] is not None and above[node] not in filters:
            path.append(node)
            node = above[node]
        root = tight.setdefault(node, node)
        for passed in path:
            tight[passed] = root
    return {node: flow[tight[node]] for node, parent in above.items() if parent is not None}


def _column(table: Any, name: str, default: float) -> dict[Any, float]:
    nodes = table["node"].to_pylist()
    values = table[name].to_pylist() if name in table.column_names else [default] * len(nodes)
    return dict(zip(nodes, values, strict=True))


def _has_cycle(above: dict[Any, Any]) -> bool:
    reaches_root = {None}
    for start in above:
        path, node = [], start
        while node not in reaches_root:
            path.append(node)
            if len(path) > len(above):
                return True
            node = above[node]
        reaches_root.update(path)
    return False
