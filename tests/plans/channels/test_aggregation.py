"""Calibration finds the prices that made the measurements."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import narrowcast as nc
from narrowcast.plans.channels.api import Aggregation, calibrate

PRICE = st.floats(0.01, 5)


@given(PRICE, PRICE, PRICE, PRICE, st.integers(0, 1000))
def test_calibration_finds_the_prices_behind_exact_measurements(
    a0: float, a1: float, b0: float, b1: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    truth = Aggregation(a0, a1, b0, b1)
    h = np.repeat([1, 2, 8, 32], 5)
    theta1, theta2 = rng.uniform(1, 100, (2, h.size))
    alpha, beta = np.array([truth.at(x) for x in h]).T
    found = calibrate(theta1, theta2, (theta1 + theta2) * alpha + theta1 * beta, h)
    assert [found.alpha0, found.alpha1, found.beta0, found.beta1] == pytest.approx([a0, a1, b0, b1], rel=1e-5, abs=1e-6)
    assert found.residual < 1e-6


def test_noise_moves_the_prices_a_little_and_shows_in_the_residual() -> None:
    rng = np.random.default_rng(0)
    theta1, theta2 = rng.uniform(1, 100, (2, 400))
    cpu = ((theta1 + theta2) * 1.0 + theta1 * 2.0) * rng.normal(1, 0.05, 400)
    found = calibrate(theta1, theta2, cpu)
    assert found.at(1) == pytest.approx((1, 2), rel=0.1)
    assert 0.01 < found.residual < 0.1


def test_the_prices_go_straight_into_a_plan() -> None:
    interest = nc.workloads.market(symbols=300, markets=3, users=20, share=0.05)
    alpha, beta = Aggregation(0.5, 4, 0.75, 2).at(8)
    one = nc.channels.plan(interest, 3, 9, method="gf", alpha=alpha, beta=beta)
    assert one.cost == nc.channels.plan(interest, 3, 9, method="gf").cost


def test_measurements_that_cannot_tell_the_prices_apart_are_refused() -> None:
    with pytest.raises(nc.errors.InputError, match="cannot tell alpha from beta"):
        calibrate([1, 2], [1, 2], [3.0, 6.0])
    with pytest.raises(nc.errors.InputError, match=r"messages per packet, must be at least 1, got 0\.5"):
        calibrate([1, 2], [1, 0], [3.0, 6.0], h=0.5)
    with pytest.raises(nc.errors.InputError, match=r"messages per packet, must be at least 1, got 0$"):
        Aggregation(1, 1, 1, 1).at(0)
