"""Calibration finds the prices that made the measurements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import narrowcast as nc
from narrowcast.errors import InputError
from narrowcast.plans.channels.aggregation import calibrate_running, read_prices, write_prices
from narrowcast.plans.channels.api import Aggregation, calibrate

PRICE = st.floats(0.01, 5)
LASTING = ((0.0, 100.0, 2), (0.9, 1.1, 1))  # what is taken and passed by, and how slow the machine is


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


def watched(n: int, noise: float, seed: int = 0) -> tuple[list[np.ndarray], list[str]]:
    """Three receivers, each with a constant; in a group a message costs 2 and a packet 3, in a session 5 and 7."""
    rng = np.random.default_rng(seed)
    taken, passed = rng.uniform(0, 100, n), rng.uniform(0, 100, n)
    packets = taken / rng.uniform(2, 6, n), passed / rng.uniform(2, 6, n)
    own = np.arange(n) % 3
    spent = 400.0 * own + 2 * (taken + passed) + 3 * sum(packets) + 5 * taken + 7 * packets[0]
    spent += noise * rng.standard_normal(n)
    return [taken, passed, *packets, spent - spent.min()], [f"r{k}" for k in own]


def test_prices_of_a_running_system_are_found_whatever_receivers_do_besides() -> None:
    columns, whose = watched(90, noise=20.0)
    found = calibrate_running(*columns, whose)
    assert found.alpha == pytest.approx(2 + 3 / found.h, abs=4 * found.errors[0])
    assert found.beta == pytest.approx(5 + 7 / found.h, abs=4 * found.errors[1])
    assert 0 < found.unexplained < 0.05


def test_a_running_system_that_does_not_tell_its_prices_is_refused() -> None:
    (taken, passed, some, others, spent), whose = watched(90, noise=20.0)
    with pytest.raises(InputError, match="at least 12, got 11"):
        calibrate_running(*(column[:11] for column in (taken, passed, some, others, spent)), whose[:11])
    with pytest.raises(InputError, match="is unexplained"):
        calibrate_running(taken, passed, some, others, np.random.default_rng(1).permutation(spent), whose)
    with pytest.raises(InputError, match="can tell alpha from beta"):
        calibrate_running(taken, 2 * taken, some, 2 * some, 9 * taken + some, whose)
    nearly = 2 * taken + np.random.default_rng(2).normal(0, 0.1, 90).clip(0)
    with pytest.raises(InputError, match="can tell alpha from beta"):
        calibrate_running(
            taken, nearly, taken / 3, nearly / 3, 9 * taken + np.random.default_rng(3).normal(40, 9, 90), whose
        )


def test_the_errors_of_prices_hold_on_a_machine_that_is_slower_for_a_while_under_traffic_that_lasts() -> None:
    """Errors as if each sample told something new are wrong for 34 of these 40."""
    wrong = fits = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        whose = [f"r{k % 3}" for k in range(360)]
        (taken, passed), slow = (np.repeat(rng.uniform(low, high, (n, 12)), 30, axis=1) for low, high, n in LASTING)
        some, others = taken / rng.uniform(2, 6, 360), passed / rng.uniform(2, 6, 360)
        spent = 400.0 * (1 + np.arange(360) % 3) + 2 * (taken + passed) + 3 * (some + others) + 5 * taken + 7 * some
        try:
            found = calibrate_running(taken, passed, some, others, spent * slow[0], whose)
        except InputError:
            continue
        truth = np.array([2 + 3 / found.h, 5 + 7 / found.h])
        wrong += (abs(np.array([found.alpha, found.beta]) - truth) > 3 * np.array(found.errors)).any()
        fits += 1
    assert fits >= 10
    assert wrong <= fits // 5, f"{wrong} of {fits}"


def test_prices_in_a_file_are_read_back_as_shares_of_what_both_cost_by_default(tmp_path: Path) -> None:
    columns, whose = watched(60, noise=0.0)
    found = calibrate_running(*columns, whose)
    write_prices(found, tmp_path / "prices.json")
    both = found.alpha + found.beta
    assert read_prices(tmp_path / "prices.json") == pytest.approx((2 * found.alpha / both, 2 * found.beta / both))
    for text in ("", "{}", '{"alpha": 0, "beta": 0}', '{"alpha": -1, "beta": 2}', '{"alpha": NaN, "beta": 2}'):
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(InputError, match=r"bad\.json"):
            read_prices(tmp_path / "bad.json")
