"""The two-level cost equals its definition; what is not legal is said."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import narrowcast as nc
from naive.channels_cost import two_level_cost
from naive.random_interest import random_interest
from narrowcast.plans.channels.points import collapse


@given(st.integers(0, 10**6), st.floats(0, 3), st.floats(0, 3))
def test_the_cost_equals_its_definition_summed_user_by_user(seed: int, alpha: float, beta: float) -> None:
    interest = random_interest(seed)
    rng = np.random.default_rng(seed)
    session, group = rng.integers(0, 5, interest.n_flows), rng.integers(0, 3, 5)
    c = nc.channels.cost(interest, session, group, alpha, beta)
    for name, value in two_level_cost(interest, session, group, alpha, beta).items():
        assert getattr(c, name) == pytest.approx(value, rel=1e-9, abs=1e-9)
    if c.flooding > 0:
        assert c.relative == pytest.approx(c.excess / c.flooding)


def test_a_plan_that_leaves_a_wanted_flow_out_has_no_cost() -> None:
    interest = nc.Interest.from_pairs([0, 1], [0, 0], [1.0, 1.0, 1.0])
    with pytest.raises(nc.errors.InputError, match="flow 1 has no session but 1 subscribers want it"):
        nc.channels.cost(interest, [0, -1, -1], [0])
    with pytest.raises(nc.errors.InputError, match=r"session_of_flow\[0\] must be .*, got 7"):
        nc.channels.cost(interest, [7, 0, -1], [0])
    with pytest.raises(nc.errors.InputError, match=r"alpha must be .*, got -1"):
        nc.channels.cost(interest, [0, 0, -1], [0], alpha=-1)


def test_a_flow_nobody_wants_costs_nothing_wherever_it_is_put() -> None:
    interest = nc.Interest.from_pairs([0, 0], [0, 1], [2.0, 100.0])
    assert nc.channels.cost(interest, [0, -1], [0]) == nc.channels.cost(interest, [0, 0], [0])
    assert nc.channels.illegal(interest, [0, 0], [0]) == ["flow 1 is sent but nobody wants it"]
    assert nc.channels.illegal(interest, [0, -1], [0]) == []


@given(st.integers(0, 10**6))
def test_flows_fall_together_exactly_when_their_audiences_are_equal(seed: int) -> None:
    interest = random_interest(seed, flows=20, users=4)
    points, point_of_flow = collapse(interest)
    audience = [tuple(interest.users_of(k)) for k in range(interest.n_flows)]
    for j in range(interest.n_flows):
        assert (point_of_flow[j] < 0) == (not audience[j])
        for k in range(interest.n_flows):
            assert (point_of_flow[j] == point_of_flow[k]) == (audience[j] == audience[k])
    assert points.rates.sum() == pytest.approx(interest.rates[point_of_flow >= 0].sum())
