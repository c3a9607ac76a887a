"""From a plan to the configuration of the engine that people run. One file per target, one line each here."""

from __future__ import annotations

from pathlib import Path

from narrowcast.errors import PlanError, UnsupportedError
from narrowcast.evaluate import JUDGES, judge
from narrowcast.exports.aeron import aeron
from narrowcast.exports.csv_tables import csv_tables
from narrowcast.exports.cyclonedds import cyclonedds
from narrowcast.exports.files import Files, Writer
from narrowcast.exports.nats import nats
from narrowcast.exports.options import Options
from narrowcast.exports.rti import rti
from narrowcast.exports.ultramessaging import ultramessaging
from narrowcast.exports.write import write_files
from narrowcast.model.plan import Plan

TARGETS: dict[str, Writer] = {
    "cyclonedds": cyclonedds,
    "rti": rti,
    "ultramessaging": ultramessaging,
    "aeron": aeron,
    "nats": nats,
    "csv": csv_tables,
}


def export_plan(
    plan: Plan, to: str, out: str | Path, options: Options | None = None, *, overwrite: bool = False
) -> Files:
    """Check that the plan is sound, make the target's files, and write them whole to the folder `out`.

    Raises PlanError for an unsound plan, and what each target says of its own limits.
    """
    if to not in TARGETS:
        raise UnsupportedError(f"no export to {to!r}; there are {', '.join(TARGETS)}", works=tuple(TARGETS))
    faults = judge(plan).faults if plan.kind in JUDGES else ()
    if faults:
        more = f" and {len(faults) - 1} more" if len(faults) > 1 else ""
        raise PlanError(f"the plan is unsound and was not exported: {faults[0]}{more}")
    chosen = options or Options()
    files = TARGETS[to](plan, chosen)
    write_files(files, plan, to, chosen, out, overwrite=overwrite)
    return files


__all__ = ["TARGETS", "Files", "Options", "Writer", "export_plan"]
