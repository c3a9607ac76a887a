"""Filter plans explained: what a filter at a node saves, and where it would be next best."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from narrowcast.errors import PlanError
from narrowcast.evaluate.explanation import Choice, Explanation, Unwanted, place_of, ranked, several, worst
from narrowcast.model.arrays import Bools, Floats
from narrowcast.model.plan import Tables
from narrowcast.model.quantity import quantity
from narrowcast.plans.filters.judge.carried import CarriedTree, carried, tree_faults


def explain_node(plan: Tables, name: str) -> Explanation:
    """What comes to a node and what is wanted below it, what a filter there is worth, and the next best places.

    Every choice is priced exactly, all nodes in one walk: O(vertices · filters).
    """
    faults = tree_faults(plan)
    if faults:
        raise PlanError(f"the plan cannot be explained: {faults[0]}")
    read = carried(plan)
    v = place_of("node", name, read.names)
    loads, below = read.loads(read.filters), _children(read, v)
    arrives = float(loads[v])
    cost = read.total(read.filters)
    here = bool(read.filters[v])
    facts = {
        "filter": here, "able to filter": bool(read.able[v]), "arrives": arrives, "wanted below": float(read.flow[v]),
        "children": len(below), "users below": float(read.below(read.users)[v]),
        "filters in the plan": int(read.filters.sum()), "budget": plan.parameters.get("k"),
    }  # fmt: skip
    unwanted = [Unwanted(read.names[c], float(loads[c] - read.flow[c]), "on the link into it") for c in below]
    choices = list(_choices(plan, read, v, cost))
    headline = _headline(read, v, arrives, choices, here)
    return Explanation(
        "filters", f"node {name}", headline, facts, read.objective, cost, worst(unwanted), ranked(choices)
    )


def _headline(read: CarriedTree, v: int, arrives: float, choices: list[Choice], here: bool) -> str:
    name, wanted = read.names[v], float(read.flow[v])
    start = f"{quantity(arrives)} arrives at {name}, {quantity(wanted)} of it is wanted below"
    if here:
        return f"{start}; the filter there saves {quantity(choices[0].change)} of {read.objective}"
    if not _children(read, v):
        return f"{start}; it is a leaf"
    if not read.able[v]:
        return f"{start}; it cannot host a filter"
    return f"{start}; a filter there would save {quantity(-choices[0].change)} of {read.objective}"


def _choices(plan: Tables, read: CarriedTree, v: int, cost: float) -> Iterator[Choice]:
    """For a filter: none here, or here no more but there. For none: one more here, or here instead of there."""
    gains = worth(read, read.filters)
    if read.filters[v]:
        without = cost + float(gains[v])
        yield Choice("no filter here", without, float(gains[v]))
        bare = read.filters.copy()
        bare[v] = False
        elsewhere = worth(read, bare)
        for u in np.flatnonzero(read.able & ~read.filters).tolist():
            after = without - float(elsewhere[u])
            yield Choice(f"at {read.names[u]} instead", after, after - cost)
        return
    if not read.able[v]:
        return
    k = plan.parameters.get("k")
    full = f"all {several(k, 'filter')} are placed" if k is not None and read.filters.sum() >= k else ""
    yield Choice("a filter here too", cost - float(gains[v]), -float(gains[v]), full)
    for u in np.flatnonzero(read.filters).tolist():
        bare = read.filters.copy()
        bare[u] = False
        after = cost + float(gains[u]) - float(worth(read, bare)[v])
        yield Choice(f"here instead of at {read.names[u]}", after, after - cost)


def worth(read: CarriedTree, filters: Bools) -> Floats:
    """What a filter at each vertex saves against none there, all other filters as they are. O(vertices).

    What arrives at v would go on below its children as far as the next filter; with a filter it is what
    each child wants. Its price is taken off.
    """
    loads = read.loads(filters)
    reach = np.where(read.parents >= 0, read.weight, 0.0)
    saved = -read.price.copy()
    for level in read.levels[:0:-1]:
        above = read.parents[level]
        # The reach of a level is complete here: whatever is below it came before.
        np.add.at(saved, above, (loads[above] - read.flow[level]) * reach[level])
        np.add.at(reach, above, np.where(filters[above], 0.0, reach[level]))
    return saved


def _children(read: CarriedTree, v: int) -> list[int]:
    found: list[int] = np.flatnonzero(read.parents == v).tolist()
    return found


def explained(plan: Tables) -> Mapping[str, Callable[[Tables, Any], Explanation]]:
    """What can be asked about."""
    return {"node": explain_node}
