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
    from narrowcast import channels, errors, filters, queries, semantic, workloads
    from narrowcast.model import Interest, Topology, Tree
    from narrowcast.profiles import Matcher, Profile
    from narrowcast.runtime.connect import connect


_ROOMS = ("channels", "errors", "filters", "queries", "semantic", "workloads")
_NAMES = {
    "Interest": "narrowcast.model",
    "Matcher": "narrowcast.profiles",
    "Profile": "narrowcast.profiles",
    "Topology": "narrowcast.model",
    "Tree": "narrowcast.model",
    "connect": "narrowcast.runtime.connect",
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
        return import_module(f"narrowcast.{name}")
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'narrowcast' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
