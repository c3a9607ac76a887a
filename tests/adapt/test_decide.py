"""When to move: only what is worth its price and has proved itself on demand it was not made for."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive.regret import naive_moves
from narrowcast.adapt.decide import LoopState, Policy, decide, moved, reach, refused
from narrowcast.errors import InputError
from narrowcast.model import Interest
from narrowcast.model.demand import Demand
from narrowcast.model.plan import Tables
from narrowcast.plans.continued import Budget, Change


@dataclass(frozen=True, eq=False)
class OneOfTwo:
    """The smallest plan there is: left or right. Each costs as much as the flow of the other side."""

    side: int
    rates: tuple[float, float] = (0.0, 0.0)
    moves: int = 1

    @property
    def cost(self) -> float:
        return self.rates[1 - self.side]

    @property
    def size(self) -> int:
        return 10

    def under(self, demand: Demand) -> OneOfTwo:
        return replace(self, rates=(float(demand.interest.rates[0]), float(demand.interest.rates[1])))

    def improved(self, budget: Budget) -> OneOfTwo:
        return self.anew() if budget.moves is None or budget.moves >= self.moves else self

    def anew(self) -> OneOfTwo:
        return replace(self, side=int(np.argmax(self.rates)))

    def reorganised(self, least: float) -> OneOfTwo:
        return self.anew()

    def change_to(self, other: OneOfTwo) -> Change:
        return Change(self.moves, 0, 0.0) if self.side != other.side else Change(0, 0, 0.0)

    def plan(self) -> Tables:
        raise NotImplementedError


def demand(time: float, left: float, right: float) -> Demand:
    return Demand(Interest.from_pairs([0, 1], [0, 0], [left, right]), time=time)


def times_of_moves(policy: Policy, demands: list[Demand]) -> list[float]:
    state, found = LoopState(OneOfTwo(0)), []
    for each in demands:
        state, decision = decide(state, each, policy)
        if decision.move:
            state = moved(state)
            found.append(each.time)
    return found


POLICY = Policy(horizon_s=100.0, threshold=0.05, proof=0.1, effort=0.1, join=0.0, warm_s=0.0)


def test_a_lasting_change_is_followed_but_not_on_first_sight() -> None:
    calm = [demand(t, 100.0, 10.0) for t in range(5)]
    assert times_of_moves(POLICY, [*calm, *(demand(t, 10.0, 100.0) for t in range(5, 12))]) == [6.0]


def test_a_single_noisy_moment_moves_nothing() -> None:
    demands = [demand(t, 100.0, 200.0 if t == 7 else 10.0) for t in range(20)]
    assert times_of_moves(POLICY, demands) == []


def test_demand_that_swings_faster_than_the_proof_takes_moves_nothing() -> None:
    demands = [demand(t, 100.0, 110.0) if t % 2 else demand(t, 110.0, 100.0) for t in range(100)]
    assert times_of_moves(POLICY, demands) == []


def test_a_gain_below_the_threshold_is_noise_however_long_it_lasts() -> None:
    assert times_of_moves(POLICY, [demand(t, 100.0, 104.0) for t in range(500)]) == []


def test_what_costs_more_than_it_saves_over_the_horizon_stays() -> None:
    dear = replace(POLICY, effort=100.0)
    assert times_of_moves(dear, [demand(t, 10.0, 100.0) for t in range(500)]) == []


def test_a_budget_that_is_too_small_for_the_change_keeps_the_plan() -> None:
    assert reach(OneOfTwo(0, (1.0, 9.0), moves=5), replace(POLICY, moves=4))[1] == Change(0, 0, 0.0)
    assert reach(OneOfTwo(0, (1.0, 9.0), moves=5), replace(POLICY, moves=5))[1].moves == 5


def test_what_was_refused_has_to_prove_itself_again() -> None:
    state = LoopState(OneOfTwo(0))
    found = []
    for t in range(6):
        state, decision = decide(state, demand(t, 10.0, 100.0), POLICY)
        if decision.move:
            found.append(t)
            state = refused(state)
    assert state.present.side == 0
    assert found == [1, 3, 5]


@pytest.mark.parametrize("name", ["horizon_s", "threshold", "proof", "effort", "join", "warm_s"])
def test_a_policy_has_no_negative_prices(name: str) -> None:
    with pytest.raises(InputError, match=name):
        Policy(**{name: -1.0})


rates = st.floats(0.0, 1000.0)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(rates, rates), min_size=1, max_size=40), st.floats(0, 0.3), st.floats(0, 1), st.floats(0, 2))
def test_decisions_agree_with_the_definition(
    pairs: list[tuple[float, float]], threshold: float, proof: float, effort: float
) -> None:
    policy = replace(POLICY, threshold=threshold, proof=proof, effort=effort)
    demands = [demand(float(t), *pair) for t, pair in enumerate(pairs)]
    assert times_of_moves(policy, demands) == naive_moves(pairs, policy, size=10)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(rates, rates), min_size=2, max_size=40))
def test_every_move_pays_on_the_demand_it_is_made_for(pairs: list[tuple[float, float]]) -> None:
    state = LoopState(OneOfTwo(0))
    for t, pair in enumerate(pairs):
        state, found = decide(state, demand(float(t), *pair), POLICY)
        if found.move:
            assert found.best < found.kept
            assert (found.kept - found.best) * POLICY.horizon_s > found.price
            state = moved(state)
