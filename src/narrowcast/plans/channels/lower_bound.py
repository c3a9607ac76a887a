"""A bound that no plan with so many groups and sessions can beat (proof: docs/decisions/0052).

C1 is at least the least cost of clustering into `groups`, C2 that into `sessions`. For one level and
M clusters, give each point any weight a. A cluster with n users holds points of total weight at most
Φ(n), the n largest user shares of what fits into n users. So for every μ ≥ 0
`Σ θ|C| ≥ Σ_k min_{n ≥ |V_k|} [λ_k n + μ a_k/Φ(n)] − μM`.
"""

from __future__ import annotations

import numpy as np

from narrowcast.model import Interest
from narrowcast.model.arrays import Floats, Ints
from narrowcast.plans.channels.points import Points, collapse

# Weights λ^p |V|^q that have proved useful; any would be valid.
POWERS = ((0.0, 1.0), (0.5, 0.0), (0.5, 1.0), (1.0, 1.0), (1.0, 2.0))
CHUNK, MANY = 20_000, 200_000


def plan_lower_bound(interest: Interest, groups: int, sessions: int, alpha: float, beta: float) -> float:
    """The least excess cost that any plan could have, or less. O(points · levels) a few hundred times."""
    points, _ = collapse(interest)
    if points.n == 0:
        return 0.0
    extra = [max(one_level_bound(points, n) - points.useful, 0.0) for n in (min(groups, sessions), sessions)]
    return alpha * extra[0] + beta * extra[1]


def one_level_bound(points: Points, clusters: int) -> float:
    """At most the least Σ θ|C| over partitions into so many clusters, at least Σ λ|V|."""
    if clusters >= points.n:
        return points.useful
    levels = _levels(points.n_users)
    best = points.useful
    for p, q in POWERS if points.n <= MANY else POWERS[2:3]:
        weight = np.power(points.rates, p) * np.power(points.sizes, q, dtype=np.float64)
        best = max(best, _best_multiplier(points, weight, levels, clusters))
    # Summing in another order could end a hair above: give that away.
    return best * (1 - 1e-12)


def _levels(n_users: int) -> Ints:
    """Audience sizes to tell apart: all small ones, then ever fewer."""
    coarse = np.geomspace(1, max(n_users, 1), 64).round().astype(np.int64)
    return np.unique(np.concatenate([np.arange(1, min(n_users, 32) + 1), coarse]))


def _capacity(points: Points, weight: Floats, levels: Ints) -> Floats:
    """Φ(n) for each level n: a bound on the weight of the points that fit into any n users."""
    share = (weight / points.sizes)[points.point_of_pair]
    size = points.sizes[points.point_of_pair]
    order = np.argsort(size, kind="stable")
    ends = np.searchsorted(size[order], levels, side="right")
    per_user, capacity, at = np.zeros(points.n_users), [], 0
    for n, end in zip(levels, ends, strict=True):
        fits = order[at:end]
        per_user += np.bincount(points.users[fits], share[fits], minlength=points.n_users)
        at = end
        capacity.append(np.partition(per_user, points.n_users - n)[points.n_users - n :].sum())
    return np.array(capacity)


def _best_multiplier(points: Points, weight: Floats, levels: Ints, clusters: int) -> float:
    """The bound at its best μ. It is concave in μ, so a golden section finds the top."""
    capacity = _capacity(points, weight, levels)
    inverse = np.divide(1.0, capacity, out=np.zeros_like(capacity), where=capacity > 0)
    # Between two levels a cluster has more users than the lower and holds at most what the upper does.
    least = np.concatenate([[1], levels[:-1] + 1])

    def value(log_mu: float) -> float:
        mu, total = float(np.exp(log_mu)), 0.0
        for start in range(0, points.n, CHUNK):
            part = slice(start, start + CHUNK)
            size = points.sizes[part, None]
            users = np.where(levels >= size, np.maximum(least, size), np.inf)
            rate = np.maximum(points.rates[part, None], 1e-300)
            total += float((rate * users + mu * weight[part, None] * inverse).min(axis=1).sum())
        return total - mu * clusters

    low, high = np.log(points.useful / clusters) + np.array([-10.0, 3.0]) if points.useful > 0 else (0.0, 0.0)
    ratio = (5**0.5 - 1) / 2
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = value(a), value(b)
    best = max(at_a, at_b)
    for _ in range(22):
        if at_a >= at_b:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = value(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = value(b)
        best = max(best, at_a, at_b)
    return best


def hybrid_lower_bound(interest: Interest, weights: tuple[float, float, float], beta: float) -> float:
    """No hybrid costs less: each flow perfectly multicast or all by unicast, whichever is cheaper for it.

    What a flow costs is linear in how many of its users have it by multicast, so one of the ends is least.
    """
    w1, w2, w3 = weights[0] + beta, *weights[1:]
    size = interest.audience_sizes
    together, apart = (w1 * size + w2 * (size > 0)), w3 * (w1 + w2) * size
    return float((interest.rates * np.minimum(together, apart)).sum()) * (1 - 1e-12)
