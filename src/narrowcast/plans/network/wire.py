"""What a network plan puts on the links, with all that carries its payloads: what a meter there would show.

A message stands in a frame, a frame in a message of ZeroMQ, which is encrypted, and that in packets of TCP, every other
of which is acknowledged. Both ends of a connection ask each other every second whether they are there. What goes
straight is counted as if it shared no frame.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from narrowcast.deliver.wire.frame import FRAME_BYTES, MESSAGE_BYTES
from narrowcast.model.arrays import Floats
from narrowcast.plans.network.cost import direct_ways, link_loads
from narrowcast.plans.network.methods.backbone import BackboneTrees
from narrowcast.plans.network.result import NetworkPlan

ZMQ_BYTES = 9 + 8 + 8 + 16 + 1  # around a frame: its length; a command's name, a nonce, a tag and flags (CURVE)
PACKET_BYTES = 14 + 20 + 32  # around a packet: Ethernet, IP, TCP with its timestamps
SEGMENT = 1500 - 20 - 32  # bytes of a stream in a full packet
PER_ACK = 2  # packets that are acknowledged together
BEAT_BYTES_S = 2 * (42 + 40 + 3 * PACKET_BYTES)  # a connection: either end asks and is answered, which is acknowledged


def wire_loads(plan: NetworkPlan, *, linger_s: float = 0.0, most_bytes: int = 1200, most_messages: int = 64) -> Floats:
    """Bytes a second on every link of the topology, headers and acknowledgements of both ways included.

    The settings are those of sources: how long messages wait for company, and how many of them share a frame.

    >>> from narrowcast.plans.network.plan import make
    >>> from narrowcast.workloads.network import network
    >>> plan = make(network(sites=3, users=20, symbols=50), channels=4)
    >>> alone, together = wire_loads(plan), wire_loads(plan, linger_s=0.05)
    >>> bool((plan.loads <= together).all() and (together <= alone).all())
    True
    """
    unit = replace(plan.problem, demand=replace(plan.demand, size=np.ones(plan.demand.interest.n_flows)))
    messages = link_loads(unit, plan.decisions, BackboneTrees(unit))[0]
    frames = _frames(plan, linger_s, most_bytes, most_messages)
    stream = plan.loads + MESSAGE_BYTES * messages + (FRAME_BYTES + ZMQ_BYTES) * frames
    packets = stream / SEGMENT + frames / 2  # the last one of a frame is not full
    return stream + PACKET_BYTES * (1 + 1 / PER_ACK) * np.maximum(packets, frames) + BEAT_BYTES_S * _connections(plan)


def _connections(plan: NetworkPlan) -> Floats:
    """Of each link how many brokers send to the other one, each by a connection of its own."""
    d, used = plan.demand, set[tuple[int, int]]()
    for source, links in _trees(plan):
        left, front = set(np.frombuffer(links, np.int64).tolist()), [int(d.gateway[source])]
        while front:
            node = front.pop()
            for link in [link for link in left if node in d.topology.edges[link]]:
                left.discard(link)
                used.add((link, node))
                front.append(int(d.topology.edges[link].sum()) - node)
    sending = np.array([link for link, _ in used], np.int64)
    return np.bincount(sending, minlength=plan.loads.size).astype(np.float64)


def _trees(plan: NetworkPlan) -> dict[tuple[int, bytes], list[int]]:
    """The flows of each tree that the system has: a source's site, and links."""
    d, made = plan.demand, plan.decisions
    needs = plan.problem.remote.copy()
    needs.ravel()[made.direct] = False
    of: dict[tuple[int, bytes], list[int]] = {}
    for flow in np.flatnonzero(needs.any(axis=1) & (made.channel_of >= 0)).tolist():
        of.setdefault((int(d.source[flow]), made.trees[made.channel_of[flow]].tobytes()), []).append(flow)
    return of


def _frames(plan: NetworkPlan, linger_s: float, most_bytes: int, most_messages: int) -> Floats:
    """Frames a second on every link: those of a tree cross all of it, whatever filters leave of them."""
    d = plan.demand
    frames = np.zeros(plan.loads.size)
    for (_, links), flows in _trees(plan).items():
        rate = float(d.interest.rates[flows].sum())
        size = float(d.bytes_s[flows].sum()) / rate + MESSAGE_BYTES if rate else 1.0
        together = max(1.0, min(1 + rate * linger_s, most_messages, (most_bytes - FRAME_BYTES) / size))
        frames[np.frombuffer(links, np.int64)] += rate / together
    for (_, site), (straight, way, _) in direct_ways(plan.problem, plan.decisions.direct).items():
        frames[way] += float(
            d.interest.rates[straight] @ np.asarray(d.wishes[straight, [site] * straight.size]).ravel()
        )
    return frames
