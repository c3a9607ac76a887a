"""Small networks are planned as well as they can be: equal to trying everything, in at least 95 of 100."""

from __future__ import annotations

import pytest

from naive.network_exhaustive import least_cost
from narrowcast.plans.network.plan import make
from narrowcast.plans.network.prices import NetworkPrices
from plans.network.small import small_network


def _ratio(seed: int, flows: int) -> float:
    demand = small_network(seed, flows=flows)
    prices = NetworkPrices(price_filter=0.002, price_group=0.0005)
    channels = 1 + seed % 2
    plan = make(demand, channels, 1, prices.price_cpu, prices.price_send, prices.price_filter, prices.price_group)
    assert plan.check().sound
    if "stitched" in plan.cost.baselines:
        assert plan.cost <= plan.cost.baselines["stitched"] * (1 + 1e-12)
    least = least_cost(
        demand, channels, 1, prices.price_cpu, prices.price_send, prices.price_filter, prices.price_group
    )
    assert plan.cost >= least * (1 - 1e-9), f"seed {seed}: cheaper than the least cost, so one of them is wrong"
    assert (plan.cost.lower_bound or 0.0) <= least * (1 + 1e-9)
    return float(plan.cost) / least if least > 0 else 1.0


def test_a_few_small_networks_cost_the_least_possible() -> None:
    found = [_ratio(seed, 4) for seed in range(10)]
    assert sum(ratio <= 1 + 1e-9 for ratio in found) >= 9, found


@pytest.mark.nightly
def test_two_hundred_small_networks_cost_the_least_possible_in_95_of_100() -> None:
    found = [_ratio(seed, 8 if seed % 4 == 0 else 6) for seed in range(200)]
    assert sum(ratio <= 1 + 1e-9 for ratio in found) >= 190, sorted(found)[-20:]
