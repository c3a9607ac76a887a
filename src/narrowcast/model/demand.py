"""The demand as the statistics have it at one moment: what every decision of this room is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from narrowcast.model import Interest


@dataclass(frozen=True, eq=False)
class Demand:
    """Who wants what and how fast it flows, at `time` (seconds).

    `interest` has names and smoothed rates: what to plan for. `latest` has the rates of the time since the
    demand before alone, which no plan has seen yet: what plans are tried on. `profiles` are the texts of the
    subscriptions, `nodes` the brokers they are behind, `messages` a sample (an Arrow table with a column
    `_broker`), as far as a kind of plan needs them.
    """

    time: float
    interest: Interest
    latest: Interest | None = None
    profiles: Mapping[str, str] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)
    messages: Any = None

    @property
    def unseen(self) -> Demand:
        """The same with the rates of the last stretch alone."""
        return self if self.latest is None else replace(self, interest=self.latest)
