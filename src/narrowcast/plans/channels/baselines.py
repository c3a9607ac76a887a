"""Well-known ways to deliver the same, by name: what a plan is worth is what it saves over these."""

from __future__ import annotations

import numpy as np

from narrowcast.model import Interest
from narrowcast.model.arrays import Ints
from narrowcast.model.cost import Cost
from narrowcast.plans.channels.cost import points_cost
from narrowcast.plans.channels.kernels.greedy_address import greedy_address
from narrowcast.plans.channels.mixed import Weights, terms
from narrowcast.plans.channels.points import Points, plain

ROUND_ROBIN = 5


def plan_baselines(interest: Interest, groups: int, alpha: float, beta: float) -> dict[str, Cost]:
    """Flooding, unicast, perfect multicast, hash, round-robin over 5 groups, greedy address choice.

    Terms: excess cost at receivers, the same relative to flooding, and the rate that the sender puts out.
    """
    points, _ = plain(interest)
    sent, useful = float(points.rates.sum()), points.useful
    flooding = (alpha + beta) * (sent * points.n_users - useful)

    def baseline(excess: float, relative: float, sent: float) -> Cost:
        return Cost((alpha + beta) * useful + excess, {"excess": excess, "relative": relative, "sent": sent})

    found = {
        "flooding": baseline(flooding, 1.0 if flooding > 1e-12 * (alpha + beta) * useful else 0.0, sent),
        "unicast": baseline(0.0, 0.0, useful),
        "perfect multicast": baseline(0.0, 0.0, sent),
    }
    for name, group in _fixed(interest, points, groups).items():
        n = int(group.max(initial=-1)) + 1
        price = points_cost(points, group, np.arange(n), alpha, beta)
        found[name] = baseline(price.excess, price.relative, sent)
    return found


def hybrid_baselines(interest: Interest, groups: int, weights: tuple[float, float, float]) -> dict[str, Cost]:
    """C' of the same baselines."""
    points, _ = plain(interest)
    w = Weights(*weights)
    sent, useful = float(points.rates.sum()), points.useful
    found = {
        "flooding": sent * (w.receive * points.n_users + w.send),
        "unicast": w.unicast * useful,
        "perfect multicast": w.receive * useful + w.send * sent,
    }
    nothing = np.zeros(points.users.size, np.bool_)
    for name, group in _fixed(interest, points, groups).items():
        found[name] = terms(points, group, nothing, w).total
    return {name: Cost(cost) for name, cost in found.items()}


def _fixed(interest: Interest, points: Points, groups: int) -> dict[str, Ints]:
    """The group of each wanted flow by rules that look at no cost, and by a local one."""
    flow = np.flatnonzero(interest.audience_sizes > 0)
    return {
        "hash": hashed(flow, groups),
        "round-robin over 5 groups": flow % min(ROUND_ROBIN, groups),
        # As open DDS implementations choose an address: cost 1 per discarding receiver, −1 per delivery.
        # Of groups that are still empty it takes the first, so more of them than flows change nothing.
        "greedy address": greedy_address(
            points.offsets, points.users, points.n_users, max(min(groups, points.n), 1), 1.0, 1.0
        ),
    }


def hashed(flow: Ints, groups: int) -> Ints:
    """A group per flow by the splitmix64 of its number: the same everywhere, unlike Python's hash."""
    x = flow.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    mixed = x ^ (x >> np.uint64(31))
    result: Ints = (mixed % np.uint64(groups)).astype(np.int64)
    return result
