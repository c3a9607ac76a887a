"""narrowcast: the cheapest safe way to get each message to exactly the people who want it.

    import narrowcast as nc

    wanted = nc.Profile.parse("symbol = 'IBM' AND price > 100")
    wanted.matches({"symbol": "IBM", "price": 101})

Heavy parts load on first use, so that importing costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from narrowcast.version import __version__

if TYPE_CHECKING:
    from narrowcast import errors, workloads
    from narrowcast.deliver.client.connect import connect
    from narrowcast.model import Interest, Topology, Tree
    from narrowcast.plans import channels, filters, queries, semantic
    from narrowcast.profiles import Matcher, Profile


_ROOMS = {
    "channels": "narrowcast.plans.channels",
    "errors": "narrowcast.errors",
    "filters": "narrowcast.plans.filters",
    "queries": "narrowcast.plans.queries",
    "semantic": "narrowcast.plans.semantic",
    "workloads": "narrowcast.workloads",
}
_NAMES = {
    "Interest": "narrowcast.model",
    "Matcher": "narrowcast.profiles",
    "Profile": "narrowcast.profiles",
    "Topology": "narrowcast.model",
    "Tree": "narrowcast.model",
    "connect": "narrowcast.deliver.client.connect",
}

__all__ = [
    "Interest",
    "Matcher",
    "Profile",
    "Topology",
    "Tree",
    "__version__",
    "channels",
    "connect",
    "errors",
    "filters",
    "queries",
    "semantic",
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
