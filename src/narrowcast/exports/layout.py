"""A channels or hybrid plan as the network will obey it: who sends what where, and who takes what."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from narrowcast.errors import UnsupportedError
from narrowcast.model.plan import Plan

KINDS = ("channels", "hybrid")


@dataclass(frozen=True)
class Layout:
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


def layout_of(plan: Plan) -> Layout:
    """Read a plan's tables. O(pairs).

    >>> import narrowcast as nc
    >>> from narrowcast.plans.channels.result import as_plan
    >>> interest = nc.Interest.from_pairs([0, 0, 1], [0, 1, 1], [5.0, 2.0], flow_names=["IBM", "MSFT"])
    >>> found = layout_of(as_plan(nc.channels.plan(interest, groups=2, sessions=2, method="gf")))
    >>> found.takes["1"] == tuple(sorted(found.session_of_flow.values()))
    True
    """
    if plan.kind not in KINDS:
        raise UnsupportedError(
            f"a {plan.kind} plan has no multicast groups to configure; it can be exported to csv", works=("csv",)
        )
    session_of_flow = {
        str(row["flow"]): int(row["session"])
        for row in plan.tables["flow_session"].select(["flow", "session"]).to_pylist()
    }
    rows = plan.tables["session_group"].select(["session", "group"]).to_pylist()
    group_of_session = {int(row["session"]): int(row["group"]) for row in rows}
    unicast = _pairs(plan, "unicast") if "unicast" in plan.tables else ()
    joins: dict[str, set[int]] = {}
    for row in plan.tables["subscriber_group"].select(["subscriber", "group"]).to_pylist():
        joins.setdefault(str(row["subscriber"]), set()).add(int(row["group"]))
    apart = set(unicast)
    takes: dict[str, set[int]] = {}
    for flow, subscriber in _pairs(plan, "interest"):
        mine = takes.setdefault(subscriber, set())
        if flow in session_of_flow and (flow, subscriber) not in apart:
            mine.add(session_of_flow[flow])
    used = max(group_of_session.values(), default=-1) + 1
    return Layout(
        session_of_flow,
        group_of_session,
        {subscriber: tuple(sorted(groups)) for subscriber, groups in joins.items()},
        {subscriber: tuple(sorted(sessions)) for subscriber, sessions in takes.items()},
        unicast,
        max(used, int(plan.parameters.get("groups", 0))),
    )


def _pairs(plan: Plan, table: str) -> tuple[tuple[str, str], ...]:
    columns = plan.tables[table]
    return tuple(
        (str(f), str(s)) for f, s in zip(columns["flow"].to_pylist(), columns["subscriber"].to_pylist(), strict=True)
    )
