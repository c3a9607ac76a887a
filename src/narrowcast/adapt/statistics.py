"""Demand from snapshots of the statistics, and the streaming job that writes them beside a running system."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from narrowcast.model import Interest
from narrowcast.model.arrays import Floats
from narrowcast.model.demand import Demand
from narrowcast.model.snapshot import Snapshot

NO_KEY = ("_shard",)  # what plans that go by content are followed by: all messages of a shard are one flow


def demand_of(
    now: Snapshot,
    before: Snapshot | None = None,
    *,
    profiles: Mapping[str, str] | None = None,
    nodes: Mapping[str, str] | None = None,
) -> Demand:
    """The demand that a snapshot shows; with the one before it, also what has flowed since then alone."""
    interest = now.as_interest()
    latest = None if before is None else _with(interest, _since(now, before))
    return Demand(interest, now.key, seconds_of(now), latest, profiles or {}, nodes or {})


def seconds_of(snapshot: Snapshot) -> float:
    """The time of a snapshot: of its newest message, or where those bear no time, when it was written."""
    return snapshot.written_at if snapshot.newest_us is None else snapshot.newest_us / 1e6


def _since(now: Snapshot, before: Snapshot) -> Floats:
    """Messages a second of each flow between two snapshots, from their exact counts."""
    counted = dict(zip(*(before.flows[c].to_pylist() for c in ("flow", "messages")), strict=True))
    names, total = (now.flows[c].to_pylist() for c in ("flow", "messages"))
    new = np.array([max(0, n - counted.get(flow, 0)) for flow, n in zip(names, total, strict=True)], np.float64)
    return new / max(seconds_of(now) - seconds_of(before), 1e-9)


def _with(interest: Interest, rates: Floats) -> Interest:
    return Interest(interest.offsets, interest.users, rates, interest.n_users, interest.flow_names, interest.user_names)


@dataclass(frozen=True)
class Followed:
    """What to follow: the log of a system, the attributes that make a flow, and where snapshots go.

    `schema` names the attributes that profiles speak of with their Spark types; without it the key alone is known.
    """

    url: str
    system: str
    key: tuple[str, ...]
    folder: Path
    schema: str = ""
    every_s: float = 5.0
    half_life_s: float = 60.0
    master: str = "local[1]"

    @property
    def out(self) -> Path:
        return self.folder / "snapshots"

    def columns(self) -> str:
        """The schema of what is read, Spark's way of writing it."""
        made = self.schema or ", ".join(f"`{name}` string" for name in self.key)
        return f"_shard int, _sequence bigint, _time timestamp, {made}"


def start(what: Followed, subscriptions: Callable[[], Iterable[tuple[str, str]]]) -> Any:
    """Start the streaming statistics in this process (Spark, some seconds); what comes back has `query` and `stop()`.

    They go on from their checkpoint: after a restart everything still counts once.
    """
    from narrowcast.data.spark.session import session
    from narrowcast.data.statistics.follow import follow

    spark = session(what.master, quick=True)
    log = spark.readStream.format("narrowcast").option("url", what.url).option("system", what.system)
    return follow(
        spark,
        log.option("failOnDataLoss", "false").schema(what.columns()).load(),
        subscriptions,
        checkpoint=what.folder / "checkpoint",
        out=what.out,
        key=what.key,
        every_s=what.every_s,
        half_life_s=what.half_life_s,
        time="_time",
        overlap=False,
        forget=True,
    )
