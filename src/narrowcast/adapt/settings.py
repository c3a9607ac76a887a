"""The table [adapt] of a configuration file, read into what the loop needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from narrowcast.adapt.decide import Policy
from narrowcast.adapt.statistics import NO_KEY, Followed
from narrowcast.deliver.processes.system import System
from narrowcast.errors import InputError
from narrowcast.model.folder import plan_key
from narrowcast.plans.channels.aggregation import PRICES

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
    prices: Path | None = None  # measured ones, if there are some


def settings_of(system: System, *, snapshots: Path | None = None) -> AdaptSettings:
    """From a file that describes a system: its own or the one that `narrowcast up` wrote."""
    mine = system.adapt
    if system.plan is None:
        raise InputError(
            "adapt needs a plan to start from, but coordinator.plan is not set", name="plan", hint="narrowcast up PLAN"
        )
    folder = system.path(mine.folder)
    given = {"every_s": mine.every, "half_life_s": mine.half_life}
    timed: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    key = system.coordinator.key or plan_key(system.plan) or NO_KEY
    followed = Followed(system.url, system.system, key, folder / "statistics", schema=mine.schema, **timed)
    policy = {to: value for name, to in POLICY.items() if (value := getattr(mine, name)) is not None}
    where = snapshots or (system.path(mine.snapshots) if mine.snapshots else None)
    return AdaptSettings(system.plan, folder, followed, Policy(**policy), where, prices=system.path(PRICES))
