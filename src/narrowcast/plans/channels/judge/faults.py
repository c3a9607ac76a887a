"""Channel and hybrid plans judged from their tables alone: who is left out, what it costs, what budget is broken.

Nothing here comes from the planners. A plan's tables are read as the network would obey them: a
receiver gets exactly the groups it joins and the flows sent to it by unicast.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from narrowcast.evaluate.columns import constant
from narrowcast.evaluate.compare import differences
from narrowcast.model.arrays import Ints, distinct
from narrowcast.model.interest import Interest
from narrowcast.model.interest_tables import interest_tables
from narrowcast.model.plan import Tables
from narrowcast.plans.channels.judge.baselines import baseline_faults
from narrowcast.plans.channels.judge.delivery import Delivery, delivery, may_unicast
from narrowcast.plans.channels.judge.limits import limit_faults

__all__ = ["channels_cost", "channels_faults", "differences"]


def channels_faults(plan: Tables, interest: Interest | None = None) -> list[str]:
    """Every way in which the plan is unsound; an empty list is a sound plan. O(pairs · log pairs).

    With `interest` the plan is held against that instead of the demand in its own tables.
    """
    return list(_faults(plan if interest is None else _for(plan, interest)))


def channels_cost(plan: Tables, interest: Interest | None = None) -> dict[str, float]:
    """The terms of the plan's cost, from their definitions (spec: C1, C2, flooding; or C′ of a hybrid)."""
    plan = plan if interest is None else _for(plan, interest)
    read = delivery(plan)
    if read.unknown:
        return {}
    return hybrid_cost(plan, read) if may_unicast(plan) else two_level_cost(plan, read)


def _for(plan: Tables, interest: Interest) -> Tables:
    """The same plan for another demand."""
    parameters = {**plan.parameters, "subscribers": interest.n_users}
    return replace(plan, tables={**plan.tables, **interest_tables(interest)}, parameters=parameters)


def _faults(plan: Tables) -> Iterator[str]:
    read = delivery(plan)
    yield from read.unknown
    yield from _twice("flow", read.sent_flow, "is in two sessions", read.flow_names)
    yield from _twice("session", read.session_row, "is in two groups", read.sessions)
    for l in np.setdiff1d(read.sent_session, read.session_row):
        yield f"session {read.sessions[l]} is in no group"
    for l in np.setdiff1d(read.session_row, read.sent_session):
        yield f"session {read.sessions[l]} is empty"
    if read.unknown:
        return
    for k in np.flatnonzero((read.session_of_flow >= 0) & (read.audience_sizes == 0)):
        yield f"flow {read.flow_names[k]} is sent though nobody wants it"
    yield from _left_out(read)
    yield from _needless(read)
    yield from limit_faults(plan, read)
    yield from baseline_faults(plan, read)


def _left_out(read: Delivery) -> Iterator[str]:
    """Every wanted (flow, user) must be covered by a joined group or by unicast: no false exclusion."""
    for at in np.flatnonzero(~(read.by_group | read.by_unicast)):
        who, what = read.user_names[read.want_user[at]], read.flow_names[read.want_flow[at]]
        yield f"subscriber {who} wants flow {what} and does not get it"


def _needless(read: Delivery) -> Iterator[str]:
    """Joins, unicasts and wishes that serve nobody or stand twice: they would cost without being planned."""
    group = read.group_of_flow[read.want_flow]
    served = (group >= 0) & ~read.by_unicast
    wishes, joins = read.pair(read.want_flow, read.want_user), read.pair(read.joined, read.member)
    yield from _twice("row of table interest", wishes, "appears twice", None)
    yield from _twice("row of table subscriber_group", joins, "appears twice", None)
    for at in np.flatnonzero(~np.isin(joins, read.pair(group[served], read.want_user[served]))):
        yield f"subscriber {read.user_names[read.member[at]]} joins group {read.groups[read.joined[at]]} without need"
    pairs = read.pair(read.unicast_flow, read.unicast_user)
    yield from _twice("row of table unicast", pairs, "appears twice", None)
    for at in np.flatnonzero(~np.isin(pairs, wishes)):
        who, what = read.user_names[read.unicast_user[at]], read.flow_names[read.unicast_flow[at]]
        yield f"flow {what} goes by unicast to subscriber {who}, who does not want it"
    taken = distinct(read.want_flow[served])
    for k in np.setdiff1d(np.flatnonzero((read.group_of_flow >= 0) & (read.audience_sizes > 0)), taken):
        group_number = read.groups[read.group_of_flow[k]]
        yield f"flow {read.flow_names[k]} is in group {group_number} although all of it goes by unicast"


def _twice(what: str, keys: Ints, says: str, names: Any) -> Iterator[str]:
    values, counts = np.unique(keys[keys >= 0], return_counts=True)
    for key in values[counts > 1]:
        yield f"a {what} {says}" if names is None else f"{what} {names[key]} {says}"


def two_level_cost(plan: Tables, read: Delivery) -> dict[str, float]:
    """C1 = α Σ joins Θ, C2 = β Σ subscriptions θ, and what flooding would cost."""
    alpha, beta = constant(plan, "alpha", 1.0), constant(plan, "beta", 1.0)
    session, _ = read.subscribed
    c1 = alpha * float(read.group_rates[read.joined].sum())
    c2 = beta * float(read.session_rates[session].sum())
    useful = float(read.rates[read.want_flow].sum())
    wanted = read.audience_sizes > 0
    flooding = (alpha + beta) * float(((read.n_users - read.audience_sizes) * read.rates)[wanted].sum())
    excess = c1 + c2 - (alpha + beta) * useful
    # A flooding that comes out of rounding alone is none.
    relative = excess / flooding if flooding > 1e-12 * useful else 0.0
    return {"c1": c1, "c2": c2, "useful": useful, "excess": excess, "flooding": flooding, "relative": relative}


def hybrid_cost(plan: Tables, read: Delivery) -> dict[str, float]:
    """C′ = w1 Σ joins Θ + β Σ subscriptions θ + w2 Σ groups Θ + w3 (w1 + β + w2) Σ unicast λ, and perfect multicast
    beside it. A plan without sessions has no β.
    """
    w1, w2, w3, beta = weights(plan)
    session, _ = read.subscribed
    reception = w1 * float(read.group_rates[read.joined].sum()) + beta * float(read.session_rates[session].sum())
    transmission = w2 * float(read.group_rates.sum())
    alone = w3 * (w1 + beta + w2) * float(read.rates[read.unicast_flow].sum())
    wanted = read.audience_sizes > 0
    perfect = (w1 + beta) * float(read.rates[read.want_flow].sum()) + w2 * float(read.rates[wanted].sum())
    total = reception + transmission + alone
    return {"reception": reception, "transmission": transmission, "unicast": alone, "perfect": perfect, "total": total}


def weights(plan: Tables) -> tuple[float, float, float, float]:
    """A hybrid's w1, w2, w3 and β."""
    w1, w2, w3 = (float(w) for w in plan.parameters.get("weights", (1, 1, 1)))
    return w1, w2, w3, constant(plan, "beta", 0.0)
