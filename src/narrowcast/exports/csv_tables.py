"""CSV: the plan's own tables, for whatever else people run. The one target for every kind of plan."""

from __future__ import annotations

from typing import Any

from narrowcast.exports.files import Files, tables
from narrowcast.exports.layout import layout_of
from narrowcast.exports.options import Options, check_addresses, check_ports
from narrowcast.exports.text import table
from narrowcast.model.plan import Plan
from narrowcast.plans.channels.result import ChannelsPlan

PORT = 30000


def csv_tables(plan: Plan, options: Options) -> Files:
    """Every table of the plan; of a channels plan also flows and subscribers with address and port.

    Every group has a port of its own: on one port a Linux socket bound to any address hears all groups that
    anybody on its host joined.
    """
    found = {f"plan_{name}.csv": _whole(value) for name, value in plan.to_tables().tables.items()}
    if not isinstance(plan, ChannelsPlan):
        return Files(found)
    made = layout_of(plan)
    check_addresses(made, options)
    port = PORT if options.port is None else options.port
    check_ports(port, made.n_groups, "one per group")
    return Files(found | tables(made, ("address", "port"), lambda _, group: (options.address(group), port + group)))


def _whole(value: Any) -> str:
    return table(value.column_names, zip(*(value[c].to_pylist() for c in value.column_names), strict=True))
