"""Plans whose channels carry content, as groups and sessions: semantic channels and merged queries.

A channel is a session, told by what it carries; whoever sends looks at the message to know its channels. Those who
take them are the gateways of a semantic plan, and the clients of merged queries.
"""

from __future__ import annotations

from collections.abc import Mapping

from narrowcast.deliver.routing.address import Multicast
from narrowcast.deliver.routing.routes import Subscribers
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.routing.shared_groups import in_groups
from narrowcast.exports.layout import GroupLayout, layout_of, no_notion
from narrowcast.exports.options import Options
from narrowcast.exports.text import table
from narrowcast.model.plan import Plan
from narrowcast.plans.channels.result import ChannelsPlan
from narrowcast.plans.queries.result import QueriesPlan
from narrowcast.plans.queries.route import profiles as query_profiles
from narrowcast.plans.queries.route import route as query_route
from narrowcast.plans.semantic.result import SemanticPlan
from narrowcast.profiles import Profile


def any_layout(plan: Plan, options: Options, target: str) -> tuple[GroupLayout, dict[str, str]]:
    """A plan's groups, sessions and who takes them; and what else an application must look up, by file name."""
    if isinstance(plan, ChannelsPlan):
        return layout_of(plan), {}
    if isinstance(plan, SemanticPlan):
        return _semantic(plan, options)
    if isinstance(plan, QueriesPlan):
        return _queries(plan, options)
    raise no_notion(f"{target} has no notion of a {plan.kind} plan", plan.kind)


def _semantic(plan: SemanticPlan, options: Options) -> tuple[GroupLayout, dict[str, str]]:
    names = plan.broker_names
    contents = {channel.number: channel.expression for channel in plan.channels}
    takes: dict[str, tuple[int, ...]] = {}
    for channel in plan.channels:
        for gateway in channel.gateways:
            takes[names[gateway]] = (*takes.get(names[gateway], ()), channel.number)
    texts = [str(profile) for profile in plan.system.profiles]
    who = plan.demand.names or [f"client {i}" for i in range(len(plan.system.clients))]
    clients = ((name, names[g], texts[p]) for name, (p, g) in zip(who, plan.system.clients.tolist(), strict=True))
    layout = _grouped(contents, takes, options)
    return layout, _told(contents) | {"clients.csv": table(("subscriber", "gateway", "profile"), clients)}


def _queries(plan: QueriesPlan, options: Options) -> tuple[GroupLayout, dict[str, str]]:
    """A query takes the channels that it takes in the running system, and finds its own in them by its profile."""
    asked = query_profiles(plan)
    routing = query_route(plan, Subscribers(asked, dict.fromkeys(asked, "")), None)
    takes = dict(routing.taken)
    used = {c for taken in takes.values() for c in taken}  # others are for the answers that `serve` sends
    contents = {c: Profile.parse(text, limits=None) for c, text in routing.content.items() if c in used}
    home = None
    if plan.physical is not None:
        home = {c: a.group for c, a in routing.addresses.items() if c in contents and isinstance(a, Multicast)}
    extract = table(("subscriber", "profile"), asked.items())
    return _grouped(contents, takes, options, home), _told(contents) | {"extractors.csv": extract}


def _grouped(
    contents: Mapping[int, Profile],
    takes: Mapping[str, tuple[int, ...]],
    options: Options,
    home: Mapping[int, int] | None = None,
) -> GroupLayout:
    """Channels in as many groups as a socket may join; those that the same take share one."""
    if home is None:
        apart = Routing({c: Multicast(c, c) for c in contents}, dict(takes), edges={name: name for name in takes})
        found = in_groups(apart, max(1, options.memberships - 1)).addresses
        home = {c: a.group for c, a in found.items() if isinstance(a, Multicast)}
    number = {group: i for i, group in enumerate(sorted(set(home.values())))}
    group_of = {c: number[home[c]] for c in sorted(contents)}
    joins = {name: tuple(sorted({group_of[c] for c in taken})) for name, taken in takes.items()}
    return GroupLayout(
        {f"channel {c}": c for c in sorted(contents)},
        group_of,
        joins,
        {name: tuple(sorted(taken)) for name, taken in takes.items()},
        (),
        max(len(number), 1),
    )


def _told(contents: Mapping[int, Profile]) -> dict[str, str]:
    rows = ((f"channel {c}", c, profile.text) for c, profile in sorted(contents.items()))
    return {"contents.csv": table(("flow", "session", "profile"), rows)}
