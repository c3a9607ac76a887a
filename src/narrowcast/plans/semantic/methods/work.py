"""What brokers have to do: look up channel ids, or evaluate filters (SemCast §5.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.model.arrays import Bools, Ints
from narrowcast.plans.semantic.kernels.price import audience_visits
from narrowcast.plans.semantic.methods.audiences import in_common
from narrowcast.plans.semantic.result import SemanticPlan
from narrowcast.plans.semantic.window import OverlaySystem, source_brokers, system


@dataclass(frozen=True, slots=True)
class Work:
    """Operations for a set of messages. A look-up is by channel id; an evaluation tests one profile.

    `at_sources` and `at_gateways` are evaluations at the edge, `inside` is what all brokers between
    and on the way do: look-ups with channels, evaluations with filters at every hop.
    """

    at_sources: float
    inside: float
    at_gateways: float


def filter_tables(made: OverlaySystem, source: int, covers: Bools | None = None) -> Ints:
    """How many profiles each broker keeps in the shortest path tree from a source (0 off the tree).

    A broker keeps what its subscribers and the brokers below it want; `covers[i, j]` (profile i covers
    j) leaves out what another profile there covers. See `covering`.
    """
    below = _below(made, source)
    if covers is None:
        return np.asarray(below.sum(axis=1))
    n = len(made.profiles)
    # Of profiles that cover each other only the first stays.
    over = covers & ~(covers.T & (np.arange(n)[:, None] >= np.arange(n)[None, :]))
    np.fill_diagonal(over, False)
    return np.array([np.count_nonzero(row & ~over[row].any(axis=0)) for row in below], np.int64)


def covering(made: OverlaySystem, matched: Any | None = None) -> Bools:
    """covers[i, j]: profile i provably covers j. With a window's matches only pairs it does not refute are tried."""
    n = len(made.profiles)
    maybe = np.ones((n, n), np.bool_)
    if matched is not None:
        dense = matched.toarray().astype(np.float32).T
        maybe = in_common(dense, dense) == dense.sum(axis=1)[None, :]
    np.fill_diagonal(maybe, False)
    result = np.zeros((n, n), np.bool_)
    for i, j in zip(*np.nonzero(maybe), strict=True):
        one, other = made.profiles[i], made.profiles[j]
        result[i, j] = type(one) is type(other) and one.covers(other)
    return result


def channel_work(plan: SemanticPlan, messages: Any, sources: ArrayLike) -> Work:
    """Sources match each message against all distinct profiles, gateways against those of their clients."""
    made = plan.system
    brokers = source_brokers(made, sources, messages.num_rows)
    rows, cols = plan.route(messages, brokers)
    hops = _hops(made)
    links = np.array([len(channel.edges) for channel in plan.channels], np.int64)
    roots = np.array([channel.rendezvous for channel in plan.channels], np.int64)
    table = {int(g): int(k) for g, k in zip(made.gateways, made.wants.sum(axis=0), strict=True)}
    kept = np.array([sum(table.get(g, 0) for g in channel.gateways) for channel in plan.channels], np.int64)
    if not cols.size:
        return Work(float(messages.num_rows * len(made.profiles)), 0.0, 0.0)
    inside = (hops[brokers[rows], roots[cols]] + 1 + links[cols]).sum()
    return Work(float(messages.num_rows * len(made.profiles)), float(inside), float(kept[cols].sum()))


def spt_work(
    topology: Any, profiles: Any, clients: Any, messages: Any, sources: ArrayLike, *, cover: bool = False
) -> Work:
    """With filters at every hop, each broker that a message passes tests it against its whole table."""
    made = system(topology, profiles, clients)
    brokers = source_brokers(made, sources, messages.num_rows)
    matched = made.match(messages)
    audience = made.audience(matched)
    covers = covering(made, matched) if cover else None
    start, inside, end = 0.0, 0.0, 0.0
    local = made.wants.sum(axis=0)
    for source in np.unique(brokers).tolist():
        mine = audience[brokers == source]
        table = filter_tables(made, source, covers)
        visits = audience_visits(made.paths.next_hop, source, made.gateways, mine)
        start += float(len(mine) * table[source])
        inside += float(np.delete(visits * table, source).sum())
        end += float((mine.sum(axis=0) * local).sum())
    return Work(start, inside, end)


def _below(made: OverlaySystem, source: int) -> Bools:
    """(broker × profile): wanted at the broker or below it in the source's shortest path tree."""
    n = made.topology.n_brokers
    below = np.zeros((n, len(made.profiles)), np.bool_)
    for j, gateway in enumerate(made.gateways.tolist()):
        for broker in made.paths.path(gateway, source):
            below[broker] |= made.wants[:, j]
    return below


def _hops(made: OverlaySystem) -> Ints:
    """Links on the cheapest path between all brokers."""
    from narrowcast.network.kernels.paths import sum_along
    from narrowcast.network.paths import adjacency

    offsets, neighbours, link = adjacency(made.topology)
    return np.asarray(sum_along(made.paths.next_hop, offsets, neighbours, np.ones(link.size)))
