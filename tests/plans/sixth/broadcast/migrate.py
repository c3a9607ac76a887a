"""Members join, members leave."""

from __future__ import annotations

from narrowcast.evaluate.ways import Need, Ways
from narrowcast.model import Tables


def ways(plan: Tables) -> Ways:
    members = plan.tables["members"]["subscriber"].to_pylist()
    wishes = {(name, "everything"): frozenset({Need("join", name, "group 0")}) for name in members}
    return Ways({"everything": "group 0"}, wishes)


def renumbered(new: Tables, old: Tables) -> Tables:
    return new
