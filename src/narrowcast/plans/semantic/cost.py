"""What the messages of a window cost: on the trees of their channels, with the way there, and without channels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

import numpy as np

from narrowcast.model.arrays import Bools, Floats, Ints
from narrowcast.model.cost import Compared, Cost
from narrowcast.network import Paths
from narrowcast.plans.semantic.kernels.price import audience_costs
from narrowcast.plans.semantic.methods.rendezvous import way_costs
from narrowcast.plans.semantic.window import OverlaySystem, Window

SCHEMES = ("spt", "unicast")


class Priced(Protocol):
    """A tree as far as its price goes."""

    @property
    def rendezvous(self) -> int: ...
    @property
    def link_cost(self) -> float: ...
    @property
    def allowed(self) -> float: ...


def traversals(
    paths: Paths, quick: Paths | None, trees: Sequence[Priced], rows: Ints, cols: Ints, brokers: Ints
) -> Floats:
    """Per routed pair: the way from the message's source to the rendezvous, and the tree."""
    root = np.array([tree.rendezvous for tree in trees], np.int64)
    below = np.array([tree.link_cost for tree in trees], np.float64)
    if not cols.size:
        return np.zeros(0)
    pairs = (brokers[rows], root[cols])
    if quick is None:
        return np.asarray(paths.distance[pairs] + below[cols])
    allowed = np.array([tree.allowed for tree in trees], np.float64)
    way = way_costs(paths, quick, pairs, allowed[cols])
    # Where not even the quickest way is in time, it is the best there is.
    return np.where(np.isfinite(way), way, quick.cost[pairs]) + below[cols]


def rates_and_cost(
    made: OverlaySystem, quick: Paths | None, trees: Sequence[Priced], seen: Window, rows: Ints, cols: Ints
) -> tuple[Floats, Cost]:
    """The weight that comes to each channel, and the cost: on the trees, and in `full` where sources are known."""
    weight = seen.weight[rows]
    rate: Floats = np.bincount(cols, weights=weight, minlength=len(trees)).astype(np.float64)
    tree = float(sum(float(k) * each.link_cost for k, each in zip(rate, trees, strict=True)))
    if not seen.sources.size:
        return rate, Cost(tree, {"tree": tree})
    brokers = seen.sources[seen.source]
    full = float((traversals(made.paths, quick, trees, rows, cols, brokers) * weight).sum())
    return rate, Cost(tree, {"tree": tree, "full": full}, partial(_compared, made, seen))


def _compared(made: OverlaySystem, seen: Window) -> Compared:
    """The same messages without channels, in full bandwidth."""
    brokers = seen.sources[seen.source]
    each = {scheme: float(scheme_costs(made, brokers, seen.audience, scheme) @ seen.weight) for scheme in SCHEMES}
    return Compared({scheme: Cost(cost) for scheme, cost in each.items()})


def scheme_costs(made: OverlaySystem, brokers: Ints, audience: Bools, scheme: str) -> Floats:
    """Per message: what it costs to get it from its broker to its audience by a scheme without channels."""
    paths = made.paths
    return np.asarray(
        audience_costs(paths.distance, paths.next_hop, brokers, made.gateways, audience, scheme == "unicast")
    )
