"""Baselines cost what their definition says; no plan is below the lower bound."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import narrowcast as nc
from naive.channels_cost import hybrid_cost, two_level_cost
from naive.exhaustive_channels import least_cost
from naive.least_cost_milp import least_one_level_cost
from naive.random_interest import random_interest
from narrowcast.plans.channels.baselines import hashed
from narrowcast.plans.channels.lower_bound import one_level_bound
from narrowcast.plans.channels.points import collapse


@pytest.mark.slow
@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    groups=st.integers(1, 3),
    more=st.integers(0, 3),
    prices=st.sampled_from([(1, 1), (2, 0.5), (0, 1)]),
)
def test_the_lower_bound_is_at_most_the_exhaustive_optimum(
    seed: int, groups: int, more: int, prices: tuple[float, float]
) -> None:
    interest = random_interest(seed, flows=8, users=7)
    r = nc.channels.plan(interest, groups, groups + more, method="gf", alpha=prices[0], beta=prices[1])
    least = least_cost(interest, groups, groups + more, *prices) - sum(prices) * r.cost.useful
    assert 0 <= r.lower_bound <= least + 1e-9
    assert 0 <= r.gap <= 1 + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_the_one_level_bound_is_at_most_the_optimum_of_the_integer_programme(seed: int) -> None:
    interest = random_interest(seed, flows=6, users=6, density=0.4)
    points, _ = collapse(interest)
    for clusters in (1, 2, 3):
        assert one_level_bound(points, clusters) <= least_one_level_cost(interest, clusters) + 1e-6


def test_the_bound_beats_perfect_multicast_on_every_workload() -> None:
    for interest in (
        nc.workloads.market(symbols=1000, users=60, seed=1),
        nc.workloads.random(flows=300, users=40, share=0.05, seed=1),
        nc.workloads.mechanical(processes=40, topics=500, seed=1),
    ):
        r = nc.channels.plan(interest, groups=4, sessions=12, method="gf")
        assert r.lower_bound > 0
        assert r.gap < 1


def test_one_cluster_has_no_choice_and_the_bound_knows_it() -> None:
    interest = nc.Interest.from_pairs([0, 1], [0, 1], [1.0, 1.0])
    assert one_level_bound(collapse(interest)[0], 1) == pytest.approx(4.0)
    assert one_level_bound(collapse(interest)[0], 2) == pytest.approx(2.0)


@given(seed=st.integers(0, 10**6))
def test_baselines_cost_what_their_maps_cost(seed: int) -> None:
    interest = random_interest(seed)
    found = nc.channels.plan(interest, groups=3, sessions=4, method="random").baselines
    flow = np.arange(interest.n_flows)
    for name, group in (("hash", hashed(flow, 3)), ("round-robin over 5 groups", flow % 3)):
        expected = two_level_cost(interest, group, np.arange(3), 1, 1)
        assert found[name].excess == pytest.approx(expected["excess"], abs=1e-9)
    everyone = two_level_cost(interest, flow * 0, [0], 1, 1)
    assert found["flooding"].excess == pytest.approx(everyone["flooding"], abs=1e-9)
    assert found["unicast"].excess == found["perfect multicast"].excess == 0
    assert found["unicast"].sent == pytest.approx(everyone["useful"])
    assert 0 <= found["greedy address"].excess <= found["flooding"].excess + 1e-9


def test_hybrid_baselines_are_the_pure_schemes() -> None:
    interest = random_interest(4)
    found = nc.channels.hybrid(interest, groups=3).baselines
    flow, user = interest.flow_of_pair, interest.users
    nobody = np.full(interest.n_flows, -1)
    assert found["unicast"] == pytest.approx(hybrid_cost(interest, nobody, (flow, user), (1, 1, 1)))
    assert found["perfect multicast"] < found["hash"] <= found["flooding"]


def test_greedy_address_joins_flows_of_the_same_receivers() -> None:
    interest = nc.Interest.from_pairs([0, 0, 1, 2, 2], [0, 1, 2, 0, 1], [1.0, 1.0, 1.0])
    r = nc.channels.plan(interest, groups=2, sessions=2, method="random")
    assert r.baselines["greedy address"].excess == 0
