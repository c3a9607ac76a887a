"""The kinds of plans that can be gone on from, and the way in for a plan of any of them."""

from __future__ import annotations

from collections.abc import Callable

from narrowcast.adapt.channels import ContinuedChannels
from narrowcast.adapt.continued import Continued
from narrowcast.adapt.demand import Demand
from narrowcast.adapt.filters import ContinuedFilters
from narrowcast.adapt.queries import ContinuedQueries
from narrowcast.adapt.semantic import ContinuedSemantic
from narrowcast.errors import UnsupportedError
from narrowcast.model.plan import Plan

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
