"""A channels plan as the network would obey it: who is sent what, and on which way."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.evaluate.columns import amounts, places, texts, whole
from narrowcast.model.arrays import Bools, Floats, Ints, distinct
from narrowcast.model.plan import Tables


@dataclass(frozen=True, eq=False)
class Delivery:
    """The plan's tables as parallel arrays. Flows, users, sessions and groups are places in their lists of names;
    −1 is a name that is not there. A receiver gets exactly the groups it joins and what is sent to it by unicast.
    """

    flow_names: list[str]
    user_names: list[str]
    rates: Floats
    n_users: int  # those who want nothing included
    want_flow: Ints
    want_user: Ints
    sent_flow: Ints  # flow_session, row by row
    sent_session: Ints
    session_row: Ints  # session_group, row by row
    group_row: Ints
    member: Ints  # subscriber_group, row by row
    joined: Ints
    unicast_flow: Ints
    unicast_user: Ints
    sessions: Ints  # the numbers in use, ascending
    groups: Ints
    unknown: tuple[str, ...]

    @cached_property
    def session_of_flow(self) -> Ints:
        session = np.full(len(self.flow_names), -1)
        known = self.sent_flow >= 0
        session[self.sent_flow[known]] = self.sent_session[known]
        return session

    @cached_property
    def group_of_session(self) -> Ints:
        group = np.full(self.sessions.size, -1)
        group[self.session_row] = self.group_row
        return group

    @cached_property
    def group_of_flow(self) -> Ints:
        group = np.full(len(self.flow_names), -1)
        sent = self.session_of_flow >= 0
        group[sent] = self.group_of_session[self.session_of_flow[sent]]
        return group

    @cached_property
    def audience_sizes(self) -> Ints:
        return np.bincount(self.want_flow, minlength=len(self.flow_names)).astype(np.int64)

    @cached_property
    def by_unicast(self) -> Bools:
        """Of each wish, whether it is met by unicast."""
        return np.isin(self.pair(self.want_flow, self.want_user), self.pair(self.unicast_flow, self.unicast_user))

    @cached_property
    def by_group(self) -> Bools:
        """Of each wish, whether the subscriber is in the flow's group."""
        group = self.group_of_flow[self.want_flow]
        return np.isin(self.pair(group, self.want_user), self.pair(self.joined, self.member)) & (group >= 0)

    @cached_property
    def group_rates(self) -> Floats:
        sent = self.group_of_flow >= 0
        return np.bincount(self.group_of_flow[sent], self.rates[sent], minlength=self.groups.size).astype(np.float64)

    @cached_property
    def session_rates(self) -> Floats:
        sent = self.session_of_flow >= 0
        rates = np.bincount(self.session_of_flow[sent], self.rates[sent], minlength=self.sessions.size)
        return rates.astype(np.float64)

    @cached_property
    def subscribed(self) -> tuple[Ints, Ints]:
        """(session, user) pairs: who takes which session, since it holds a flow wanted that way."""
        session = self.session_of_flow[self.want_flow]
        taken = (session >= 0) & ~self.by_unicast
        return self.unpair(distinct(self.pair(session[taken], self.want_user[taken])))

    def pair(self, first: Ints, user: Ints) -> Ints:
        return first * self.n_users + user

    def unpair(self, pairs: Ints) -> tuple[Ints, Ints]:
        first, user = np.divmod(pairs, max(self.n_users, 1))
        return first, user


def may_unicast(plan: Tables) -> bool:
    """Whether the plan weighs unicast against multicast: then it has a table for it, if an empty one."""
    return "unicast" in plan.tables


def delivery(plan: Tables) -> Delivery:
    """Read the plan's tables. O(cells). A cell of the wrong kind is an InputError."""
    flows = texts(plan, "flows", "flow")
    wishes = texts(plan, "interest", "subscriber")
    users = wishes.unique()
    unknown: list[str] = _repeated("flow", flows)

    def known(table: str, column: str, names: Any, where: str) -> Ints:
        given = texts(plan, table, column)
        found = places(given, names)
        lost = sorted({given[int(i)].as_py() for i in np.flatnonzero(found < 0)})
        unknown.extend(f"{column} {name!r} of table {table} is not in {where}" for name in lost)
        return found

    rates = amounts(plan, "flows", "rate")
    want_flow = known("interest", "flow", flows, "table flows")
    sent = whole(plan, "flow_session", "session")
    session_row, group_row = whole(plan, "session_group", "session"), whole(plan, "session_group", "group")
    joined = whole(plan, "subscriber_group", "group")
    sessions, groups = np.union1d(sent, session_row), np.union1d(group_row, joined)
    none = np.zeros(0, np.int64)
    hybrid = may_unicast(plan)
    return Delivery(
        flows.to_pylist(),
        users.to_pylist(),
        rates,
        _n_users(plan, len(users)),
        want_flow,
        places(wishes, users),
        known("flow_session", "flow", flows, "table flows"),
        np.searchsorted(sessions, sent),
        np.searchsorted(sessions, session_row),
        np.searchsorted(groups, group_row),
        known("subscriber_group", "subscriber", users, "table interest"),
        np.searchsorted(groups, joined),
        known("unicast", "flow", flows, "table flows") if hybrid else none,
        known("unicast", "subscriber", users, "table interest") if hybrid else none,
        sessions,
        groups,
        tuple(unknown),
    )


def _n_users(plan: Tables, named: int) -> int:
    """Who wants nothing stands in no table, but flooding would reach them too."""
    said = plan.parameters.get("subscribers", named)
    if not isinstance(said, int) or isinstance(said, bool) or said < named:
        raise InputError(f"parameter subscribers must be at least {named}, got {said!r}", name="subscribers")
    return said


def _repeated(what: str, names: Any) -> list[str]:
    counts = names.value_counts()
    return [f"{what} {row['values']!r} appears twice in table flows" for row in counts.to_pylist() if row["counts"] > 1]
