"""Channel and hybrid plans judged from their tables alone: who is left out, what it costs.

Nothing here comes from the planners. A plan's tables are read as the network would obey them: a
receiver gets exactly the groups it joins and the flows sent to it by unicast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model.interest import Interest
from narrowcast.model.plan import Plan


def channels_faults(plan: Plan, interest: Interest) -> list[str]:
    """Every way in which the plan is unsound; an empty list is a sound plan. O(pairs · log pairs)."""
    return list(_faults(_Read(plan, interest)))


def channels_cost(plan: Plan, interest: Interest) -> dict[str, float]:
    """The terms of the plan's cost, from their definitions (spec: C1, C2, flooding; or C′ of a hybrid)."""
    read = _Read(plan, interest)
    return _hybrid_cost(read) if plan.kind == "hybrid" else _two_level_cost(read)


class _Read:
    """The plan's tables as index arrays over the interest's flows and users."""

    def __init__(self, plan: Plan, interest: Interest) -> None:
        self.plan, self.interest = plan, interest
        flows = {name: i for i, name in enumerate(interest.flow_names or map(str, range(interest.n_flows)))}
        users = {name: i for i, name in enumerate(interest.user_names or map(str, range(interest.n_users)))}
        self.unknown: list[str] = []
        table = plan.tables["flow_session"]
        self.flow = self._lookup(table, "flow", flows)
        self.session = _whole(table, "session")
        table = plan.tables["session_group"]
        self.session_row, self.group_row = _whole(table, "session"), _whole(table, "group")
        table = plan.tables["subscriber_group"]
        self.member, self.joined = self._lookup(table, "subscriber", users), _whole(table, "group")
        self.unicast_flow = self.unicast_user = np.zeros(0, np.int64)
        if "unicast" in plan.tables:
            table = plan.tables["unicast"]
            self.unicast_flow = self._lookup(table, "flow", flows)
            self.unicast_user = self._lookup(table, "subscriber", users)
        self.session_of_flow = np.full(interest.n_flows, -1)
        self.session_of_flow[self.flow[self.flow >= 0]] = self.session[self.flow >= 0]
        top = int(max(self.session.max(initial=-1), self.session_row.max(initial=-1))) + 1
        self.group_of_session = np.full(top, -1)
        self.group_of_session[self.session_row] = self.group_row
        sent = self.session_of_flow >= 0
        self.group_of_flow = np.full(interest.n_flows, -1)
        self.group_of_flow[sent] = self.group_of_session[self.session_of_flow[sent]]
        self.n_groups = int(max(self.group_row.max(initial=-1), self.joined.max(initial=-1))) + 1

    def _lookup(self, table: Any, column: str, names: dict[str, int]) -> Any:
        given = table[column].to_pylist()
        found = np.array([names.get(str(name), -1) for name in given], dtype=np.int64)
        self.unknown += [
            f"{column} {name!r} is not in the interest"
            for name in sorted({given[i] for i in np.flatnonzero(found < 0)})
        ]
        return found


def _whole(table: Any, column: str) -> Any:
    values = table[column]
    if values.null_count or not str(values.type).startswith(("int", "uint")):
        raise InputError(f"column {column} of a plan must hold whole numbers", name=column, got=str(values.type))
    result = values.to_numpy().astype(np.int64)
    if (result < 0).any() or (result > 1 << 31).any():
        raise InputError(f"column {column} of a plan has a number out of range", name=column)
    return result


def _faults(read: _Read) -> Iterator[str]:
    yield from read.unknown
    yield from _twice("flow", read.flow, "is in two sessions")
    yield from _twice("session", read.session_row, "is in two groups")
    used, known = np.unique(read.session), np.unique(read.session_row)
    for l in np.setdiff1d(used, known):
        yield f"session {l} is in no group"
    for l in np.setdiff1d(known, used):
        yield f"session {l} is empty"
    if read.unknown:
        return
    yield from _left_out(read)
    yield from _needless(read)


