"""What a semantic plan is made for: an overlay, who wants what where, and the messages that went by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.errors import InputError, UnsupportedError
from narrowcast.model.arrays import Ints
from narrowcast.model.topology import Topology
from narrowcast.plans.semantic.statistics import Statistics
from narrowcast.plans.semantic.window import OverlaySystem, Wanted, Window, source_brokers, window


@dataclass(frozen=True, eq=False)
class OverlayDemand:
    """An overlay of brokers, the profiles, the clients that hold them, and a window of messages.

    Parameters
    ----------
    topology : brokers and links
    profiles : Profile, XPath or their texts
    clients : (profile index, gateway broker) pairs
    messages : an Arrow table, the newest last
    sources : the publisher's broker of each message, or one for all; None where that is not known
    names : of the clients; by default their numbers
    bounds : the latency bound of each client, inf or nan for none
    key : the attributes whose values name a message's flow, if they do
    statistics : what is known of the whole window, where `messages` is a sample of it or is not there

    >>> import pyarrow as pa
    >>> OverlayDemand(Topology([(0, 1), (1, 2)]), ["x > 1"], [(0, 2)], pa.table({"x": [1, 2]}), sources=0)
    OverlayDemand(3 brokers, 1 profiles, 1 clients, 2 messages)
    """

    topology: Topology
    profiles: Sequence[Wanted]
    clients: ArrayLike
    messages: Any = None
    sources: ArrayLike | None = None
    names: Sequence[str] | None = None
    bounds: ArrayLike | None = None
    key: tuple[str, ...] = ()
    statistics: Statistics | None = None

    def seen(self, made: OverlaySystem, half_life: float | None = None) -> Window:
        """What the messages match and who wants them; from the statistics, where there are any."""
        if self.statistics is not None:
            return window(made, self.statistics, None)
        if self.messages is None:
            raise InputError("messages must be an Arrow table, got None. Statistics do as well", name="messages")
        return window(made, self.messages, self.sources, half_life)

    def brokers(self, made: OverlaySystem) -> Ints | None:
        """The publisher's broker of each message; None where that is not known."""
        if self.messages is None or self.sources is None:
            return None
        return source_brokers(made, self.sources, self.messages.num_rows)

    def sent(self, made: OverlaySystem) -> tuple[Any, Ints]:
        """The messages and the broker of each; UnsupportedError where the demand does not hold them."""
        brokers = self.brokers(made)
        if brokers is None or not brokers.size:
            raise UnsupportedError(
                "the plan does not hold messages with their source", works=("messages with a source",)
            )
        return self.messages, brokers

    def __repr__(self) -> str:
        seen = f"{self.messages.num_rows:,} messages" if self.messages is not None else "statistics"
        brokers, clients = self.topology.n_brokers, len(np.asarray(self.clients))
        return f"OverlayDemand({brokers:,} brokers, {len(self.profiles):,} profiles, {clients:,} clients, {seen})"
