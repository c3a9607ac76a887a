"""The kinds of plans that can be gone on from, and the way in for a plan of any of them."""

from __future__ import annotations

from collections.abc import Callable

from narrowcast.errors import UnsupportedError
from narrowcast.model.demand import Demand
from narrowcast.model.plan import Plan
from narrowcast.plans.channels.replan import ContinuedChannels
from narrowcast.plans.continued import Continued
from narrowcast.plans.filters.replan import ContinuedFilters
from narrowcast.plans.queries.replan import ContinuedQueries
from narrowcast.plans.semantic.replan import ContinuedSemantic

KINDS: dict[str, Callable[[Plan, Demand], Continued]] = {
    "channels": ContinuedChannels.of,
    "filters": ContinuedFilters.of,
    "queries": ContinuedQueries.of,
    "semantic": ContinuedSemantic.of,
}


def continued(plan: Plan, demand: Demand) -> Continued:
    """A plan from its folder, under the demand of now."""
    if plan.kind not in KINDS:
        raise UnsupportedError(f"{plan.kind} plans cannot be gone on from", works=tuple(KINDS))
    return KINDS[plan.kind](plan, demand)
