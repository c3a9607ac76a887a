"""The table [adapt] of a configuration file, read into what the loop needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from narrowcast.adapt.decide import Policy
from narrowcast.adapt.statistics import Followed
from narrowcast.deliver.processes.configuration import Configuration
from narrowcast.errors import InputError

# Settings of the policy by their names in the file.
POLICY = {
    "horizon": "horizon_s", "threshold": "threshold", "proof": "proof", "effort": "effort", "join": "join",
    "warm": "warm_s", "moves": "moves", "joins": "joins", "reorganise": "reorganise_s",
}  # fmt: skip


@dataclass(frozen=True)
class AdaptSettings:
    """`plan`: the folder that the system was started with. `folder`: where plans, statistics and timeline go.

    `snapshots`: a folder that somebody else writes statistics to; None: they are kept here, by Spark.
    """

    plan: Path
    folder: Path
    followed: Followed
    policy: Policy
    snapshots: Path | None = None
    patience_s: float = 60.0


def settings_of(config: Configuration, *, snapshots: Path | None = None) -> AdaptSettings:
    """From a file that describes a system: its own or the one that `narrowcast up` wrote."""
    mine, coordinator = config.part("adapt"), config.part("coordinator")
    if "plan" not in coordinator:
        raise InputError(
            "there is no plan to go on from: coordinator.plan is missing", name="plan", hint="narrowcast up PLAN"
        )
    folder = config.path(mine.get("folder", "adapt"))
    timed: dict[str, Any] = {f"{name}_s": float(mine[name]) for name in ("every", "half_life") if name in mine}
    key = tuple(coordinator.get("key", ["symbol"]))
    followed = Followed(config.url, config.system, key, folder / "statistics", schema=mine.get("schema", ""), **timed)
    given = {POLICY[name]: value for name, value in mine.items() if name in POLICY}
    where = snapshots or (config.path(mine["snapshots"]) if "snapshots" in mine else None)
    return AdaptSettings(config.path(coordinator["plan"]), folder, followed, Policy(**given), where)
