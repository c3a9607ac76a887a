"""A network plan as one machine obeys it: the sessions of every site in multicast groups of their own.

The sites' gateways would relay from the backbone; until site relays run, sources send to every site's groups.
"""

from __future__ import annotations

import numpy as np

from narrowcast.deliver.routing.routes import Subscribers, by_flows
from narrowcast.deliver.routing.routing import Routing
from narrowcast.errors import InputError
from narrowcast.model.interest_tables import names_of
from narrowcast.plans.network.result import NetworkPlan
from narrowcast.profiles import Profile
from narrowcast.profiles.sql.syntax import In


def route(plan: NetworkPlan, subscribers: Subscribers, groups: int | None = None) -> Routing:
    """The routing for the subscriptions there are now; whoever the plan does not know is served from the log."""
    if not plan.key:
        raise InputError(
            "the plan does not say which attributes make a flow", name="key", hint="name them: --key symbol"
        )
    d, made = plan.demand, plan.decisions
    flows = names_of(d.interest.flow_names, range(d.interest.n_flows)).to_pylist()
    users = names_of(d.interest.user_names, range(d.interest.n_users)).to_pylist()
    site_of = dict(zip(users, d.site_of.tolist(), strict=True))
    parts: list[Routing] = []
    first_channel = first_group = 0
    for site, its in zip(plan.problem.sites, made.sites, strict=True):
        here = {n: t for n, t in subscribers.profiles.items() if site_of.get(n) == site.index}
        edges = {n: subscribers.edges[n] for n in here if n in subscribers.edges}
        sent = np.flatnonzero(its.session_of >= 0).tolist()
        sessions = {flows[site.flows[k]]: first_channel + int(its.session_of[k]) for k in sent}
        in_group = {first_channel + l: first_group + int(g) for l, g in enumerate(its.group_of.tolist())}
        if not in_group:  # keeps the numbers of this site's other channels apart from the next one's
            in_group = {first_channel: first_group}
        alone = [
            (flows[site.flows[site.flow[at]]], users[site.users[site.user[at]]]) for at in np.flatnonzero(its.alone)
        ]
        part = by_flows(plan.key, sessions, in_group, Subscribers(here, edges, subscribers.gateways), unicast=alone)
        parts.append(part)
        first_channel = max(part.addresses) + 1
        first_group = max(in_group.values()) + 2
    return _together(plan, subscribers, parts)


def _together(plan: NetworkPlan, subscribers: Subscribers, parts: list[Routing]) -> Routing:
    """One routing of all sites'. A flow that a site does not carry goes where it puts what it does not know."""
    channels: dict[str, list[int]] = {}
    for part in parts:
        for flow, found in part.flows:
            channels.setdefault(flow, []).extend(found)
    for part in parts:
        known = {flow for flow, _ in part.flows}
        if any(set(part.rest) & set(taken) for taken in part.taken.values()):
            for flow in channels:
                if flow not in known:
                    channels[flow].extend(part.rest)
    addresses = {number: address for part in parts for number, address in part.addresses.items()}
    taken = {name: found for part in parts for name, found in part.taken.items()}
    rest = tuple(number for part in parts for number in part.rest)
    flows = tuple((flow, tuple(found)) for flow, found in sorted(channels.items()))
    return subscribers.routing(addresses, taken, key=tuple(plan.key), flows=flows, rest=rest)


def profiles(plan: NetworkPlan) -> dict[str, str]:
    """Profiles of the subscribers it was made for, as text: whole flows of one key attribute."""
    if len(plan.key) != 1:
        return {}
    interest = plan.demand.interest
    flows = names_of(interest.flow_names, interest.flow_of_pair).to_pylist()
    users = names_of(interest.user_names, interest.users).to_pylist()
    wished: dict[str, list[str]] = {}
    for flow, name in zip(flows, users, strict=True):
        wished.setdefault(name, []).append(flow)
    return {n: Profile.from_expression(In(plan.key[0], tuple(sorted(all_)))).text for n, all_ in wished.items()}
