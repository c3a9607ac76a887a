"""A commuter's day: adapting costs little more than re-planning every hour, and moves far less; noise moves nothing."""

from __future__ import annotations

from functools import cache

import pytest
from studies.following import Account, account, adapting, hourly, never

from narrowcast.adapt.decide import Policy
from narrowcast.model.demand import Demand
from narrowcast.plans.channels.replan import ChannelSettings, ContinuedChannels
from narrowcast.workloads import commuter
from narrowcast.workloads.commuter import watched

SIZES = {"users": 200, "sites": 6, "topics": 20, "wishes": 6}


@cache
def day(seed: int, swing: float, large: bool) -> tuple[ContinuedChannels, tuple[Demand, ...]]:
    """The first plan, and the demands of a day; of a stationary one a quarter of it says as much."""
    hours = 24.0 if swing else 6.0
    demands = tuple(watched(commuter(seed=seed, swing=swing, **({} if large else SIZES)), hours, seed=seed))
    settings = ChannelSettings(12, 60, seed=seed) if large else ChannelSettings(8, 40, seed=seed)
    return ContinuedChannels.begin(demands[0], settings), demands


@cache
def adapted(seed: int, swing: float = 1.0, large: bool = False) -> Account:
    return account(*day(seed, swing, large), adapting(Policy()))


def ratios(seeds: range, large: bool) -> tuple[float, float, float]:
    """Cost and moves of adapting over those of re-planning from nothing every hour; and the cost of never moving."""
    costs, moves, still = [0.0, 0.0], [0, 0], 0.0
    for seed in seeds:
        fresh = account(*day(seed, 1.0, large), hourly())
        for i, each in enumerate((adapted(seed, large=large), fresh)):
            costs[i] += each.cost
            moves[i] += each.moves
        still += account(*day(seed, 1.0, large), never).cost
    return costs[0] / costs[1], moves[0] / moves[1], still / costs[1]


@pytest.mark.long
@pytest.mark.slow
def test_adapting_costs_little_more_than_planning_anew_every_hour_with_a_quarter_of_its_moves() -> None:
    """The bounds of the larger size below are 5 % and a fifth; so small a system is less regular."""
    cost, moves, still = ratios(range(1), large=False)
    print(f"cost {cost:.3f}, moves {moves:.3f}, never {still:.3f}")
    assert cost <= 1.08
    assert moves <= 0.25
    assert still >= 1.15, "there is something to follow"


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_the_same_holds_at_a_larger_size_on_average_over_seeds() -> None:
    cost, moves, _ = ratios(range(3), large=True)
    assert (cost <= 1.05, moves <= 0.20) == (True, True), (cost, moves)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_stationary_noisy_day_moves_nothing_after_the_first_hour(seed: int) -> None:
    _, demands = day(seed, 0.0, False)
    assert demands[0].interest.users.tolist() != demands[1].interest.users.tolist(), "wishes come and go"
    assert demands[0].interest.rates.tolist() != demands[1].interest.rates.tolist(), "rates are noisy"
    found = adapted(seed, swing=0.0)
    assert [at for at in found.times if at > demands[0].time + 3600] == []


def test_the_same_day_is_adapted_to_in_the_same_way() -> None:
    begin, demands = day(0, 1.0, False)
    policy = Policy(reorganise_s=None)
    one, two = (account(begin, demands[28:40], adapting(policy)) for _ in range(2))
    assert one == two
    assert one.moves > 0
