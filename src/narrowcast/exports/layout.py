"""A channels plan as the network will obey it: who sends what where, and who takes what."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from narrowcast.errors import UnsupportedError
from narrowcast.model.interest_tables import names_of
from narrowcast.model.plan import Plan
from narrowcast.plans.channels.result import ChannelsPlan

#: Where plans go that not every target has a notion of.
ELSEWHERE = {"filters": ("nats", "csv")} | dict.fromkeys(("semantic", "queries"), ("cyclonedds", "nats", "csv"))


@dataclass(frozen=True)
class GroupLayout:
    """The decisions of a plan by name, in the order of its tables.

    `n_groups` counts the groups that the plan may use, not only those it does: what is configured for all of
    them need not change when a later plan moves sessions about. `takes` holds the sessions that each subscriber
    needs, `joins` its groups; `unicast` the (flow, subscriber) pairs that are sent apart.
    """

    session_of_flow: dict[str, int]
    group_of_session: dict[int, int]
    joins: dict[str, tuple[int, ...]]
    takes: dict[str, tuple[int, ...]]
    unicast: tuple[tuple[str, str], ...]
    n_groups: int

    @cached_property
    def flows_of_session(self) -> dict[int, tuple[str, ...]]:
        """The flows of each session, in the order of the plan."""
        found: dict[int, list[str]] = {session: [] for session in sorted(self.group_of_session)}
        for flow, session in self.session_of_flow.items():
            found[session].append(flow)
        return {session: tuple(flows) for session, flows in found.items()}

    @cached_property
    def sessions_of_group(self) -> dict[int, tuple[int, ...]]:
        """The sessions of each group in use, ascending."""
        found: dict[int, list[int]] = {group: [] for group in sorted(set(self.group_of_session.values()))}
        for session, group in sorted(self.group_of_session.items()):
            found[group].append(session)
        return {group: tuple(sessions) for group, sessions in found.items()}

    @cached_property
    def number_of_subscriber(self) -> dict[str, int]:
        """A number for everybody who gets something by unicast: names may hold what an engine refuses."""
        served = dict.fromkeys(subscriber for _, subscriber in self.unicast)
        return {subscriber: number for number, subscriber in enumerate(served)}


def no_notion(told: str, kind: str) -> UnsupportedError:
    """What to raise where a target cannot have a plan of this kind: with the targets that can."""
    works = ELSEWHERE.get(kind, ("csv",))
    return UnsupportedError(f"{told}; it can be exported to {', '.join(works)}", works=works)


def layout_of(plan: Plan) -> GroupLayout:
    """A channels plan by names. O(pairs).

    >>> import narrowcast as nc
    >>> interest = nc.Interest.from_pairs([0, 0, 1], [0, 1, 1], [5.0, 2.0], flow_names=["IBM", "MSFT"])
    >>> found = layout_of(nc.channels.plan(interest, groups=2, sessions=2, method="gf"))
    >>> found.takes["1"] == tuple(sorted(found.session_of_flow.values()))
    True
    """
    if not isinstance(plan, ChannelsPlan):
        raise no_notion(f"a {plan.kind} plan has no multicast groups to configure", plan.kind)
    interest = plan.interest
    flows = names_of(interest.flow_names, range(interest.n_flows)).to_pylist()
    users = names_of(interest.user_names, range(interest.n_users)).to_pylist()
    session_of_flow = {flows[k]: int(l) for k, l in enumerate(plan.session_of_flow.tolist()) if l >= 0}
    group_of_session = {l: int(plan.group_of_session[l]) for l in sorted(set(session_of_flow.values()))}
    joins: dict[str, set[int]] = {}
    for user, group in zip(*(a.tolist() for a in plan.joins), strict=True):
        joins.setdefault(users[user], set()).add(group)
    takes: dict[str, set[int]] = {}
    pairs = zip(interest.flow_of_pair.tolist(), interest.users.tolist(), plan.by_unicast.tolist(), strict=True)
    for flow, user, alone in pairs:
        mine = takes.setdefault(users[user], set())
        if flows[flow] in session_of_flow and not alone:
            mine.add(session_of_flow[flows[flow]])
    used = max(group_of_session.values(), default=-1) + 1
    return GroupLayout(
        session_of_flow,
        group_of_session,
        {subscriber: tuple(sorted(groups)) for subscriber, groups in joins.items()},
        {subscriber: tuple(sorted(sessions)) for subscriber, sessions in takes.items()},
        tuple((flows[f], users[u]) for f, u in zip(*(a.tolist() for a in plan.unicast), strict=True)),
        max(used, plan.groups),
    )
