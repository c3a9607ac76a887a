"""A network plan goes on under other demand: never dearer than before, within its budget, and sound."""

from __future__ import annotations

import numpy as np
import pytest

from narrowcast.model.demand import Demand
from narrowcast.model.interest import Interest
from narrowcast.plans.continued import Budget
from narrowcast.plans.network.cost import priced
from narrowcast.plans.network.plan import make
from narrowcast.plans.network.replan import continued
from narrowcast.plans.verbs import judge
from plans.network.small import small_network


def drifted(interest: Interest, seed: int) -> Interest:
    """Other rates, other wishes, a subscriber and a flow that nobody knew, and one flow that is gone."""
    rng = np.random.default_rng(seed)
    n_flows, n_users = interest.n_flows + 1, interest.n_users + 1
    flow, user = np.nonzero(rng.random((n_flows, n_users)) < 0.5)
    flow, user = np.append(flow, 0), np.append(user, 0)
    kept = flow != 1
    return Interest.from_pairs(
        flow[kept], user[kept], rng.uniform(100, 5000, n_flows), n_users=n_users,
        flow_names=[*(interest.flow_names or ()), "new"], user_names=[*(interest.user_names or ()), "stranger"],
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_under_other_demand_it_is_sound_and_improving_lowers_the_cost_within_the_moves(seed: int) -> None:
    plan = make(small_network(seed, flows=4), channels=2)
    present = continued(plan, Demand(drifted(plan.demand.interest, seed), key=("symbol",)))
    assert present.cost == pytest.approx(priced(present.problem, present.decisions).total / 3600)
    for budget in (Budget(moves=2), Budget()):
        better = present.improved(budget)
        assert better.cost <= present.cost + 1e-12
        change = present.change_to(better)
        assert budget.moves is None or change.moves <= budget.moves
        assert not judge(better.plan()).faults
    assert present.anew().cost <= present.improved(Budget()).cost + 1e-12
    assert present.change_to(present).moves == present.change_to(present).joins == 0


def test_the_demand_it_was_made_for_changes_nothing() -> None:
    plan = make(small_network(2, flows=4), channels=2)
    present = continued(plan, Demand(plan.demand.interest, key=("symbol",)))
    assert present.cost == pytest.approx(plan.cost.total / 3600)