def _left_out(read: _Read) -> Iterator[str]:
    """Every wanted (flow, user) must be covered by a joined group or by unicast: no false exclusion."""
    interest = read.interest
    flow, user = interest.flow_of_pair, interest.users
    group = read.group_of_flow[flow]
    joined = np.isin(group * interest.n_users + user, read.joined * interest.n_users + read.member) & (group >= 0)
    unicast = np.isin(flow * interest.n_users + user, read.unicast_flow * interest.n_users + read.unicast_user)
    for at in np.flatnonzero(~(joined | unicast)):
        who, what = _name(interest.user_names, user[at]), _name(interest.flow_names, flow[at])
        yield f"user {who} wants flow {what} and does not get it"


def _needless(read: _Read) -> Iterator[str]:
    """Joins and unicasts that serve nobody: they would cost without being planned."""
    interest = read.interest
    flow, user = interest.flow_of_pair, interest.users
    unicast = np.isin(flow * interest.n_users + user, read.unicast_flow * interest.n_users + read.unicast_user)
    group = read.group_of_flow[flow]
    needed = np.unique((group * interest.n_users + user)[(group >= 0) & ~unicast])
    joins = read.joined * interest.n_users + read.member
    yield from _twice("join", joins, "stands twice")
    for at in np.flatnonzero(~np.isin(joins, needed)):
        yield f"user {_name(interest.user_names, read.member[at])} joins group {read.joined[at]} without need"
    pairs = read.unicast_flow * interest.n_users + read.unicast_user
    yield from _twice("unicast pair", pairs, "stands twice")
    for at in np.flatnonzero(~np.isin(pairs, flow * interest.n_users + user)):
        yield f"flow {_name(interest.flow_names, read.unicast_flow[at])} goes by unicast to a user who does not want it"


def _twice(what: str, keys: Any, says: str) -> Iterator[str]:
    values, counts = np.unique(keys, return_counts=True)
    for key in values[counts > 1]:
        yield f"{what} {key} {says}"


def _name(names: tuple[str, ...] | None, index: int) -> str:
    return str(index) if names is None else names[index]


def _group_rates(read: _Read) -> Any:
    sent = read.group_of_flow >= 0
    rates = read.interest.rates[sent]
    return np.bincount(read.group_of_flow[sent], rates, minlength=read.n_groups)


def _two_level_cost(read: _Read) -> dict[str, float]:
    interest, parameters = read.interest, read.plan.parameters
    alpha, beta = float(parameters.get("alpha", 1.0)), float(parameters.get("beta", 1.0))
    sent = read.session_of_flow >= 0
    session_rate = np.bincount(read.session_of_flow[sent], interest.rates[sent], minlength=read.group_of_session.size)
    taken = np.unique(read.session_of_flow[interest.flow_of_pair] * interest.n_users + interest.users)
    c1 = alpha * float(_group_rates(read)[read.joined].sum())
    c2 = beta * float(session_rate[taken // max(interest.n_users, 1)].sum())
    useful = float(interest.rates[interest.flow_of_pair].sum())
    wanted = interest.audience_sizes > 0
    flooding = (alpha + beta) * float(((interest.n_users - interest.audience_sizes) * interest.rates)[wanted].sum())
    excess = c1 + c2 - (alpha + beta) * useful
    relative = excess / flooding if flooding else 0.0
    return {"c1": c1, "c2": c2, "useful": useful, "excess": excess, "flooding": flooding, "relative": relative}


def _hybrid_cost(read: _Read) -> dict[str, float]:
    w1, w2, w3 = (float(w) for w in read.plan.parameters.get("weights", (1, 1, 1)))
    group_rate = _group_rates(read)
    unicast = float(read.interest.rates[read.unicast_flow].sum())
    reception, transmission = w1 * float(group_rate[read.joined].sum()), w2 * float(group_rate.sum())
    alone = w3 * (w1 + w2) * unicast
    total = reception + transmission + alone
    return {"reception": reception, "transmission": transmission, "unicast": alone, "total": total}


def differences(said: Mapping[str, float], found: Mapping[str, float]) -> list[str]:
    """The cost terms in which a plan and its recomputation differ, beyond 1e-9 of the larger."""
    return [
        f"its {name} is {found[name]}, the planner says {said[name]}"
        for name in found
        if name in said and abs(found[name] - said[name]) > 1e-9 * max(1.0, abs(found[name]), abs(said[name]))
    ]
