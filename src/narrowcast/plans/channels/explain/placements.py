"""What a channels plan would cost with some of its flows elsewhere, from the definition, for every place at once.

Taking a block of flows with rate λ and audience V out leaves clusters of rate θ and audience C. Put back
into one of them it makes that cluster cost (θ + λ)·|C ∪ V| instead of θ·|C|: once for the session it
goes to (C2), once for the group (C1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from narrowcast.model.arrays import Bools, Floats, Ints, distinct
from narrowcast.plans.channels.judge.delivery import Delivery


@dataclass(frozen=True, eq=False)
class Clusters:
    """Sessions or groups without the block: what all of them cost, and what the block adds in each."""

    rest: float
    added: Floats
    rates: Floats
    new_members: Ints  # of the block's audience, how many are not in the cluster yet


@dataclass(frozen=True, eq=False)
class Block:
    """Some flows, taken out of the plan."""

    flows: Ints
    rate: float
    audience: Ints
    sessions: Clusters
    groups: Clusters

    @property
    def alone(self) -> float:
        """What the block costs in a cluster of its own."""
        return self.rate * self.audience.size


def taken_out(read: Delivery, flows: Ints) -> Block:
    """The block of these flows. O(pairs · log pairs)."""
    taken = np.isin(read.want_flow, flows) & ~read.by_unicast
    audience = distinct(read.want_user[taken])
    rate = float(read.rates[flows].sum())
    return Block(
        flows,
        rate,
        audience,
        _clusters(read, flows, audience, rate, read.session_of_flow, read.sessions.size),
        _clusters(read, flows, audience, rate, read.group_of_flow, read.groups.size),
    )


def _clusters(read: Delivery, flows: Ints, audience: Ints, rate: float, of_flow: Ints, n: int) -> Clusters:
    stays = np.ones(of_flow.size, np.bool_)
    stays[flows] = False
    stays &= of_flow >= 0
    rates = np.bincount(of_flow[stays], read.rates[stays], minlength=n).astype(np.float64)
    cluster, user = members(read, of_flow, stays)
    size = np.bincount(cluster, minlength=n)
    shared = np.bincount(cluster[np.isin(user, audience)], minlength=n)
    united = size + audience.size - shared
    return Clusters(float((rates * size).sum()), (rates + rate) * united - rates * size, rates, audience.size - shared)


def members(read: Delivery, of_flow: Ints, stays: Bools) -> tuple[Ints, Ints]:
    """(cluster, user) pairs: who must be in each cluster for the flows that stay."""
    needs = stays[read.want_flow] & ~read.by_unicast
    return read.unpair(distinct(read.pair(of_flow[read.want_flow[needs]], read.want_user[needs])))
