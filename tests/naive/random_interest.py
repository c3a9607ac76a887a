"""Small interest of many shapes: identical audiences, flows nobody wants, equal and wild rates."""

from __future__ import annotations

import numpy as np

from narrowcast.model import Interest


def random_interest(seed: int, flows: int = 12, users: int = 8, density: float | None = None) -> Interest:
    rng = np.random.default_rng(seed)
    share = density if density is not None else rng.uniform(0.1, 0.6)
    W = rng.random((flows, users)) < share
    if flows > 3 and seed % 3 == 0:
        W[rng.integers(0, flows, flows // 3)] = W[rng.integers(0, flows)]
    rates = np.ones(flows) if seed % 5 == 0 else np.round(rng.exponential(size=flows) ** rng.uniform(1, 3), 3)
    flow, user = np.nonzero(W)
    return Interest.from_pairs(flow, user, rates, n_users=users)
