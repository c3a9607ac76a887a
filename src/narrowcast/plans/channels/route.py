"""A channels plan as the network obeys it: sessions in groups by the flow of each message, and unicast pairs."""

from __future__ import annotations

from narrowcast.deliver.routing.routes import Subscribers, by_flows
from narrowcast.deliver.routing.routing import Routing
from narrowcast.errors import InputError
from narrowcast.model.interest_tables import names_of
from narrowcast.plans.channels.result import ChannelsPlan
from narrowcast.profiles import Profile
from narrowcast.profiles.sql.syntax import In


def route(plan: ChannelsPlan, subscribers: Subscribers, groups: int | None = None) -> Routing:
    """The routing for the subscriptions there are now; what the plan does not cover is served from the log."""
    if not plan.key:
        raise InputError(
            "the plan does not say which attributes make a flow", name="key", hint="name them: --key symbol"
        )
    interest = plan.interest
    names = names_of(interest.flow_names, range(interest.n_flows)).to_pylist()
    users = names_of(interest.user_names, range(interest.n_users)).to_pylist()
    sessions = {name: int(l) for name, l in zip(names, plan.session_of_flow.tolist(), strict=True) if l >= 0}
    used = sorted(set(sessions.values()))
    in_group = {l: int(plan.group_of_session[l]) for l in used}
    pairs = [(names[f], users[u]) for f, u in zip(*(a.tolist() for a in plan.unicast), strict=True)]
    return by_flows(plan.key, sessions, in_group, subscribers, unicast=pairs)


def profiles(plan: ChannelsPlan) -> dict[str, str]:
    """Profiles of the subscribers it was made for, as text: whole flows of one key attribute."""
    if len(plan.key) != 1:
        return {}
    interest = plan.interest
    flows = names_of(interest.flow_names, interest.flow_of_pair).to_pylist()
    users = names_of(interest.user_names, interest.users).to_pylist()
    wished: dict[str, list[str]] = {}
    for flow, name in zip(flows, users, strict=True):
        wished.setdefault(name, []).append(flow)
    return {n: Profile.from_expression(In(plan.key[0], tuple(sorted(all_)))).text for n, all_ in wished.items()}
