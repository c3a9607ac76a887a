"""The kinds of plans there are. A new kind is a folder, and one line here."""

from __future__ import annotations

from narrowcast.errors import InputError
from narrowcast.plans.kind import Kind

KINDS: dict[str, Kind] = {
    "channels": Kind("channels", "narrowcast.plans.channels"),
    "filters": Kind("filters", "narrowcast.plans.filters"),
    "network": Kind("network", "narrowcast.plans.network"),
    "queries": Kind("queries", "narrowcast.plans.queries"),
    "semantic": Kind("semantic", "narrowcast.plans.semantic"),
}

# What older plans call themselves: a hybrid is a channels plan that may use unicast.
FORMERLY = {"hybrid": "channels"}


def kind_of(name: str) -> Kind:
    """The kind of this name; InputError that lists the kinds for an unknown one."""
    found = KINDS.get(FORMERLY.get(name, name))
    if found is None:
        known = ", ".join(KINDS)
        raise InputError(f"kind must be one of {known}, got {name!r}", name="kind", allowed=tuple(KINDS), got=name)
    return found
