"""The cost of a plan with unicast while flows move, against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from naive.mixed_cost import mixed_cost
from naive.random_interest import random_interest
from narrowcast.model import Interest
from narrowcast.plans.channels.mixed import Weights, two_level_terms
from narrowcast.plans.channels.mixed_tally import NOWHERE, UNICAST, MixedTally
from narrowcast.plans.channels.points import plain

WEIGHTS = (1.0, 2.0, 0.7)
SEEDS = pytest.mark.parametrize("seed", range(12))


def problem(seed: int, beta: float = 0.5) -> tuple[Interest, MixedTally, np.random.Generator]:
    """Four sessions in two groups; in session 0 every second user of a flow has it by unicast."""
    rng, interest = np.random.default_rng(seed), random_interest(seed)
    halves = {(k, 0): np.arange(n) % 2 == 1 for k, n in enumerate(interest.audience_sizes.tolist()) if n > 1}
    place = rng.integers(NOWHERE, 4, interest.n_flows)
    return interest, MixedTally(interest, place, rng.integers(0, 2, 4), Weights(*WEIGHTS, 1.0, beta), halves), rng


def by_definition(interest: Interest, tally: MixedTally, beta: float = 0.5) -> float:
    apart = set(zip(interest.flow_of_pair[tally.alone].tolist(), interest.users[tally.alone].tolist(), strict=True))
    return mixed_cost(interest, tally.place, tally.group_of, apart, WEIGHTS, beta)


@SEEDS
def test_every_place_costs_what_was_offered_and_the_sum_is_the_definition(seed: int) -> None:
    interest, tally, rng = problem(seed)
    assert tally.cost == pytest.approx(by_definition(interest, tally))
    for flow in rng.choice(np.flatnonzero(interest.audience_sizes), 20).tolist():
        if tally.place[flow] != NOWHERE:
            tally.leave(flow)
        costs, copies = tally.offers(flow)
        to = int(rng.integers(UNICAST, 4))
        cost, unicast = tally.cost, tally.unicast
        tally.enter(flow, to)
        assert tally.cost == pytest.approx(cost + costs[to]) == pytest.approx(by_definition(interest, tally))
        assert tally.unicast == pytest.approx(unicast + copies[to])


@SEEDS
def test_users_that_rejoin_a_session_are_all_in_it(seed: int) -> None:
    interest, tally, _ = problem(seed)
    for flow in tally.thinned:
        tally.rejoin(flow)
    assert not tally.alone.any()
    assert tally.cost == pytest.approx(by_definition(interest, tally))


@SEEDS
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_the_terms_of_two_maps_add_up_to_the_definition(seed: int, beta: float) -> None:
    interest, tally, _ = problem(seed, beta)
    points, point_of_flow = plain(interest)
    place = np.maximum(tally.place, UNICAST)[point_of_flow >= 0]
    alone = tally.alone | (place < 0)[points.point_of_pair]
    found = two_level_terms(points, place, tally.group_of, alone, Weights(*WEIGHTS, 1.0, beta))
    tally.place[tally.place == NOWHERE] = UNICAST
    assert found.total == pytest.approx(by_definition(interest, tally, beta))
