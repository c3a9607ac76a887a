"""A network plan as the system obeys it: trees between gateways, and in each site what its relay sends."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from narrowcast.deliver.routing.routes import Subscribers
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.routing.sites import SiteRoutes, by_sites
from narrowcast.deliver.transport import Overlay
from narrowcast.errors import InputError
from narrowcast.model.interest_tables import names_of
from narrowcast.plans.network.result import NetworkPlan
from narrowcast.plans.queries.service.messages import answers_name
from narrowcast.profiles import Profile
from narrowcast.profiles.sql.syntax import In


def route(plan: NetworkPlan, subscribers: Subscribers, groups: int | None = None) -> Routing:
    """The routing for the subscriptions there are now.

    A channel of the plan is a tree of links without a direction; here it is a tree for each site where something
    enters. Who is in no site that the plan knows, or in one whose relay is not alive, is served from the log.
    """
    if not plan.key:
        raise InputError(
            "the plan does not say which attributes make a flow", name="key", hint="name them: --key symbol"
        )
    d, made = plan.demand, plan.decisions
    flows = names_of(d.interest.flow_names, range(d.interest.n_flows)).to_pylist()
    trees: dict[tuple[int, int], Overlay] = {}
    backbone = {}
    for flow, channel, source in zip(flows, made.channel_of.tolist(), d.source.tolist(), strict=True):
        if (channel, source) not in trees:
            links = made.trees[channel].tolist() if channel >= 0 else []
            trees[channel, source] = _outward(plan, int(d.gateway[source]), links)
        backbone[flow] = trees[channel, source]
    return by_sites(plan.key, _sites(plan, flows), backbone, _everywhere(plan), subscribers, _names(plan, made.filters))


def _names(plan: NetworkPlan, brokers: Iterable[int]) -> list[str]:
    found: list[str] = names_of(plan.demand.topology.names, np.array(list(brokers), np.int64)).to_pylist()
    return found


def _outward(plan: NetworkPlan, root: int, links: list[int]) -> Overlay:
    """Links as a tree, away from its root."""
    around: dict[int, list[int]] = {}
    for u, v in plan.demand.topology.edges[links].tolist():
        around.setdefault(u, []).append(v)
        around.setdefault(v, []).append(u)
    found, seen, front = [], {root}, [root]
    while front:
        node = front.pop(0)
        below = sorted(set(around.get(node, ())) - seen)
        found += [(node, other) for other in below]
        seen.update(below)
        front += below
    name = dict(zip(sorted(seen), _names(plan, sorted(seen)), strict=True))
    return Overlay(name[root], tuple((name[u], name[v]) for u, v in found))


def _everywhere(plan: NetworkPlan) -> Overlay:
    """A tree from the first gateway to all of them, by the cheapest ways."""
    gateways = plan.demand.gateway.tolist()
    links = {link for other in gateways[1:] for link in plan.problem.path(gateways[0], other, False)}
    return _outward(plan, gateways[0], sorted(links))


def _sites(plan: NetworkPlan, flows: list[str]) -> list[SiteRoutes]:
    d, made = plan.demand, plan.decisions
    users = names_of(d.interest.user_names, range(d.interest.n_users)).to_pylist()
    flow_of, to = np.divmod(made.direct, d.n_sites)
    members: dict[int, list[str]] = {}
    for name, site in zip(users, d.site_of.tolist(), strict=True):
        members.setdefault(site, []).extend([name, answers_name(name)] if d.queries is not None else [name])
    found = []
    for site, its, gateway in zip(plan.problem.sites, made.sites, _names(plan, d.gateway), strict=True):
        sent = np.flatnonzero(its.session_of >= 0).tolist()
        alone = np.flatnonzero(its.alone)
        ways = zip(site.flows[site.flow[alone]].tolist(), site.users[site.user[alone]].tolist(), strict=True)
        found.append(
            SiteRoutes(
                gateway,
                {flows[site.flows[k]]: int(its.session_of[k]) for k in sent},
                dict(enumerate(its.group_of.tolist())),
                frozenset((flows[k], _called(plan, k, users[u])) for k, u in ways),
                frozenset(flows[k] for k in flow_of[to == site.index].tolist()),
                frozenset(members.get(site.index, ())),
            )
        )
    return found


def _called(plan: NetworkPlan, flow: int, subscriber: str) -> str:
    """The subscription by which somebody gets a flow: answers of queries have one of their own."""
    return answers_name(subscriber) if plan.answer_of(flow) >= 0 else subscriber


def profiles(plan: NetworkPlan) -> dict[str, str]:
    """Profiles of the subscribers it was made for, as text: whole flows of one key attribute."""
    if len(plan.key) != 1:
        return {}
    interest = plan.demand.interest
    flows = names_of(interest.flow_names, interest.flow_of_pair).to_pylist()
    users = names_of(interest.user_names, interest.users).to_pylist()
    wished: dict[str, list[str]] = {}
    for k, flow, name in zip(interest.flow_of_pair.tolist(), flows, users, strict=True):
        wished.setdefault(_called(plan, k, name), []).append(flow)
    return {n: Profile.from_expression(In(plan.key[0], tuple(sorted(all_)))).text for n, all_ in wished.items()}
