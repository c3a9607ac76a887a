"""A semantic plan as the network obeys it: a tree per channel, chosen by content or by where a message is wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from narrowcast.deliver.routing.audience import Audiences
from narrowcast.deliver.routing.routes import Subscribers, by_audience, by_content
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Overlay
from narrowcast.model.arrays import Floats
from narrowcast.plans.semantic.channel import Channel
from narrowcast.plans.semantic.live.plan import LiveChannels
from narrowcast.plans.semantic.result import SemanticPlan
from narrowcast.plans.semantic.routers.audience import AudienceRouter
from narrowcast.profiles.parsed import parsed


def route(plan: SemanticPlan, subscribers: Subscribers, groups: int | None = None) -> Routing:
    """The routing for the subscriptions there are now.

    Whoever the plan has no channel for joins one at its gateway: the low-cost or delay-bounded join of the paper, or a
    new channel. Only who is at no broker of the overlay is served from the log.
    """
    found = _routed(plan, subscribers)
    place = {name: i for i, name in enumerate(plan.broker_names)}
    distance = plan.system.paths.distance[plan.channels[0].rendezvous] if plan.channels else None
    new: dict[tuple[str, int], None] = {}
    for name, text in sorted(subscribers.profiles.items()):
        at = place.get(subscribers.gateways.get(subscribers.edges.get(name, ""), ""), -1)
        if name not in found.taken and at >= 0 and (distance is None or np.isfinite(distance[at])):
            new[text, at] = None
    if not new:
        return found
    live = LiveChannels(plan)
    for text, at in new:
        live.subscribe(parsed(text), at)
    return _routed(live.plan, subscribers)


def _routed(plan: SemanticPlan, subscribers: Subscribers) -> Routing:
    trees = {channel.number: _tree(channel, plan.broker_names) for channel in plan.channels}
    if isinstance(plan.router, AudienceRouter):
        return by_audience(_audiences(plan, plan.router), trees, subscribers)
    contents = {channel.number: channel.expression for channel in plan.channels}
    return by_content(contents, trees, subscribers)


def _tree(channel: Channel, names: Sequence[str]) -> Overlay:
    return Overlay(names[channel.rendezvous], tuple((names[u], names[v]) for u, v in channel.edges.tolist()))


def gateway_shares(plan: SemanticPlan) -> dict[str, dict[str, float]]:
    """Of the window's messages, what reaches each gateway: `useful` there, or dropped by its `profile`; the rest is
    kept away by the choice of channels (`group`)."""
    seen, names = plan.sent.seen, plan.broker_names
    total = float(seen.weight.sum()) or 1.0
    copies = np.bincount(plan.sent.cols, seen.weight[plan.sent.rows], minlength=len(plan.channels)) / total
    arrives = {names[g]: 0.0 for g in plan.system.gateways.tolist()}
    for channel, share in zip(plan.channels, copies, strict=True):
        for g in channel.gateways:
            arrives[names[g]] = arrives.get(names[g], 0.0) + float(share)
    useful = seen.weight @ seen.audience / total
    found = {}
    for g, share in zip(plan.system.gateways.tolist(), useful.tolist(), strict=True):
        got = min(1.0, arrives[names[g]])
        found[names[g]] = {"useful": share, "profile": max(0.0, got - share), "group": 1 - got}
    return found


def gateway_bounds(plan: SemanticPlan) -> dict[str, float]:
    """The strictest latency bound at each gateway that has one, in the unit of the overlay's delays (ms)."""
    found: dict[str, float] = {}
    given = plan.demand.bounds if plan.demand.bounds is not None else plan.parameters.get("latency_bound") or np.inf
    clients = np.asarray(plan.demand.clients)[:, 1].tolist()
    for gateway, bound in zip(clients, np.broadcast_to(given, len(clients)).tolist(), strict=True):
        if np.isfinite(bound):
            name = plan.broker_names[gateway]
            found[name] = min(bound, found.get(name, bound))
    return found


def profiles(plan: SemanticPlan) -> Mapping[str, str]:
    """Empty: who holds a profile at which edge is for the running system to say; the plan knows gateways only."""
    return {}


def _audiences(plan: SemanticPlan, rule: AudienceRouter) -> Audiences:
    """Channels and blocks with what a message costs on each: the way from its source to the root, and the tree."""
    names = plan.broker_names
    price = _prices(plan)
    made, blocks = [], []
    for c, channel in enumerate(plan.channels):
        reach = tuple(names[g] for g in channel.gateways)
        if c >= len(rule.core):
            blocks.append((channel.number, price[c], reach))
            continue
        inside = set(plan.system.gateways[rule.core[c]].tolist())
        core = tuple(names[g] for g in channel.gateways if g in inside)
        made.append((channel.number, price[c], core, reach))
    return Audiences(tuple(made), tuple(blocks))


def _prices(plan: SemanticPlan) -> list[float]:
    """Of several sources the mean way counts, each by what it sent that anybody may want.

    Prices choose between ways that all reach the audience, so what they leave out costs bandwidth at worst.
    """
    seen = plan.sent.seen
    tree = np.array([channel.link_cost for channel in plan.channels], np.float64)
    roots = np.array([channel.rendezvous for channel in plan.channels], np.int64)
    weight: Floats = seen.weight * (np.diff(seen.matched.indptr) > 0)
    if not seen.sources.size or not weight.sum():
        return [float(price) for price in tree]
    by_source = np.bincount(seen.source, weights=weight, minlength=seen.sources.size)
    way = by_source @ plan.system.paths.distance[np.ix_(seen.sources, roots)] / by_source.sum()
    return [float(price) for price in way + tree]
