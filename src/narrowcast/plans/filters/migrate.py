"""From one filters plan to another: every link that a leaf needs, and the filters beside them."""

from __future__ import annotations

import numpy as np

from narrowcast.errors import PlanError
from narrowcast.evaluate.ways import Need, Ways
from narrowcast.model.plan import Tables
from narrowcast.plans.filters.judge.carried import CarriedTree, carried, tree_faults


def ways(plan: Tables) -> Ways:
    """The links from the root to each leaf. Filters only take away what nobody below wants, so no wish needs one."""
    faults = tree_faults(plan)
    if faults:
        raise PlanError(f"the plan is unsound: {faults[0]}")
    read = carried(plan)
    place, wishes, weight = {}, {}, {}
    for v in np.setdiff1d(np.arange(read.parents.size), read.parents).tolist():
        leaf, above = read.names[v], int(read.parents[v])
        content = f"all for {leaf}"
        place[content] = f"under {read.names[above]}" if above >= 0 else f"at {leaf}"
        wishes[leaf, content] = frozenset(_links(read, v))
        weight[content] = float(read.flow[v])
    filters = {read.names[v]: float(read.flow[v]) for v in np.flatnonzero(read.filters).tolist()}
    return Ways(place, wishes, filters, weight)


def _links(read: CarriedTree, v: int) -> list[Need]:
    """Every link between a vertex and the root."""
    found, above = [], int(read.parents[v])
    while above >= 0:
        found.append(Need("forward", read.names[above], f"to {read.names[v]}"))
        v, above = above, int(read.parents[above])
    return found


def renumbered(new: Tables, old: Tables) -> Tables:
    """Nodes have names: there is nothing to number."""
    return new
