"""Why a channel is there: what goes over it, for whom, and what the same messages would cost without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.kernels.semantic_price import audience_costs
from narrowcast.semantic.plan_result import SemanticPlan, traversals
from narrowcast.semantic.window import source_brokers

MOST_PROFILES = 3


@dataclass(frozen=True, slots=True)
class ChannelReason:
    """One channel over a set of messages.

    `cost` is its link costs in full, `spt` and `unicast` what the same messages would cost by those
    schemes (a message on several channels counts at each). `wanted` and `extra` are deliveries to
    gateways that do and do not want the message. `profiles` are those it matches most: (index, messages).
    """

    channel: int
    kind: str
    n_messages: int
    cost: float
    spt: float
    unicast: float
    wanted: int
    extra: int
    profiles: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        if not self.n_messages:
            return f"channel {self.channel} ({self.kind}): no message yet; it stands by for audiences not seen so far"
        saved = 1 - self.cost / self.spt if self.spt else 0.0
        words = "saves" if saved >= 0 else "loses"
        sent = self.wanted + self.extra
        return (
            f"channel {self.channel} ({self.kind}): {self.n_messages} messages to {sent} gateways in all, "
            f"{self.extra} of them in vain; {words} {abs(saved):.0%} against shortest path trees"
        )


def explain(plan: SemanticPlan, messages: Any, sources: ArrayLike) -> list[ChannelReason]:
    """A reason per channel, the costliest first.

    >>> import pyarrow as pa
    >>> from narrowcast.model import Topology
    >>> from narrowcast.semantic import plan
    >>> square = Topology([(0, 1), (0, 2), (1, 2)], cost=[3, 3, 1])
    >>> window = pa.table({"x": [1, 2, 3]})
    >>> made = plan(square, ["x > 0", "x > 1"], [(0, 1), (1, 2)], window, sources=0)
    >>> print(explain(made, window, 0)[0])
    channel 1 (audience): 2 messages to 4 gateways in all, 0 of them in vain; saves 33% against shortest path trees
    """
    made = plan.system
    brokers = source_brokers(made, sources, messages.num_rows)
    matched = made.match(messages)
    audience = made.audience(matched)
    rows, cols = plan.route(messages, brokers)
    paid = traversals(plan, rows, cols, brokers)
    paths = made.paths
    spt, unicast = (
        audience_costs(paths.distance, paths.next_hop, brokers, made.gateways, audience, each) for each in (False, True)
    )
    place = {int(g): j for j, g in enumerate(made.gateways)}
    reasons = []
    for c, channel in enumerate(plan.channels):
        mine = rows[cols == c]
        reached = audience[np.ix_(mine, [place[g] for g in channel.gateways if g in place])]
        count = np.asarray(matched[mine].sum(axis=0)).ravel()
        top = np.argsort(-count, kind="stable")[:MOST_PROFILES]
        reasons.append(
            ChannelReason(
                c,
                channel.kind,
                int(mine.size),
                float(paid[cols == c].sum()),
                float(spt[mine].sum()),
                float(unicast[mine].sum()),
                int(reached.sum()),
                int(mine.size * len(channel.gateways) - reached.sum()),
                tuple((int(p), int(count[p])) for p in top if count[p]),
            )
        )
    return sorted(reasons, key=lambda reason: (-reason.cost, reason.channel))
