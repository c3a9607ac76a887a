"""A filters plan as the network obeys it: one tree, and the brokers of it that filter."""

from __future__ import annotations

from narrowcast.deliver.routing.address import Overlay
from narrowcast.deliver.routing.routes import Subscribers, by_tree
from narrowcast.deliver.routing.routing import Routing
from narrowcast.plans.filters.result import FiltersPlan


def route(plan: FiltersPlan, subscribers: Subscribers, groups: int | None = None) -> Routing:
    """The tree and its filters. Subscriptions climb it by themselves, and it is an overlay, so neither they nor
    `groups` play a part."""
    names, parents = plan.node_names, plan.tree.parents.tolist()
    links = tuple((names[above], names[v]) for v, above in enumerate(parents) if above >= 0)
    return by_tree(Overlay(names[plan.tree.root], links), [names[v] for v in plan.filters.tolist()])


def gateway_shares(plan: FiltersPlan) -> dict[str, dict[str, float]]:
    """Of all that the source sends, what reaches each leaf: `useful` there, or dropped by its `profile`; the rest is
    kept away by filters (`group`)."""
    total = float(plan.flow[plan.tree.root]) or 1.0
    found = {}
    for v in plan.tree.is_leaf.nonzero()[0].tolist():
        useful, arrives = float(plan.flow[v]) / total, min(1.0, float(plan.loads[v]) / total)
        found[plan.node_names[v]] = {"useful": useful, "profile": max(0.0, arrives - useful), "group": 1 - arrives}
    return found


def profiles(plan: FiltersPlan) -> dict[str, str]:
    """None: the plan knows how much is wanted below each node, and not what."""
    return {}
