"""Why a channel is there: what goes over it, for whom, and what the same messages would cost without it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.model.arrays import Floats, Ints
from narrowcast.plans.semantic.cost import SCHEMES, scheme_costs, traversals
from narrowcast.plans.semantic.kernels.price import audience_costs
from narrowcast.plans.semantic.result import SemanticPlan
from narrowcast.plans.semantic.window import OverlaySystem, source_brokers

MOST_PROFILES = 3


@dataclass(frozen=True, slots=True)
class ChannelReason:
    """One channel over a set of messages.

    `cost` is its link costs in full, `spt` and `unicast` what the same messages would cost by those
    schemes (a message on several channels counts at each). `wanted` and `extra` are deliveries to
    gateways that do and do not want the message. `profiles` are those it matches most: (index, messages).
    `alone` is the cost if every profile had a channel of its own, at best a shortest path tree: what it is
    above `cost` is what serving these profiles together gained.
    """

    channel: int
    kind: str
    n_messages: int
    cost: float
    spt: float
    unicast: float
    wanted: int
    extra: int
    alone: float
    profiles: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        if not self.n_messages:
            return f"channel {self.channel} ({self.kind}): no message yet; it stands by for audiences not seen so far"
        said = (
            f"channel {self.channel} ({self.kind}): {self.n_messages:,} messages make {self.wanted + self.extra:,} "
            f"deliveries to gateways, {self.extra:,} of them in vain"
        )
        others = ((self.spt, "shortest path trees"), (self.alone, "a channel for each profile"))
        told = [f"{self.cost / cost:.0%} of {name}" for cost, name in others if cost]
        return f"{said}; they cost {' and '.join(told)}" if told else said


def channel_reasons(plan: SemanticPlan, messages: Any, sources: ArrayLike) -> list[ChannelReason]:
    """A reason per channel, the costliest first.

    >>> import pyarrow as pa
    >>> from narrowcast.model import Topology
    >>> from narrowcast.plans.semantic.api import plan
    >>> square = Topology([(0, 1), (0, 2), (1, 2)], cost=[3, 3, 1])
    >>> window = pa.table({"x": [1, 2, 3]})
    >>> made = plan(square, ["x > 0", "x > 1"], [(0, 1), (1, 2)], window, sources=0)
    >>> why = channel_reasons(made, window, 0)[0]
    >>> for part in str(why).split("; "):
    ...     print(part)
    channel 1 (audience): 2 messages make 4 deliveries to gateways, 0 of them in vain
    they cost 67% of shortest path trees and 67% of a channel for each profile
    """
    made = plan.system
    brokers = source_brokers(made, sources, messages.num_rows)
    matched = made.match(messages)
    audience = made.audience(matched)
    rows, cols = plan.route(messages, brokers)
    paid = traversals(made.paths, plan.quick, plan.channels, rows, cols, brokers)
    spt, unicast = (scheme_costs(made, brokers, audience, scheme) for scheme in SCHEMES)
    alone = _alone(made, matched, brokers)
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
                float(alone[mine].sum()),
                tuple((int(p), int(count[p])) for p in top if count[p]),
            )
        )
    return sorted(reasons, key=lambda reason: (-reason.cost, reason.channel))


def _alone(made: OverlaySystem, matched: Any, brokers: Ints) -> Floats:
    """Per message what it would cost if each profile that matches it had a shortest path tree of its own."""
    sources, group = np.unique(brokers, return_inverse=True)
    held = np.flatnonzero(made.wants.any(axis=1))
    paths, total = made.paths, np.zeros(brokers.size)
    for s, source in enumerate(sources.tolist()):
        root = np.full(held.size, source)
        tree = audience_costs(paths.distance, paths.next_hop, root, made.gateways, made.wants[held], False)
        mine = np.flatnonzero(group == s)
        total[mine] = matched[mine][:, held] @ tree
    return total
