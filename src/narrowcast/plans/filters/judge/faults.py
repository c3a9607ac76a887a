"""Filter plans judged from their tables alone: what each link carries, and whether anyone below lacks it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from narrowcast.errors import InputError
from narrowcast.evaluate.compare import TOLERANCE, same
from narrowcast.model.plan import Tables
from narrowcast.plans.filters.judge.carried import CarriedTree, carried, tree_faults


def filters_faults(plan: Tables) -> list[str]:
    """Every way in which the plan is unsound; an empty list is a sound plan. O(vertices)."""
    found = tree_faults(plan)
    return found or list(_faults(plan, carried(plan)))


def filters_cost(plan: Tables) -> dict[str, float]:
    """Traffic of the plan, over all links cost × what the lowest tight ancestor lets through; `total` is what was
    made small: traffic, delay, or both with a price per filter.
    """
    if tree_faults(plan):
        return {}
    read = carried(plan)
    return {"traffic": read.traffic(read.filters), "total": read.total(read.filters)}


def _faults(plan: Tables, read: CarriedTree) -> Iterator[str]:
    for v in np.flatnonzero(read.filters & ~read.able):
        yield f"the filter at {read.names[v]} is at a node that cannot host one"
    yield from _no_unions(read)
    yield from _misjudged_loads(read)
    k = plan.parameters.get("k")
    if k is not None and (not isinstance(k, int) or isinstance(k, bool) or k < 0):
        raise InputError(f"parameter k must be a whole number, zero or more, got {k!r}", name="k")
    if k is not None and int(read.filters.sum()) > k:
        yield f"it has {int(read.filters.sum())} filters, the budget is {k}"
    nowhere = np.zeros(len(read.names), np.bool_)
    for name, mask in (("no filter", nowhere), ("every vertex", read.able)):
        said, found = plan.baselines.get(name), read.total(mask)
        if name in plan.baselines and not same(said, found):
            yield f"with {name} the {read.objective} is {found}, the plan says {said}"


def _no_unions(read: CarriedTree) -> Iterator[str]:
    """What is wanted below a vertex is the union of what its children want: no less than one, no more than all."""
    below = np.flatnonzero(read.parents >= 0)
    above = read.parents[below]
    for v in below[read.flow[below] > read.flow[above] * (1 + TOLERANCE)]:
        parent = read.names[read.parents[v]]
        yield f"node {read.names[v]} wants more than its parent {parent}, whose flow is not the union of its children's"
    together = np.bincount(above, read.flow[below], minlength=read.flow.size)
    interior = np.isin(np.arange(read.flow.size), above)
    for v in np.flatnonzero(interior & (read.flow > together * (1 + TOLERANCE))):
        yield f"node {read.names[v]} wants more than its children together: its flow is not the union of its children's"


def _misjudged_loads(read: CarriedTree) -> Iterator[str]:
    found = read.loads(read.filters)
    for v in np.flatnonzero(read.parents >= 0):
        if not same(float(read.load[v]), float(found[v])):
            yield f"the link into {read.names[v]} carries {found[v]}, the plan says {read.load[v]}"
    # No false exclusion: where a filter works, what comes through is all that is wanted below.
    short = np.flatnonzero((read.parents >= 0) & (read.load < read.flow * (1 - TOLERANCE)))
    for v in short:
        yield f"the link into {read.names[v]} carries less than what is wanted below it"
    if not (np.isnan(read.load[read.root]) or read.load[read.root] == 0):
        yield f"the root {read.names[read.root]} has no link into it, the plan says it carries {read.load[read.root]}"
