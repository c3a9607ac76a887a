"""A channel plan as the tables of a plan folder, with names in place of indices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model import Interest
from narrowcast.model.arrays import Bools, Ints, distinct
from narrowcast.model.interest_tables import interest_of, interest_tables, names_of
from narrowcast.model.plan import Plan
from narrowcast.plans.channels.cost import Cost
from narrowcast.plans.channels.hybrid import HybridPlan
from narrowcast.plans.channels.limits import Limits
from narrowcast.plans.channels.methods.kmeans import in_order
from narrowcast.plans.channels.plan import ChannelPlan


def as_plan(result: ChannelPlan, *, limits: Limits | None = None, inputs: Mapping[str, str] | None = None) -> Plan:
    """The plan in the form that is written, checked and replayed; with the limits it was made under."""
    everyone = np.ones(result.interest.n_pairs, np.bool_)
    return Plan(
        kind="channels",
        tables=_tables(result.interest, result.session_of_flow, result.group_of_session, everyone),
        cost=asdict(result.cost),
        parameters={
            **{name: getattr(result, name) for name in ("method", "groups", "sessions", "alpha", "beta")},
            "subscribers": result.interest.n_users,
            **({} if limits is None else {"limits": _limits(result.interest, limits)}),
        },
        baselines={name: found._asdict() for name, found in result.baselines.items()},
        inputs=inputs or {},
        lower_bound=result.lower_bound,
        gap=result.gap,
        seed=result.seed,
    )


def previous_of(plan: Plan, interest: Interest) -> ChannelPlan:
    """A channels plan read back, for `plan(..., previous=)` with the interest of today: matched by names.

    Flows that are new have no session yet; what is gone is left out, and so are joins made for it alone.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if plan.kind != "channels":
        raise InputError(f"the previous plan is of kind {plan.kind!r}; it must be a channels plan", name="previous")
    then = interest_of(plan)
    flow_now, user_now = (
        pc.index_in(pa.array(old or (), pa.string()), value_set=names_of(new, np.arange(n))).fill_null(-1).to_numpy()
        for old, new, n in (
            (then.flow_names, interest.flow_names, interest.n_flows),
            (then.user_names, interest.user_names, interest.n_users),
        )
    )
    sent = plan.tables["flow_session"]
    at = pc.index_in(
        sent["flow"].cast(pa.string()), value_set=names_of(interest.flow_names, np.arange(interest.n_flows))
    )
    at = at.fill_null(-1).to_numpy()
    session = np.full(interest.n_flows, -1)
    session[at[at >= 0]] = sent["session"].to_numpy()[at >= 0]
    table = plan.tables["session_group"]
    numbers = table["session"].to_numpy()
    group = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)
    group[numbers] = table["group"].to_numpy()  # a session that stayed empty has a number and no row
    flow, user = flow_now[then.flow_of_pair], user_now[then.users]
    kept = (flow >= 0) & (user >= 0)
    joined = Interest.from_pairs(flow[kept], user[kept], interest.rates, n_users=interest.n_users)
    known = session.copy()
    known[joined.audience_sizes == 0] = -1
    settings = dict(plan.parameters)
    return ChannelPlan(
        known, group, Cost(**plan.cost), str(settings["method"]), int(settings["groups"]), int(settings["sessions"]),
        float(settings["alpha"]), float(settings["beta"]), plan.seed or 0, joined,
    )  # fmt: skip


def hybrid_as_plan(
    result: HybridPlan, *, seed: int, cap: float | None = None, inputs: Mapping[str, str] | None = None
) -> Plan:
    """The same for a hybrid, whose unicast pairs have a table of their own. Without sessions each group is one."""
    import pyarrow as pa

    interest = result.interest
    flow, user = result.unicast
    together = ~np.isin(interest.flow_of_pair * interest.n_users + interest.users, flow * interest.n_users + user)
    session, group = result.session_of_flow, result.group_of_session
    if session is None or group is None:
        used, session = in_order(result.group_of_flow)
        group = np.arange(used.size)
    tables = _tables(interest, session, group, together)
    names = {"flow": names_of(interest.flow_names, flow), "subscriber": names_of(interest.user_names, user)}
    terms, bound = result.terms, min(_hybrid_bound(interest, result.weights, result.beta), result.cost)
    return Plan(
        kind="hybrid",
        tables=tables | {"unicast": pa.table(names)},
        cost={
            "reception": terms.reception,
            "transmission": terms.transmission,
            "unicast": terms.unicast,
            "perfect": terms.perfect,
            "total": result.cost,
        },
        parameters={
            "groups": result.groups,
            "weights": list(result.weights),
            "subscribers": interest.n_users,
            **({} if result.sessions is None else {"sessions": result.sessions, "beta": result.beta}),
            **({} if cap is None else {"cap": cap}),
        },
        baselines=result.baselines,
        inputs=inputs or {},
        lower_bound=bound,
        gap=1 - bound / result.cost if result.cost > 0 else 0.0,
        seed=seed,
    )


def _hybrid_bound(interest: Interest, weights: tuple[float, float, float], beta: float) -> float:
    """No hybrid costs less: each flow perfectly multicast or all by unicast, whichever is cheaper for it.

    What a flow costs is linear in how many of its users have it by multicast, so one of the ends is least.
    """
    w1, w2, w3 = weights[0] + beta, *weights[1:]
    size = interest.audience_sizes
    together, apart = (w1 * size + w2 * (size > 0)), w3 * (w1 + w2) * size
    return float((interest.rates * np.minimum(together, apart)).sum()) * (1 - 1e-12)


def _limits(interest: Interest, limits: Limits) -> dict[str, Any]:
    """The limits that were given, flows by their names."""
    name = interest.flow_names or tuple(map(str, range(interest.n_flows)))
    given = {
        "joins_per_user": limits.joins_per_user,
        "rate_per_group": limits.rate_per_group,
        "pinned": {name[flow]: int(group) for flow, group in limits.pinned.items()},
        "apart": [[name[one], name[two]] for one, two in limits.apart],
        "moves": limits.moves,
        "new_joins": limits.new_joins,
    }
    return {key: value for key, value in given.items() if value not in (None, {}, [])}


def _tables(interest: Interest, session_of_flow: Ints, group_of_session: Ints, together: Bools) -> dict[str, Any]:
    import pyarrow as pa

    sent = np.flatnonzero(session_of_flow >= 0)
    group_of_flow = np.full(interest.n_flows, -1)
    group_of_flow[sent] = group_of_session[session_of_flow[sent]]
    users, groups = _joins(interest, group_of_flow, together)
    # A plan under limits keeps the numbers of sessions that stay empty; nobody needs to know of those.
    used = np.unique(session_of_flow[sent])
    return {
        "flow_session": pa.table({"flow": names_of(interest.flow_names, sent), "session": session_of_flow[sent]}),
        "session_group": pa.table({"session": used, "group": group_of_session[used]}),
        "subscriber_group": pa.table({"subscriber": names_of(interest.user_names, users), "group": groups}),
        **interest_tables(interest),
    }


def _joins(interest: Interest, group_of_flow: Ints, together: Bools) -> tuple[Ints, Ints]:
    """Who joins which group: everyone who gets a flow in it that way."""
    n_groups = int(group_of_flow.max(initial=0)) + 1
    group = group_of_flow[interest.flow_of_pair]
    served = together & (group >= 0)
    pairs = distinct(interest.users[served] * n_groups + group[served])
    users, groups = np.divmod(pairs, n_groups)
    return users, groups
