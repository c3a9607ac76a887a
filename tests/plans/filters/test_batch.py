"""The batch driver, its messages and the states of running filters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import narrowcast as nc
from naive.filter_problems import complete_binary
from narrowcast.errors import InputError
from narrowcast.plans.filters.api import Activate, Fleet, Migrate, Passivate, Spawn, orders


def drifting(seed, batches=12, **options):
    """Run a driver over redrawn subscriptions; yields it with each batch."""
    tree, rng = complete_binary(5), np.random.default_rng(seed)
    rate = rng.choice([0.05, 0.7], 16)
    wants = rng.random((16, 20)) < rate[:, None]
    user, item = np.nonzero(wants)
    driver = nc.filters.Batches(tree, tree.leaves[user], item, n_items=20, **options)
    for _ in range(batches):
        new = wants.copy()
        redraw = rng.random(16) < 0.4
        rate[redraw] = rng.choice([0.05, 0.7], redraw.sum())
        new[redraw] = rng.random((redraw.sum(), 20)) < rate[redraw, None]
        come, go = np.nonzero(new & ~wants), np.nonzero(wants & ~new)
        wants = new
        batch = driver.run((tree.leaves[come[0]], come[1]), (tree.leaves[go[0]], go[1]))
        user, item = np.nonzero(wants)
        yield driver, batch, nc.filters.flow_from_demand(tree, tree.leaves[user], item)


@pytest.mark.parametrize("method", ["heuristic", "optimum", "still"])
@pytest.mark.parametrize("objective", ["traffic", "delay"])
@pytest.mark.parametrize("fee", [0.0, 15.0])
def test_the_messages_bring_the_filters_where_the_plan_wants_them(method, objective, fee):
    options = {"k": 5} if objective == "traffic" else {"filter_delay": 3.0}
    for driver, batch, f in drifting(1, method=method, objective=objective, migration_cost=fee, **options):
        assert driver.fleet.active == frozenset(batch.filters.tolist())
        assert batch.after <= batch.before
        if objective == "traffic":
            assert batch.after == nc.filters.traffic(driver.watch.tree, f, batch.filters)
            assert batch.filters.size <= 5
        if batch.messages:
            assert batch.before - batch.after > fee


def test_the_optimum_method_is_optimal_in_every_batch_when_moving_is_free():
    for driver, batch, f in drifting(2, method="optimum", k=4):
        assert batch.after == nc.filters.place(driver.watch.tree, f, 4).traffic


def test_moving_stops_being_worthwhile_when_it_saves_less_than_it_costs():
    dear = list(drifting(3, method="optimum", k=4, migration_cost=1e6))
    assert all(not batch.messages for _, batch, _ in dear)
    assert any(not batch.worthwhile for _, batch, _ in dear)
    assert any(batch.messages for _, batch, _ in drifting(3, method="optimum", k=4))


@given(seed=st.integers(0, 10**6))
def test_any_placement_is_reached_from_any_other_by_legal_messages(seed):
    tree, rng = complete_binary(5), np.random.default_rng(seed)
    fleet, old = Fleet(), np.zeros(0, np.int64)
    for _ in range(6):
        new = np.flatnonzero(tree.can_filter & (rng.random(tree.n) < rng.random()))
        fleet.run(*orders(tree, fleet, old, new))
        assert fleet.active == frozenset(new.tolist())
        old = new


def test_a_waiting_filter_is_activated_rather_than_another_sent():
    tree, fleet = complete_binary(4), Fleet()
    fleet.run(Spawn(None, 1), Spawn(None, 2), Passivate(2))
    assert orders(tree, fleet, np.array([1]), np.array([2])) == (Activate(2), Passivate(1))
    assert orders(tree, fleet, np.array([1]), np.array([3])) == (Migrate(1, 3),)
    assert orders(tree, fleet, np.array([1]), np.array([1, 3])) == (Spawn(1, 3),)


def test_migrating_and_spawning_filters_do_not_work_until_they_arrive():
    fleet = Fleet()
    fleet.run(Spawn(None, 1))
    fleet.begin(Spawn(1, 4))
    assert fleet.active == frozenset()
    fleet.finish(Spawn(1, 4))
    assert fleet.active == {1, 4}
    fleet.begin(Migrate(4, 2))
    assert fleet.active == {1}
    fleet.finish(Migrate(4, 2))
    assert fleet.active == {1, 2}


@pytest.mark.parametrize(
    "message",
    [Activate(1), Activate(5), Passivate(2), Passivate(5), Migrate(2, 6), Migrate(1, 2), Spawn(2, 6), Spawn(1, 1)],
)
def test_a_message_that_the_state_does_not_allow_is_refused(message):
    fleet = Fleet()
    fleet.run(Spawn(None, 1), Spawn(None, 2), Passivate(2))
    before = dict(fleet.states)
    with pytest.raises(InputError, match="vertex"):
        fleet.begin(message)
    assert fleet.states == before


def test_nothing_can_finish_that_never_began_and_no_two_filters_go_to_one_place():
    fleet = Fleet()
    fleet.run(Spawn(None, 1), Spawn(None, 2))
    with pytest.raises(InputError, match="never began"):
        fleet.finish(Migrate(1, 3))
    fleet.begin(Migrate(1, 3))
    with pytest.raises(InputError, match="nowhere to go"):
        fleet.begin(Migrate(2, 3))
