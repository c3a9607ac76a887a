"""The two-level cost of a plan and what makes a plan legal (Tock et al. 2005, §2–3, §5.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.errors import InputError
from narrowcast.model import Interest
from narrowcast.model.arrays import Ints, indices
from narrowcast.model.cost import Cost
from narrowcast.plans.channels.points import Points, plain


def cost(
    interest: Interest, session_of_flow: ArrayLike, group_of_session: ArrayLike, alpha: float = 1, beta: float = 1
) -> Cost:
    """The cost of any map of flows to sessions to groups.

    Its terms are what subscribers pay: `c1` to filter sessions, `c2` to filter flows; `useful` is the rate they want.
    `excess` is what is paid beyond perfect delivery, `flooding` the excess of sending everything to everyone, and
    `relative` the one divided by the other: the figure to compare plans by. A flow nobody wants is not sent,
    whatever its session says; −1 is allowed for those alone. O(pairs log pairs).

    >>> interest = Interest.from_pairs([0, 0, 1, 2], [0, 1, 1, 2], [4.0, 2.0, 1.0])
    >>> c = cost(interest, [0, 0, 1], [0, 0])
    >>> c.c1, c.c2, c.useful, c.excess
    (21.0, 13.0, 11.0, 12.0)
    """
    session, group = check_maps(interest, session_of_flow, group_of_session)
    check_prices(alpha, beta)
    points, point_of_flow = plain(interest)
    return points_cost(points, session[point_of_flow >= 0], group, alpha, beta)


def points_cost(points: Points, session_of: Ints, group_of: Ints, alpha: float, beta: float) -> Cost:
    """The cost of a plan of points."""
    n_groups = int(group_of.max(initial=-1)) + 1
    sessions = points.merged(session_of, group_of.size)
    groups = sessions.merged(group_of, n_groups)
    c1, c2, useful = alpha * groups.useful, beta * sessions.useful, points.useful
    everything = float(points.rates.sum()) * points.n_users
    flooding = (alpha + beta) * (everything - useful)
    excess = alpha * (groups.useful - useful) + beta * (sessions.useful - useful)
    real = flooding > 1e-12 * (alpha + beta) * useful  # where everybody wants everything, what is left is rounding
    relative = excess / flooding if real else 0.0
    terms = {"c1": c1, "c2": c2, "useful": useful, "excess": excess, "flooding": flooding, "relative": relative}
    return Cost(c1 + c2, terms)


def check_maps(interest: Interest, session_of_flow: ArrayLike, group_of_session: ArrayLike) -> tuple[Ints, Ints]:
    """The two maps as arrays. Refuses a map that leaves a wanted flow out: no false exclusion."""
    group = indices("group_of_session", group_of_session)
    session = indices("session_of_flow", session_of_flow, low=-1, high=group.size)
    if session.size != interest.n_flows:
        raise InputError(
            f"session_of_flow must have {interest.n_flows} entries, got {session.size}", name="session_of_flow"
        )
    lost = np.flatnonzero((session < 0) & (interest.audience_sizes > 0))
    if lost.size:
        raise InputError(
            f"flow {lost[0]} has no session but {interest.audience_sizes[lost[0]]} subscribers want it",
            name="session_of_flow",
            got=int(lost[0]),
            hint="−1 is only for flows that nobody wants",
        )
    return session, group


def check_prices(alpha: float, beta: float) -> None:
    for name, value in (("alpha", alpha), ("beta", beta)):
        if not (np.isfinite(value) and value >= 0):
            raise InputError(f"{name} must be finite and zero or more, got {value}", name=name, got=value)


def illegal(interest: Interest, session_of_flow: ArrayLike, group_of_session: ArrayLike) -> list[str]:
    """Everything that makes a plan illegal, one line each; empty for a legal plan.

    >>> interest = Interest.from_pairs([0, 1], [0, 0], [1.0, 1.0])
    >>> illegal(interest, [0, 0], [0, 2])
    ['session 1 holds no flow', 'group 1 holds no session']
    """
    try:
        session, group = check_maps(interest, session_of_flow, group_of_session)
    except InputError as error:
        return [str(error)]
    sent = session[interest.audience_sizes > 0]
    empty = np.flatnonzero(np.bincount(sent, minlength=group.size) == 0)
    unused = np.flatnonzero(np.bincount(group) == 0)
    unwanted = np.flatnonzero((session >= 0) & (interest.audience_sizes == 0))
    return (
        [f"session {l} holds no flow" for l in empty]
        + [f"group {g} holds no session" for g in unused]
        + [f"flow {k} is sent but nobody wants it" for k in unwanted]
    )
