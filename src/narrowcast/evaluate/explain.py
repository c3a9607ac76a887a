"""Explain any part of any plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from narrowcast.errors import UnsupportedError
from narrowcast.evaluate.explanation import Explanation
from narrowcast.model.plan import Plan
from narrowcast.plans.channels.explain.groups import CHANNELS
from narrowcast.plans.channels.explain.unicast import HYBRID
from narrowcast.plans.filters.explain import FILTERS
from narrowcast.plans.queries.explain import QUERIES
from narrowcast.plans.semantic.explain import SEMANTIC

# By kind, then by what is asked about.
EXPLAINED: dict[str, dict[str, Callable[[Plan, Any], Explanation]]] = {
    "channels": CHANNELS,
    "hybrid": HYBRID,
    "filters": FILTERS,
    "queries": QUERIES,
    "semantic": SEMANTIC,
}


def explain(plan: Plan, what: str, name: str | int) -> Explanation:
    """Where something goes, who receives it unwanted, what the next best choice was and what it would cost.

    `what` is flow, subscriber, session, group, channel, node or query, as the kind of plan has them. Every
    choice is the cost of the whole plan recomputed from its definition with that one thing changed.

    >>> import narrowcast as nc
    >>> from narrowcast.plans.channels.result import as_plan
    >>> interest = nc.Interest.from_pairs([0, 0, 1], [0, 1, 1], [5.0, 2.0], flow_names=["IBM", "MSFT"])
    >>> plan = as_plan(nc.channels.plan(interest, groups=1, sessions=2, method="gf"))
    >>> found = explain(plan, "flow", "MSFT")
    >>> found.headline
    'MSFT goes in session 1 of group 0: 1 subscriber of the 2 in the group want it'
    >>> found.next_best.what, found.next_best.change
    ('in session 0 of group 0', 2.0)
    """
    known = EXPLAINED.get(plan.kind, {})
    if what not in known:
        raise UnsupportedError(f"a {plan.kind} plan has no {what} to explain", works=tuple(known))
    return known[what](plan, name)
