"""The demand: who wants what and how fast it flows. What plans are made for, and what they are adapted to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from narrowcast.model.interest import Interest


@dataclass(frozen=True, eq=False)
class Demand:
    """Who wants which flow, how fast each is, and which attributes of a message make its flow.

    `key` names those attributes; it is empty where flows have names that no message bears (content classes), or
    where nobody said. `folder` is where `measure` left its tables. `inputs` are the fingerprints of what it was
    read from.

    At one moment of a running system (`time`, seconds) `interest` has smoothed rates, to plan for, and `latest`
    those since the moment before alone, which no plan has seen: plans are tried on them. `profiles` are the
    texts of the subscriptions, `nodes` the brokers they are behind, `messages` a sample (an Arrow table with a
    column `_broker`), as far as a kind of plan needs them.

    >>> demand = Demand(Interest.from_pairs([0, 0, 1], [0, 1, 1], [5.0, 2.0]), key=("symbol",))
    >>> demand
    Demand(2 flows by symbol, 2 subscribers, 3 wishes)
    """

    interest: Interest
    key: tuple[str, ...] = ()
    time: float = 0.0
    latest: Interest | None = None
    profiles: Mapping[str, str] = field(default_factory=dict)
    nodes: Mapping[str, str] = field(default_factory=dict)
    messages: Any = None
    folder: Path | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Demand | Interest) -> Demand:
        """A demand as it is; an interest as a demand that knows no key."""
        return given if isinstance(given, Demand) else cls(given)

    @property
    def unseen(self) -> Demand:
        """The same with the rates of the last stretch alone."""
        return self if self.latest is None else replace(self, interest=self.latest)

    def __repr__(self) -> str:
        n, by = self.interest, f" by {', '.join(self.key)}" if self.key else ""
        return f"Demand({n.n_flows:,} flows{by}, {n.n_users:,} subscribers, {n.n_pairs:,} wishes)"
