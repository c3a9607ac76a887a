"""What it costs without channels: filters at every hop of shortest path trees, or unicast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.errors import InputError
from narrowcast.model.topology import Topology
from narrowcast.plans.semantic.cost import SCHEMES, scheme_costs
from narrowcast.plans.semantic.window import Wanted, source_brokers, system


@dataclass(frozen=True, slots=True)
class SchemeCost:
    """`cost` is in the measure of `bandwidth`: link costs paid by these messages."""

    scheme: str
    cost: float


def baseline(
    topology: Topology,
    profiles: Sequence[Wanted],
    clients: ArrayLike,
    messages: Any,
    sources: ArrayLike,
    scheme: str = "spt",
) -> SchemeCost:
    """The cost of these messages by a scheme without channels.

    `spt`: one shortest path tree per source with content filters at every hop, so that a message goes
    only where somebody below wants it. `unicast`: its own shortest path to each interested gateway.

    >>> import pyarrow as pa
    >>> line = Topology([(0, 1), (1, 2), (1, 3)])
    >>> wanted, clients = ["x > 1", "x > 2"], [(0, 2), (1, 3)]
    >>> messages = pa.table({"x": [1, 2, 3]})
    >>> [baseline(line, wanted, clients, messages, 0, scheme).cost for scheme in SCHEMES]
    [5.0, 6.0]
    """
    if scheme not in SCHEMES:
        raise InputError(
            f"scheme must be one of {', '.join(SCHEMES)}, got {scheme!r}", name="scheme", allowed=SCHEMES, got=scheme
        )
    made = system(topology, profiles, clients)
    brokers = source_brokers(made, sources, messages.num_rows)
    audience = made.audience(made.match(messages))
    return SchemeCost(scheme, float(np.sum(scheme_costs(made, brokers, audience, scheme))))
