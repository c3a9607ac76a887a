"""What a plan costs and whether it is sound, recomputed from the definitions.

`judge(plan)` is the one way in: it works from the plan alone, for every kind, and shares no code with
the planners. `certify(plan)` is what every command does before it writes a plan.
"""

from __future__ import annotations

from collections.abc import Callable

from narrowcast.evaluate.verdict import Verdict, certified, verdict
from narrowcast.model.plan import Plan
from narrowcast.plans.channels.judge.faults import channels_cost, channels_faults
from narrowcast.plans.filters.judge.faults import filters_cost, filters_faults
from narrowcast.plans.queries.judge import queries_cost, queries_faults
from narrowcast.plans.semantic.judge.faults import semantic_cost, semantic_faults

__all__ = ["JUDGES", "Verdict", "certify", "judge"]

# By kind: what is wrong with a plan, and what it costs.
JUDGES: dict[str, tuple[Callable[[Plan], list[str]], Callable[[Plan], dict[str, float]]]] = {
    "channels": (channels_faults, channels_cost),
    "hybrid": (channels_faults, channels_cost),
    "filters": (filters_faults, filters_cost),
    "queries": (queries_faults, queries_cost),
    "semantic": (semantic_faults, semantic_cost),
}


def judge(plan: Plan) -> Verdict:
    """Whether the plan is sound, and what it costs, from its own tables and parameters alone.

    Nobody is left out, nothing is sent without need, budgets and limits are kept, every cost term and
    baseline is what the definitions make it, the bound is a bound, and what was sealed is unchanged.
    Never raises for a damaged plan: what cannot be read is a fault too. O(cells · log cells).

    >>> import narrowcast as nc
    >>> from narrowcast.plans.channels.result import as_plan
    >>> interest = nc.Interest.from_pairs([0, 0, 1], [0, 1, 1], [5.0, 2.0])
    >>> found = judge(as_plan(nc.channels.plan(interest, groups=2, sessions=2, method="gf")))
    >>> found.sound, found.cost["useful"]
    (True, 12.0)
    """
    return verdict(plan, JUDGES.get(plan.kind))


def certify(plan: Plan) -> Plan:
    """The plan with the verdict and its seal in `checks`; PlanError for an unsound one, which is not to be written."""
    return certified(plan, judge(plan))
