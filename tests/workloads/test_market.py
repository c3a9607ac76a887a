"""The market workload has the statistics that were published for it."""

from __future__ import annotations

import time

import numpy as np
import pytest

import narrowcast as nc
from naive.market import market as market_by_hand
from narrowcast.errors import InputError
from narrowcast.workloads.market import decay_for, market_shape

SEEDS = range(10)


@pytest.fixture(scope="module")
def published() -> list[nc.workloads.InterestStatistics]:
    return [nc.workloads.statistics(nc.workloads.market(20000, 10, 500, 2, 0.01, seed=seed)) for seed in SEEDS]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def test_symbols_per_user_are_as_published(published: list[nc.workloads.InterestStatistics]) -> None:
    assert 66.5 <= mean([s.flows_per_user_mean for s in published]) <= 68.5
    assert all(64.5 < s.flows_per_user_mean < 71.5 for s in published)
    assert min(s.flows_per_user_min for s in published) == 15
    assert mean([s.flows_per_user_min for s in published]) < 16
    assert {s.flows_per_user_max for s in published} == {102}


def test_unicast_multiplicity_is_as_published(published: list[nc.workloads.InterestStatistics]) -> None:
    assert 9.7 <= mean([s.multiplicity for s in published]) <= 10.4


def test_flooding_goodput_is_as_published(published: list[nc.workloads.InterestStatistics]) -> None:
    assert 0.019 <= mean([s.goodput for s in published]) <= 0.021


def test_counting_flows_that_nobody_wants_misses_the_published_multiplicity() -> None:
    found = [nc.workloads.market(seed=s) for s in SEEDS]
    assert mean([float(i.audience_sizes @ i.rates) / float(i.rates.sum()) for i in found]) < 9.7


def test_sizes_and_rates_follow_the_definition() -> None:
    shape = market_shape(20000, 10)
    by_hand = market_by_hand(20000, 10, 0, 2, 0.01, seed=0)
    assert shape.sizes.tolist() == by_hand["sizes"]
    rates = np.concatenate(by_hand["rates"])
    np.testing.assert_allclose(shape.rates, rates / rates.sum())
    top = shape.rates[:683].sum() / shape.rates[:6828].sum()
    assert 0.54 < top < 0.56


def test_users_choose_as_in_the_definition() -> None:
    size = {"symbols": 600, "markets": 4, "users": 3000, "markets_per_user": 2, "share": 0.02}
    by_hand = market_by_hand(**size, seed=1)
    ours = nc.workloads.market(**size, seed=1)
    first = np.concatenate(([0], np.cumsum(by_hand["sizes"])))
    expected = np.zeros(600)
    for mine in by_hand["chosen"]:
        expected[[first[m] + i for m, i in mine]] += 1
    spread = np.sqrt(2 * np.maximum(expected * (1 - expected / 3000), 4))
    assert (np.abs(ours.audience_sizes - expected) < 5 * spread).all()


def test_each_user_has_the_rounded_share_of_each_of_its_markets() -> None:
    interest = nc.workloads.market(3000, 5, 200, 3, 0.03, seed=2)
    shape = market_shape(3000, 5)
    counts = np.zeros((200, 5), np.int64)
    np.add.at(counts, (interest.users, shape.market_of_symbol[interest.flow_of_pair]), 1)
    wanted = np.floor(shape.sizes * 0.03 + 0.5)
    assert ((counts == wanted) | (counts == 0)).all()
    assert ((counts > 0).sum(axis=1) == 3).all()


def test_audiences_are_ascending_and_free_of_repeats() -> None:
    interest = nc.workloads.market(500, 3, 300, 2, 0.1, seed=5)
    again = nc.Interest.from_pairs(interest.flow_of_pair, interest.users, interest.rates, n_users=300)
    assert np.array_equal(again.offsets, interest.offsets)
    assert np.array_equal(again.users, interest.users)


def test_a_heavier_head_can_be_had() -> None:
    shape = market_shape(10000, 1, top_share=0.8)
    assert abs(shape.rates[:1000].sum() - 0.8) < 0.002
    assert market_shape(100, 1, top_share=0.1).decay == decay_for(0.1, 0.1) == 0.0
    flat, steep = (nc.workloads.market(decay=d, seed=0).audience_sizes.max() for d in (2.0, 20.0))
    assert steep > 3 * flat


def test_names_are_real_first_and_all_distinct() -> None:
    interest = nc.workloads.market(5000, 10, 20, seed=0, names=True)
    assert interest.flow_names is not None
    assert interest.flow_names[0] == "NVDA"
    assert {"AAPL", "BRK.B", "MMM"} <= set(interest.flow_names)
    assert len(set(interest.flow_names)) == 5000


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"share": 1.5}, r"share must be .*, got 1.5"),
        ({"share": -0.1}, r"share must be .*, got -0.1"),
        ({"markets_per_user": 11}, "markets_per_user must be at most 10"),
        ({"symbols": 5}, "symbols must be at least 10"),
        ({"users": 0}, "users must be at least 1, got 0"),
        ({"markets": 0}, "markets must be at least 1, got 0"),
        ({"symbols": 10.5}, "symbols must be a whole number"),
        ({"decay": float("nan")}, "decay must be a finite number"),
        ({"top_share": 0.05}, "top_share must be from 0.1"),
        ({"top_share": 1.0}, "to below 1, got 1"),
    ],
)
def test_impossible_parameters_are_refused_by_name(wrong: dict[str, float], says: str) -> None:
    with pytest.raises(InputError, match=says):
        nc.workloads.market(**wrong)


@pytest.mark.nightly
def test_a_million_symbols_and_a_hundred_thousand_users_take_about_a_minute_of_cpu() -> None:
    start = time.process_time()  # a busy machine is no fault of ours
    interest = nc.workloads.market(1_000_000, 10, 100_000)
    assert time.process_time() - start < 120
    assert 325_000_000 < interest.n_pairs < 345_000_000
    assert interest.offsets[-1] == interest.users.size
