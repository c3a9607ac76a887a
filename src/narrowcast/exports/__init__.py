"""From a plan to the configuration of the engine that people run. One file per target, one line each here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from narrowcast.errors import PlanError, UnsupportedError
from narrowcast.exports.aeron import aeron
from narrowcast.exports.csv_tables import csv_tables
from narrowcast.exports.cyclonedds import cyclonedds
from narrowcast.exports.files import Files, Writer
from narrowcast.exports.nats import nats
from narrowcast.exports.network import per_site
from narrowcast.exports.options import Options
from narrowcast.exports.rti import rti
from narrowcast.exports.ultramessaging import ultramessaging
from narrowcast.exports.write import write_files
from narrowcast.model.plan import Plan
from narrowcast.plans.network.result import NetworkPlan
from narrowcast.plans.verbs import judge

TARGETS: dict[str, Writer] = {
    "cyclonedds": cyclonedds,
    "rti": rti,
    "ultramessaging": ultramessaging,
    "aeron": aeron,
    "nats": nats,
    "csv": csv_tables,
}


def export(
    plan: Plan, to: str, out: str | Path, options: Options | None = None, *, overwrite: bool = False, **settings: Any
) -> Files:
    """Check that a plan is sound, make the target's files, and write them whole to the folder `out`.

    Parameters
    ----------
    plan : of any kind; which targets a kind has, docs/matrix.md says
    to : cyclonedds, rti, ultramessaging, aeron, nats or csv
    out : the folder to write
    options, settings : where the plan lives on the network; `base_address=`, `port=`, `ttl=`, `interface=` …

    Returns
    -------
    Files : the texts by file name, and notes on the target's limits; of a network plan in a folder for each site

    Raises
    ------
    PlanError : the plan is unsound
    UnsupportedError : there is no such target, or it has no notion of this kind of plan

    >>> import narrowcast as nc, tempfile
    >>> plan = nc.plan(nc.Interest.from_pairs([0, 0, 1], [0, 1, 1], [5.0, 2.0]), groups=2, sessions=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sorted(nc.export(plan, "nats", f"{folder}/nats").texts)
    ['flows.csv', 'nats.conf', 'subjects.csv', 'subscribers.csv']
    """
    if to not in TARGETS:
        raise UnsupportedError(f"to must be one of {', '.join(TARGETS)}, got {to!r}", works=tuple(TARGETS))
    faults = judge(plan).faults
    if faults:
        more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
        raise PlanError(f"the plan is unsound and was not exported: {faults[0]}{more}")
    chosen = replace(options or Options(), **settings)
    by_site = isinstance(plan, NetworkPlan) and to != "csv"
    files = per_site(plan, TARGETS[to], chosen) if by_site else TARGETS[to](plan, chosen)
    write_files(files, plan, to, chosen, out, overwrite=overwrite)
    return files


__all__ = ["TARGETS", "Files", "Options", "Writer", "export"]
