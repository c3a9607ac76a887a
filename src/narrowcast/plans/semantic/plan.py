"""Channels on an overlay for what clients want and what messages went by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.errors import InfeasibleError, InputError
from narrowcast.model.topology import Topology
from narrowcast.plans.semantic.build import Build
from narrowcast.plans.semantic.demand import OverlayDemand
from narrowcast.plans.semantic.methods.bounds import check_reachable, read_bounds
from narrowcast.plans.semantic.methods.merging import JOIN_AT_BROKER, PUBLISHED
from narrowcast.plans.semantic.methods.trees import RENDEZVOUS
from narrowcast.plans.semantic.result import SemanticPlan
from narrowcast.plans.semantic.statistics import Statistics
from narrowcast.plans.semantic.window import Wanted, system
from narrowcast.plans.unused import refuse_unused

METHODS = ("search", *PUBLISHED, JOIN_AT_BROKER)


def plan(
    topology: Topology,
    profiles: Sequence[Wanted],
    clients: ArrayLike,
    messages: Any,
    sources: ArrayLike | None = None,
    variant: str | None = None,
    max_channels: int | None = None,
    rendezvous: str = "best",
    seed: int = 0,
    *,
    method: str | None = None,
    half_life: float | None = None,
    latency_bound: ArrayLike | None = None,
) -> SemanticPlan:
    """Channels, their gateways and trees, and the rule from messages to channels (SemCast, and ours).

    `search` makes a channel per audience (the set of gateways that want a message) and, under a cap,
    merges those that lose least; the others are as published. Whoever matches a message is reached,
    also by messages the window never saw.

    Parameters
    ----------
    topology : the overlay of brokers
    profiles : Profile, XPath or their texts
    clients : (profile index, gateway broker) pairs
    messages : the window, an Arrow table; of messages measured elsewhere their Statistics do
    sources : the publisher's broker of each message, or one for all
    method : search; semcast, merge, noise-merge or central, as published; or semcast-broker, the channels of
        semcast on better trees (a gateway joins at the nearest broker, not at the nearest gateway). `variant` is
        another name for it
    max_channels : the most channels, those of the fallback included
    rendezvous : best, the least total for these sources, or random, as published
    half_life : so many messages before the last one count half
    latency_bound : one for all clients or one each (nan for none); every message from a source of the
        window is at the client's gateway within that delay

    Returns
    -------
    SemanticPlan : `channels`, each with expression, gateways, rendezvous, edges and rate; `cost`; `route`

    Raises
    ------
    InputError : a name or an index that is not there, or messages that lack a column of a profile
    InfeasibleError : no plan keeps the latency bound or the cap; it says which would do

    >>> import pyarrow as pa
    >>> line = Topology([(0, 1), (1, 2), (1, 3)])
    >>> window = pa.table({"x": [1, 2, 3, 9]})
    >>> made = plan(line, ["x > 1", "x > 2"], [(0, 2), (1, 3)], window, sources=0)
    >>> made.cost.total, [channel.gateways for channel in made.channels if channel.kind == "audience"]
    (8.0, [(2,), (2, 3)])
    >>> [pairs.tolist() for pairs in made.route(pa.table({"x": [2, 1000]}), sources=0)]
    [[0, 1], [0, 1]]
    """
    if method is not None and variant is not None and method != variant:
        raise InputError(
            f"method and variant must be the same, got {method!r} and {variant!r}. Give only method", name="method"
        )
    measured = messages if isinstance(messages, Statistics) else None
    of_each = latency_bound is not None and np.ndim(latency_bound) > 0
    demand = OverlayDemand(
        topology,
        profiles,
        clients,
        None if measured is not None else messages,
        None if measured is not None else sources,
        bounds=latency_bound if of_each else None,
        statistics=measured,
    )
    bound = None if latency_bound is None or of_each else float(np.asarray(latency_bound))
    return make(demand, method or variant or "search", max_channels, rendezvous, half_life, bound, seed)


def make(
    demand: OverlayDemand,
    method: str = "search",
    max_channels: int | None = None,
    rendezvous: str = "best",
    half_life: float | None = None,
    latency_bound: float | None = None,
    seed: int = 0,
    time_limit: float | None = None,
    progress: object = None,
    previous: object = None,
) -> SemanticPlan:
    """The plan for a demand; see `plan`. `latency_bound` is for clients that the demand has no bound for.

    >>> import pyarrow as pa
    >>> demand = OverlayDemand(Topology([(0, 1), (1, 2)]), ["x > 1"], [(0, 2)], pa.table({"x": [1, 2]}), sources=0)
    >>> made = make(demand, method="semcast")
    >>> made.cost.total, made.cost.full, made.cost.baselines["spt"].total
    (2.0, 2.0, 2.0)
    """
    refuse_unused("semantic plans", time_limit=time_limit, progress=progress, previous=previous)
    _check_name("method", method, METHODS)
    _check_name("rendezvous", rendezvous, RENDEZVOUS)
    if max_channels is not None and max_channels < 1:
        raise InfeasibleError(f"max_channels must be at least 1, got {max_channels}", budget="max_channels", smallest=1)
    if half_life is not None and demand.statistics is not None:
        raise InputError(
            f"half_life must be None with statistics, got {half_life}. Give it to narrowcast measure", name="half_life"
        )
    made = system(demand.topology, demand.profiles, demand.clients)
    if demand.names is not None and len(demand.names) != len(made.clients):
        raise InputError(
            f"names must be one for each of {len(made.clients)} clients, got {len(demand.names)}", name="names"
        )
    seen = demand.seen(made, half_life)
    each, bounds = read_bounds(made, _bounds(demand, latency_bound))
    if bounds is not None:
        check_reachable(made, seen, bounds)
    others = {"half_life": half_life, "latency_bound": latency_bound}
    asked = replace(demand, profiles=made.profiles, clients=made.clients, bounds=each)
    return Build(asked, made, seen, bounds, max_channels, rendezvous, seed, others).plan(method)


def _check_name(name: str, given: str, allowed: tuple[str, ...]) -> None:
    if given not in allowed:
        raise InputError(
            f"{name} must be one of {', '.join(allowed)}, got {given!r}", name=name, allowed=allowed, got=given
        )


def _bounds(demand: OverlayDemand, for_others: float | None) -> ArrayLike | None:
    """Each client's own bound, else the one for all."""
    if demand.bounds is None or for_others is None:
        return for_others if demand.bounds is None else demand.bounds
    own = np.asarray(demand.bounds, np.float64)
    return np.where(np.isfinite(own), own, for_others)
