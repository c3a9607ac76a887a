"""narrowcast: the cheapest safe way to get each message to exactly the people who want it.

    import narrowcast as nc

    demand = nc.measure("messages.parquet", "subscriptions.parquet", key="symbol")
    plan = nc.plan(demand, groups=50, sessions=500).save("plan")
    with nc.up(plan) as system, system.connect() as client:
        client.publish([{"symbol": "IBM", "price": 101}])

The nouns and the verbs. Heavy parts load on first use, so that importing costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from narrowcast.version import __version__

if TYPE_CHECKING:
    from narrowcast import errors, workloads
    from narrowcast.data.measure import frame, measure
    from narrowcast.deliver.client.connect import connect
    from narrowcast.deliver.up import up
    from narrowcast.exports import export
    from narrowcast.model import Cost, Demand, Interest, Plan, Topology, Tree
    from narrowcast.model.network_demand import NetworkDemand
    from narrowcast.plans.channels import api as channels
    from narrowcast.plans.filters import api as filters
    from narrowcast.plans.queries import api as queries
    from narrowcast.plans.semantic import api as semantic
    from narrowcast.plans.verbs import check, diff, explain, load, picture, plan, report, save, whatif
    from narrowcast.profiles import Matcher, Profile

_ROOMS = {
    "channels": "narrowcast.plans.channels.api",
    "errors": "narrowcast.errors",
    "filters": "narrowcast.plans.filters.api",
    "queries": "narrowcast.plans.queries.api",
    "semantic": "narrowcast.plans.semantic.api",
    "workloads": "narrowcast.workloads",
}
_NAMES = {
    **dict.fromkeys(("Cost", "Demand", "Interest", "Plan", "Topology", "Tree"), "narrowcast.model"),
    **dict.fromkeys(("Matcher", "Profile"), "narrowcast.profiles"),
    **dict.fromkeys(
        ("check", "diff", "explain", "load", "picture", "plan", "report", "save", "whatif"), "narrowcast.plans.verbs"
    ),
    "connect": "narrowcast.deliver.client.connect",
    "export": "narrowcast.exports",
    **dict.fromkeys(("frame", "measure"), "narrowcast.data.measure"),
    "NetworkDemand": "narrowcast.model.network_demand",
    "up": "narrowcast.deliver.up",
}

__all__ = [
    "Cost",
    "Demand",
    "Interest",
    "Matcher",
    "NetworkDemand",
    "Plan",
    "Profile",
    "Topology",
    "Tree",
    "__version__",
    "channels",
    "check",
    "connect",
    "diff",
    "errors",
    "explain",
    "export",
    "filters",
    "frame",
    "load",
    "measure",
    "picture",
    "plan",
    "queries",
    "report",
    "save",
    "semantic",
    "up",
    "whatif",
    "workloads",
]


def __getattr__(name: str) -> object:
    if name in _ROOMS:
        return import_module(_ROOMS[name])
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'narrowcast' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
