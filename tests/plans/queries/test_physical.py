"""Few physical channels: what is overheard, and how close to the least of all assignments."""

from __future__ import annotations

import numpy as np
import pytest

import narrowcast as nc
from naive.physical import least, overheard
from narrowcast.errors import InputError, UnsupportedError
from narrowcast.plans.queries.methods.physical import place_answers


def random_case(rng):
    m, n_clients = int(rng.integers(1, 8)), int(rng.integers(1, 6))
    wanted = [sorted(rng.choice(n_clients, rng.integers(1, n_clients + 1), replace=False).tolist()) for _ in range(m)]
    return rng.uniform(1, 10, m), wanted, int(rng.integers(1, 4))


def test_it_finds_the_least_overheard_nearly_always_on_small_cases():
    rng = np.random.default_rng(0)
    found = 0
    for seed in range(60):
        sizes, wanted, channels = random_case(rng)
        home = place_answers(sizes, wanted, channels, 8, seed)
        assert home.max() < channels
        best = least(sizes, wanted, channels)
        got = overheard(sizes, wanted, home.tolist())
        assert got <= best * 1.3 + 1e-9
        found += got <= best + 1e-9
    assert found >= 57


def test_the_price_is_the_plans_own_plus_what_is_overheard():
    boxes = nc.workloads.rectangles(n=30, seed=1)
    plan = nc.queries.merge(boxes)
    clients = np.arange(30) % 7
    wanted = [sorted({int(clients[q]) for q in members}) for members in plan.sets]
    for channels in (1, 3, len(plan.sets)):
        few = nc.queries.assign(plan, clients, channels=channels)
        heard = overheard(plan.sizes.tolist(), wanted, few.channel_of_set.tolist())
        assert few.overheard == pytest.approx(heard, abs=1e-6)
        assert few.cost == pytest.approx(plan.cost + plan.constants.ku * heard)
        assert few.load.sum() == pytest.approx(plan.sizes.sum())
        for members, channel in zip(plan.sets, few.channel_of_set, strict=True):
            assert all(int(clients[q]) in few.listeners[channel] for q in members)


def test_a_channel_for_every_answer_costs_what_the_plan_does():
    plan = nc.queries.merge(nc.workloads.rectangles(n=20, seed=2))
    assert nc.queries.assign(plan, np.arange(20), channels=100).cost == pytest.approx(plan.cost)


def test_more_channels_never_cost_more_here():
    plan = nc.queries.merge(nc.workloads.rectangles(n=60, seed=3))
    costs = [nc.queries.assign(plan, np.arange(60) % 20, channels=c).cost for c in (1, 2, 4, 8, 16)]
    assert costs == sorted(costs, reverse=True)


def test_wrong_clients_channels_and_procedures_are_refused():
    plan = nc.queries.merge([[[0, 1]], [[5, 6]]])
    with pytest.raises(InputError, match="clients must have 2 entries, got 1"):
        nc.queries.assign(plan, [0], channels=1)
    with pytest.raises(InputError, match="channels"):
        nc.queries.assign(plan, [0, 1], channels=0)
    with pytest.raises(UnsupportedError):
        nc.queries.assign(nc.queries.merge([[[0, 1]]], procedure="exact"), [0], channels=1)
