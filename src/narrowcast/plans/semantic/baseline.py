"""What it costs without channels: filters at every hop of shortest path trees, or unicast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.errors import UnsupportedError
from narrowcast.model.topology import Topology
from narrowcast.plans.semantic.kernels.price import audience_costs
from narrowcast.plans.semantic.window import Wanted, source_brokers, system

SCHEMES = ("spt", "unicast")


@dataclass(frozen=True, slots=True)
class Baseline:
    """`cost` is in the measure of `bandwidth`: link costs paid by these messages."""

    scheme: str
    cost: float


def baseline(
    topology: Topology,
    profiles: Sequence[Wanted | str],
    clients: ArrayLike,
    messages: Any,
    sources: ArrayLike,
    scheme: str = "spt",
) -> Baseline:
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
        raise UnsupportedError(f"there is no scheme {scheme!r}; there are {', '.join(SCHEMES)}", works=SCHEMES)
    made = system(topology, profiles, clients)
    brokers = source_brokers(made, sources, messages.num_rows)
    audience = made.audience(made.match(messages))
    paths = made.paths
    costs = audience_costs(paths.distance, paths.next_hop, brokers, made.gateways, audience, scheme == "unicast")
    return Baseline(scheme, float(np.sum(costs)))
