"""A channel plan as the tables of a plan folder, with names in place of indices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from narrowcast.channels.hybrid import HybridPlan
from narrowcast.channels.plan import ChannelPlan
from narrowcast.model import Interest
from narrowcast.model._arrays import Bools, Ints
from narrowcast.model.plan import Plan


def as_plan(result: ChannelPlan, *, inputs: Mapping[str, str] | None = None) -> Plan:
    """The plan in the form that is written, checked and replayed."""
    everyone = np.ones(result.interest.n_pairs, np.bool_)
    return Plan(
        kind="channels",
        tables=_tables(result.interest, result.session_of_flow, result.group_of_session, everyone),
        cost=asdict(result.cost),
        parameters={name: getattr(result, name) for name in ("method", "groups", "sessions", "alpha", "beta")},
        baselines={name: found._asdict() for name, found in result.baselines.items()},
        inputs=inputs or {},
        lower_bound=result.lower_bound,
        gap=result.gap,
        seed=result.seed,
    )


def hybrid_as_plan(result: HybridPlan, *, seed: int, inputs: Mapping[str, str] | None = None) -> Plan:
    """The same for a hybrid: each group is one session, and the unicast pairs have a table of their own."""
    import pyarrow as pa

    interest = result.interest
    flow, user = result.unicast
    together = ~np.isin(interest.flow_of_pair * interest.n_users + interest.users, flow * interest.n_users + user)
    used, group = np.unique(result.group_of_flow, return_inverse=True)
    lonely = int(used[0] == -1) if used.size else 0
    n_groups = used.size - lonely
    tables = _tables(interest, group - lonely, np.arange(n_groups), together)
    names = {"flow": _names(interest.flow_names, flow), "subscriber": _names(interest.user_names, user)}
    terms = result.terms
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
        parameters={"groups": result.groups, "weights": list(result.weights)},
        baselines=result.baselines,
        inputs=inputs or {},
        lower_bound=terms.perfect,
        gap=1 - terms.perfect / result.cost if result.cost > 0 else 0.0,
        seed=seed,
    )


def _tables(interest: Interest, session_of_flow: Ints, group_of_session: Ints, together: Bools) -> dict[str, Any]:
    import pyarrow as pa

    sent = np.flatnonzero(session_of_flow >= 0)
    group_of_flow = np.full(interest.n_flows, -1)
    group_of_flow[sent] = group_of_session[session_of_flow[sent]]
    users, groups = _joins(interest, group_of_flow, together)
    return {
        "flow_session": pa.table({"flow": _names(interest.flow_names, sent), "session": session_of_flow[sent]}),
        "session_group": pa.table({"session": np.arange(group_of_session.size), "group": group_of_session}),
        "subscriber_group": pa.table({"subscriber": _names(interest.user_names, users), "group": groups}),
    }


def _joins(interest: Interest, group_of_flow: Ints, together: Bools) -> tuple[Ints, Ints]:
    """Who joins which group: everyone who gets a flow in it that way."""
    n_groups = int(group_of_flow.max(initial=0)) + 1
    group = group_of_flow[interest.flow_of_pair]
    served = together & (group >= 0)
    pairs = np.unique(interest.users[served] * n_groups + group[served])
    users, groups = np.divmod(pairs, n_groups)
    return users, groups


def _names(names: tuple[str, ...] | None, indices: Ints) -> list[str]:
    return [str(i) if names is None else names[i] for i in indices.tolist()]
