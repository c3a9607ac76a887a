"""What other numbers of channels and other latency bounds would make of a semantic plan."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from narrowcast.errors import UnsupportedError
from narrowcast.evaluate.whatif import Family, Outcome, Settings, share_of
from narrowcast.model.topology import Topology
from narrowcast.plans.semantic.baseline import baseline
from narrowcast.plans.semantic.demand import OverlayDemand
from narrowcast.plans.semantic.plan import make
from narrowcast.plans.semantic.result import SemanticPlan, bandwidth
from narrowcast.reports.whatif import Whatif


def family(plan: SemanticPlan) -> Family:
    """The cap on channels, and one latency bound for all clients; for the messages that a plan keeps."""
    return Family(
        budgets=("max_channels", "latency_bound"),
        prices=(),
        measure="bandwidth of the kept messages",
        yardstick="shortest path trees",
        present=partial(_again, plan, {}, None),
        setting=partial(_setting, plan),
        replan=partial(_again, plan),
        warm_up=_warm_up,
    )


def quick(plan: SemanticPlan) -> Whatif | None:
    """None: there is no fast planner whose costs would be near those of a plan."""
    return None


def _setting(plan: SemanticPlan, name: str) -> float | None:
    """What a setting is in the plan; where the plan has no such bound, what it makes use of."""
    known = plan.parameters.get(name)
    if known is None and name == "max_channels":
        return float(plan.n_channels)
    return None if known is None else float(known)


def _again(plan: SemanticPlan, settings: Settings, time_limit: float | None) -> Outcome:
    """Planned for the messages that the plan keeps, in full bandwidth, against shortest path trees for the same."""
    messages, brokers = plan.sample()
    if brokers is None or not brokers.size:
        raise UnsupportedError(
            "whatif needs messages with their source, and the plan holds none", works=("messages with a source",)
        )
    demand = replace(plan.demand, messages=messages, sources=brokers, statistics=None)
    most, bound = settings.get("max_channels", plan.max_channels), settings.get("latency_bound")
    found = make(
        demand if bound is None else replace(demand, bounds=None),
        plan.method,
        None if most is None else int(most),
        str(plan.parameters.get("rendezvous", "best")),
        plan.parameters.get("half_life"),
        bound,
        plan.seed,
    )
    spt = baseline(demand.topology, demand.profiles, demand.clients, messages, brokers, "spt").cost
    return share_of(bandwidth(found, messages, brokers), spt)


def _warm_up() -> SemanticPlan:
    import pyarrow as pa

    return make(OverlayDemand(Topology([(0, 1), (1, 2)]), ["x > 1"], [(0, 2)], pa.table({"x": [1, 2]}), 0))
