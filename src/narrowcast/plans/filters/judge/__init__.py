"""Filters plans judged from their tables alone: what is wrong with one, and what it costs."""

from collections.abc import Mapping, Sequence

from narrowcast.model.plan import Tables
from narrowcast.plans.filters.judge.faults import filters_cost as cost
from narrowcast.plans.filters.judge.faults import filters_faults as faults
from narrowcast.plans.filters.judge.messages import message_faults

COLUMNS: Mapping[str, Sequence[str]] = {"trees": ("node", "parent", "flow", "load"), "filters": ("node",)}
OPTIONAL: Sequence[str] = ()
BOUNDED = "total"


def checked(plan: Tables) -> Sequence[str]:
    """What was looked at, in words."""
    return (
        "every link carries all that is wanted below it",
        "filters are at nodes able to host one, and no more than the budget",
        "the load of every link",
    )


__all__ = ["BOUNDED", "COLUMNS", "OPTIONAL", "checked", "cost", "faults", "message_faults"]
