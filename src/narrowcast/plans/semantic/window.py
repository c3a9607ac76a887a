"""What a plan is made from: who wants what where, and which messages went by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.errors import InputError
from narrowcast.model.arrays import Bools, Floats, Ints, indices
from narrowcast.model.topology import Topology
from narrowcast.network import Paths, shortest_paths
from narrowcast.plans.semantic.statistics import Statistics
from narrowcast.profiles import Profile
from narrowcast.profiles.xpath.xpath import XPath

CHUNK = 4096

Wanted = Profile | XPath | str


@dataclass(frozen=True, eq=False)
class OverlaySystem:
    """An overlay, the distinct profiles, and where they are wanted: `wants[p, j]` at broker `gateways[j]`."""

    paths: Paths
    profiles: tuple[Profile, ...]
    clients: Ints
    gateways: Ints
    wants: Bools

    @property
    def topology(self) -> Topology:
        return self.paths.topology

    @cached_property
    def _matcher(self) -> Any:
        from narrowcast.profiles import Matcher

        return Matcher(self.profiles)

    def match(self, messages: Any) -> Any:
        """A sparse (message × profile) matrix of what matches."""
        from scipy.sparse import csr_array

        rows, cols = self._matcher.match(messages)
        shape = (messages.num_rows, len(self.profiles))
        return csr_array((np.ones(rows.size, np.int32), (rows, cols)), shape=shape)

    def audience(self, matched: Any) -> Bools:
        """(message × gateway): which gateways have a client that wants the message."""
        from scipy.sparse import csr_array

        wants = csr_array(self.wants.astype(np.int32))
        found = np.zeros((matched.shape[0], self.gateways.size), np.bool_)
        for start in range(0, matched.shape[0], CHUNK):
            part = matched[start : start + CHUNK] @ wants
            found[start : start + CHUNK] = part.toarray() > 0
        return found


@dataclass(frozen=True, eq=False)
class Window:
    """The messages seen: what they match, who wants them, their weight and the broker they come from.

    `sources` lists the brokers that publish, heaviest first; message i comes from
    `sources[source[i]]`. With no source known `sources` is empty and `source` all 0.
    """

    matched: Any
    audience: Bools
    weight: Floats
    sources: Ints
    source: Ints


def system(topology: Topology, profiles: Sequence[Wanted], clients: ArrayLike) -> OverlaySystem:
    """Check and index the subscribers' side."""
    wanted = tuple(read_profile(profile) for profile in profiles)
    pairs = np.asarray(clients)
    if pairs.size == 0:
        pairs = np.zeros((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise InputError(
            f"clients must have shape (clients, 2), profile index and gateway broker, got {pairs.shape}", name="clients"
        )
    profile = indices("clients[:, 0] (the profile)", pairs[:, 0], high=len(wanted))
    broker = indices("clients[:, 1] (the gateway)", pairs[:, 1], high=topology.n_brokers)
    gateways, place = np.unique(broker, return_inverse=True)
    wants = np.zeros((len(wanted), gateways.size), np.bool_)
    wants[profile, place] = True
    paths = shortest_paths(topology)
    _check_connected(paths, gateways)
    return OverlaySystem(paths, wanted, np.column_stack((profile, broker)), gateways, wants)


def window(made: OverlaySystem, messages: Any, sources: ArrayLike | None, half_life: float | None = None) -> Window:
    """Match the messages; the last one is the newest, and `half_life` messages before it count half.

    In place of messages there may be the Statistics of some, with their own sources and counts.
    """
    if isinstance(messages, Statistics):
        return _measured(made, messages)
    matched = made.match(messages)
    n = matched.shape[0]
    age = np.arange(n - 1, -1, -1)
    weight = np.ones(n) if half_life is None else 0.5 ** (age / half_life)
    if sources is None:
        brokers, source = np.zeros(0, np.int64), np.zeros(n, np.int64)
    else:
        brokers, source = _ranked(source_brokers(made, sources, n))
    return Window(matched, made.audience(matched), weight, brokers, source)


def _measured(made: OverlaySystem, found: Statistics) -> Window:
    matched = found.matched(made.profiles)
    known = found.source[found.source >= 0]
    if known.size < found.source.size:
        brokers, source = np.zeros(0, np.int64), np.zeros(found.source.size, np.int64)
    else:
        source_brokers(made, known, known.size)  # refuses what is no broker
        brokers, source = _ranked(known)
    return Window(matched, made.audience(matched), found.count, brokers, source)


def source_brokers(made: OverlaySystem, sources: ArrayLike, n: int) -> Ints:
    """The publisher's broker of each message, from one per message or one for all."""
    given = np.atleast_1d(np.asarray(sources))
    brokers = indices("sources", given, high=made.topology.n_brokers)
    _check_connected(made.paths, np.concatenate((np.unique(brokers), made.gateways)))
    if np.ndim(sources) == 0:
        return np.full(n, brokers[0])
    if brokers.size != n:
        raise InputError(f"sources must have {n} entries, got {brokers.size}", name="sources", hint="or one broker")
    return brokers


def _ranked(source: Ints) -> tuple[Ints, Ints]:
    brokers, place, count = np.unique(source, return_inverse=True, return_counts=True)
    order = np.argsort(-count, kind="stable")
    rank = np.empty(order.size, np.int64)
    rank[order] = np.arange(order.size)
    return brokers[order], rank[place]


def _check_connected(paths: Paths, brokers: Ints) -> None:
    if brokers.size and not np.isfinite(paths.distance[brokers[0], brokers]).all():
        far = int(brokers[np.argmax(~np.isfinite(paths.distance[brokers[0], brokers]))])
        raise InputError(
            f"no path joins brokers {int(brokers[0])} and {far}", name="topology", hint="add a link between the parts"
        )


def read_profile(profile: Wanted) -> Profile:
    """A profile from text of either notation, or from a path."""
    return profile if isinstance(profile, Profile) else Profile.parse(str(profile))
