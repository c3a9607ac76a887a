"""A channel plan as the tables of a plan folder, with names in place of indices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

import numpy as np

from narrowcast.channels.plan import ChannelPlan
from narrowcast.model import Interest
from narrowcast.model._arrays import Ints
from narrowcast.model.plan import Plan


def as_plan(result: ChannelPlan, *, inputs: Mapping[str, str] | None = None) -> Plan:
    """The plan in the form that is written, checked and replayed."""
    import pyarrow as pa

    interest = result.interest
    sent = np.flatnonzero(result.session_of_flow >= 0)
    users, groups = _joins(interest, result.group_of_flow)
    tables = {
        "flow_session": pa.table({"flow": _names(interest.flow_names, sent), "session": result.session_of_flow[sent]}),
        "session_group": pa.table(
            {"session": np.arange(result.group_of_session.size), "group": result.group_of_session}
        ),
        "subscriber_group": pa.table({"subscriber": _names(interest.user_names, users), "group": groups}),
    }
    parameters = {
        "method": result.method,
        "groups": result.groups,
        "sessions": result.sessions,
        "alpha": result.alpha,
        "beta": result.beta,
    }
    return Plan(
        kind="channels",
        tables=tables,
        cost=asdict(result.cost),
        parameters=parameters,
        baselines={name: found._asdict() for name, found in result.baselines.items()},
        inputs=inputs or {},
        lower_bound=result.lower_bound,
        gap=result.gap,
        seed=result.seed,
    )


def _joins(interest: Interest, group_of_flow: Ints) -> tuple[Ints, Ints]:
    """Who joins which group: everyone who wants a flow in it."""
    n_groups = int(group_of_flow.max(initial=-1)) + 1
    pairs = np.unique(interest.users * max(n_groups, 1) + group_of_flow[interest.flow_of_pair])
    users, groups = np.divmod(pairs, max(n_groups, 1))
    return users, groups


def _names(names: tuple[str, ...] | None, indices: Ints) -> list[str]:
    return [str(i) if names is None else names[i] for i in indices.tolist()]
