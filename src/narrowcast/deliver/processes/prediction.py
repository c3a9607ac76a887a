"""What a plan says each receiver will see, as shares of all traffic, to be shown beside what is measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Multicast
from narrowcast.model.interest_tables import names_of
from narrowcast.model.plan import Plan
from narrowcast.plans.kinds import kind_of
from narrowcast.profiles.parsed import parsed
from narrowcast.profiles.possible import possible


def predicted(plan: Plan | None, routing: Routing) -> dict[str, Any]:
    """Shares by group, and for each edge: what its groups keep from it, its sessions, its flows, and what is useful.

    `group`, `session`, `flow` and `useful` add up to 1 for an edge served by multicast alone. A plan that knows what
    reaches gateways says the same of each of them. O(flows · subscriptions).
    """
    if plan is None:
        return {"groups": {}, "edges": {}, "gateways": {}}
    stage, interest = kind_of(plan.kind).route, getattr(plan.demand, "interest", None)
    gateways = stage.gateway_shares(plan) if hasattr(stage, "gateway_shares") else {}
    if interest is None or not routing.flows:
        bounds = stage.gateway_bounds(plan) if hasattr(stage, "gateway_bounds") else {}
        edges = {edge: {"bound_ms": bounds[at]} for edge, at in sorted(routing.gateways.items()) if at in bounds}
        return {"groups": {}, "edges": edges, "gateways": gateways}
    names = names_of(interest.flow_names, range(interest.n_flows)).to_pylist()
    rates = dict(zip(names, interest.rates.tolist(), strict=True))
    total = sum(rates.get(flow, 0.0) for flow, _ in routing.flows) or 1.0
    group_of = {c: a.group for c, a in routing.addresses.items() if isinstance(a, Multicast)}
    groups: dict[int, float] = {}
    for flow, channels in routing.flows:
        for group in {group_of[c] for c in channels if c in group_of}:
            groups[group] = groups.get(group, 0.0) + rates.get(flow, 0.0) / total
    edges = {edge: _edge(edge, routing, rates, group_of, total) for edge in sorted(set(routing.edges.values()))}
    return {"groups": {str(g): share for g, share in sorted(groups.items())}, "edges": edges, "gateways": gateways}


def _edge(
    edge: str, routing: Routing, rates: Mapping[str, float], group_of: Mapping[int, int], total: float
) -> dict[str, float]:
    mine = [name for name, at in routing.edges.items() if at == edge and name in routing.taken]
    channels = {c for name in mine for c in routing.taken[name]}
    joined = {group_of[c] for c in channels if c in group_of}
    wishes = [parsed(routing.profiles[name]).expression for name in mine]
    shares = {"group": 0.0, "session": 0.0, "flow": 0.0, "useful": 0.0}
    for flow, ways in routing.flows:
        share = rates.get(flow, 0.0) / total
        if any(possible(wish, flow, routing.key) for wish in wishes):
            shares["useful"] += share
        elif channels.intersection(ways):
            shares["flow"] += share
        elif joined.intersection(group_of[c] for c in ways if c in group_of):
            shares["session"] += share
        else:
            shares["group"] += share
    return shares
