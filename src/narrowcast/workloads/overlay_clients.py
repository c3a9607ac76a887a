"""Clients of an overlay: profiles with a chosen degree of sharing and overlap, and messages for them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from narrowcast.errors import InputError
from narrowcast.model import Topology
from narrowcast.model.arrays import Ints, frozen
from narrowcast.workloads.checks import generator, number, share, whole

#: Readings are whole numbers in [0, SCALE): profile texts stay short and mean exactly what they say.
SCALE = 1_000_000
START_US = 1_767_605_400_000_000  # 2026-01-05 09:30 UTC, a Monday


@dataclass(frozen=True, eq=False)
class OverlayClients:
    """Distinct profiles as text, who holds them where, and the messages of a statistics window."""

    profiles: tuple[str, ...]
    clients: Ints
    """(profile index, gateway broker) pairs, one row per client."""
    messages: pa.Table
    sources: Ints
    """The broker of each message's publisher."""


def overlay_clients(
    topology: Topology,
    clients: int = 7000,
    *,
    selectivity: float = 2.0,
    overlap: float = 0.0,
    messages: int = 10_000,
    seed: int = 0,
) -> OverlayClients:
    """Clients at random gateways with profiles picked at random from a set of clients/selectivity (SemCast, §5).

    A message has a reading spread evenly over a circle; a profile is an arc of it. `overlap` is the
    mean share of one profile's messages that another profile also matches: 0 cuts the circle into equal
    arcs without common points; above 0 arcs lie anywhere with lengths spread around `overlap` of
    the circle, so that some contain others. Messages come from the brokers with the role source.

    >>> from narrowcast.workloads.overlay import overlay
    >>> made = overlay_clients(overlay(40), clients=6, selectivity=3, messages=5, seed=0)
    >>> made.profiles
    ('reading < 500000', 'reading >= 500000')
    >>> made.clients.shape, made.messages.num_rows
    ((6, 2), 5)
    """
    whole("clients", clients, low=1)
    whole("messages", messages)
    number("selectivity", selectivity, low=1.0)
    gateways, publishers = _brokers(topology, "gateway"), _brokers(topology, "source")
    rng = generator(seed)
    profiles = arcs(max(1, round(clients / selectivity)), share("overlap", overlap), rng)
    chosen = np.column_stack((rng.integers(len(profiles), size=clients), rng.choice(gateways, clients)))
    sources = rng.choice(publishers, messages)
    return OverlayClients(
        profiles, frozen(chosen), reading_messages(rng, messages, 0, names_of(topology)[sources]), frozen(sources)
    )


def arcs(n: int, overlap: float, rng: np.random.Generator) -> tuple[str, ...]:
    """n distinct profiles over `reading`."""
    if n > SCALE // 2:
        raise InputError(f"distinct profiles must be at most {SCALE // 2}, got {n}", name="clients")
    if overlap == 0:
        cuts = np.arange(n + 1) * SCALE // n
        return tuple(_arc(int(a), int(b)) for a, b in pairwise(cuts))
    # Given that a message matches one arc, another of length w matches it with chance w: the mean
    # overlap is the mean length, whatever the spread of lengths.
    spread = min(overlap, 1 - overlap)
    found: dict[str, None] = {}
    for _ in range(100):
        length = np.rint(rng.uniform(overlap - spread, overlap + spread, n) * SCALE).clip(1, SCALE).astype(np.int64)
        start = rng.integers(SCALE, size=n)
        found.update(dict.fromkeys(_arc(int(a), int(a + w)) for a, w in zip(start, length, strict=True)))
        if len(found) >= n:
            return tuple(found)[:n]
    raise InputError(
        f"cannot draw {n} distinct profiles with overlap {overlap}",
        name="overlap",
        got=overlap,
        hint="an overlap below 1, or fewer distinct profiles",
    )


def _arc(start: int, end: int) -> str:
    """The readings from start up to but without end, around the circle."""
    if end - start >= SCALE:
        return f"reading >= 0 AND reading < {SCALE}"
    if end > SCALE:
        return f"reading >= {start} OR reading < {end - SCALE}"
    if start == 0:
        return f"reading < {end}"
    return f"reading >= {start}" if end == SCALE else f"reading >= {start} AND reading < {end}"


def reading_messages(
    rng: np.random.Generator, n: int, first: int, source: np.ndarray[tuple[int], np.dtype[np.str_]]
) -> pa.Table:
    """n messages with an even reading, a millisecond apart on average, sorted by time."""
    span_us = 1000 * n
    ts = START_US + 1000 * first + np.sort(rng.integers(0, max(span_us, 1), n))
    return pa.table(
        {
            "ts": pa.array(ts, pa.timestamp("us", tz="UTC")),
            "source": pa.array(source, pa.string()),
            "reading": rng.integers(SCALE, size=n),
            "sensor": pa.array(np.char.add("s", rng.integers(1000, size=n).astype("U4")), pa.string()),
            "size": rng.integers(80, 400, size=n),
        }
    )


def names_of(topology: Topology) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    """The brokers' names; b0, b1, … where they have none."""
    return np.array(topology.names or [f"b{i}" for i in range(topology.n_brokers)])


def _brokers(topology: Topology, role: str) -> Ints:
    found = np.flatnonzero(np.array(topology.roles or ()) == role)
    if not found.size:
        raise InputError(
            f"the topology has no broker with the role {role}", name="topology", hint="see nc.workloads.overlay"
        )
    return found
