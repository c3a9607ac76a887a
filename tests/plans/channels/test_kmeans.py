"""One-level K-means: the kernel makes the twin's moves, and every move lowers the cost."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive import kmeans as naive
from naive.channels_cost import one_level_cost
from naive.random_interest import random_interest
from narrowcast.plans.channels.kernels.kmeans import kmeans as kernel
from narrowcast.plans.channels.methods.kmeans import kmeans
from narrowcast.plans.channels.points import Points, plain


def sets(points: Points) -> list[set[int]]:
    return [set(points.users[points.offsets[k] : points.offsets[k + 1]].tolist()) for k in range(points.n)]


@given(st.integers(0, 10**6), st.integers(1, 5))
def test_the_kernel_ends_where_the_twin_ends_and_every_move_lowers_the_cost(seed: int, clusters: int) -> None:
    points, _ = plain(random_interest(seed))
    if points.n == 0:
        return
    rng = np.random.default_rng(seed)
    start, order = rng.integers(0, clusters, points.n), rng.permutation(points.n)
    states = naive.kmeans(sets(points), points.rates, clusters, start.tolist(), order.tolist())
    costs = [one_level_cost(sets(points), points.rates, state) for state in states]
    assert all(after < before + 1e-9 for before, after in itertools.pairwise(costs))
    result = start.copy()
    passes = kernel(
        points.offsets, points.users, points.rates, order, result, np.zeros((points.n_users, clusters), np.uint16), 100
    )
    assert passes < 100
    assert one_level_cost(sets(points), points.rates, result.tolist()) == pytest.approx(costs[-1], rel=1e-6, abs=1e-9)


@given(st.integers(0, 10**6), st.integers(2, 5))
def test_no_single_move_improves_what_kmeans_returns(seed: int, clusters: int) -> None:
    points, _ = plain(random_interest(seed))
    result = kmeans(points, clusters, np.random.default_rng(seed)).tolist() if points.n else []
    for k in range(points.n):
        here = naive.distance(k, result[k], sets(points), points.rates, result)
        for c in range(clusters):
            assert naive.distance(k, c, sets(points), points.rates, result) >= here - 1e-9


def test_a_table_of_many_flows_per_user_is_counted_wide() -> None:
    n = 66_000
    points = Points(np.arange(n + 1), np.zeros(n, np.int64), np.ones(n), 1)
    assert one_level_cost([{0}], [1.0], [0]) == 1.0
    assert set(kmeans(points, 2, np.random.default_rng(0)).tolist()) <= {0, 1}
