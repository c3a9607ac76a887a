"""Clients come and go between reorganisations, and nobody is missed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import narrowcast as nc
from naive import semantic_system as naive
from narrowcast.errors import InputError
from narrowcast.plans.semantic.api import METHODS, LiveChannels


def checked(live: LiveChannels, small: naive.Small, note: object) -> None:
    """Nobody is missed, trees are sound, and no gateway is served for nothing."""
    plan = live.plan
    clients = list(live.clients.values())
    for table, sources in ((small.window, small.sources), (small.later, small.later_sources)):
        assert naive.missed(plan, clients, live.profiles, table, sources) == [], note
    assert naive.channel_faults(plan) == [], note
    here = {gateway for _, gateway in clients}
    assert {gateway for channel in plan.channels for gateway in channel.gateways} == here, note


@pytest.mark.parametrize("variant", METHODS)
def test_nobody_is_missed_after_any_subscribing_and_unsubscribing_and_after_planning_again(variant: str) -> None:
    for seed in range(20):
        small = naive.small_system(seed)
        rng = np.random.default_rng([seed, 9])
        plan = nc.semantic.plan(
            small.topology, small.profiles, small.clients, small.window, small.sources, variant=variant, seed=seed
        )
        live = LiveChannels(plan)
        for step in range(12):
            if live.clients and rng.random() < (0.5 if step < 8 else 0.9):
                live.unsubscribe(int(rng.choice(list(live.clients))))
            else:
                known = rng.random() < 0.5
                profile = small.profiles[int(rng.integers(len(small.profiles)))] if known else naive.profile_text(rng)
                live.subscribe(profile, int(rng.integers(small.topology.n_brokers)))
            if step % 3 == 2:
                checked(live, small, (seed, step))
        again = nc.semantic.plan(
            small.topology,
            live.profiles,
            list(live.clients.values()),
            small.later,
            small.later_sources,
            variant=variant,
        )
        clients = list(live.clients.values())
        assert naive.missed(again, clients, live.profiles, small.window, small.sources) == []
        for client in list(live.clients):
            live.unsubscribe(client)
        assert [channel.gateways for channel in live.plan.channels if channel.gateways] == []
        live.subscribe("x > 3", 0)
        checked(live, small, seed)


def test_a_covered_profile_joins_its_channel_and_another_opens_one() -> None:
    line = nc.Topology([(0, 1), (1, 2), (2, 3)])
    window = pa.table({"x": [1, 6, 9]})
    live = LiveChannels(nc.semantic.plan(line, ["x > 5"], [(0, 1)], window, sources=0, variant="semcast"))
    covered = live.subscribe("x > 7", 2)
    assert (covered.joined, covered.opened, live.plan.n_channels) == (1, 0, 1)
    other = live.subscribe("x < 3", 3)
    assert (other.joined, other.opened, live.plan.n_channels) == (1, 1, 2)
    live.unsubscribe(other.client)
    assert [channel.gateways for channel in live.plan.channels] == [(1, 2)]


def test_under_search_a_new_profile_at_a_known_gateway_needs_no_new_channel() -> None:
    line = nc.Topology([(0, 1), (1, 2), (2, 3)])
    live = LiveChannels(nc.semantic.plan(line, ["x > 5"], [(0, 1)], pa.table({"x": [1, 6, 9]}), sources=0))
    before = live.plan.n_channels
    assert live.subscribe("x < 3", 1).joined == 0
    assert live.subscribe("x < 3", 3).joined == 1
    assert live.plan.n_channels == before


def test_unknown_clients_and_brokers_are_refused() -> None:
    live = LiveChannels(nc.semantic.plan(nc.Topology([(0, 1)]), ["x = 1"], [(0, 1)], pa.table({"x": [1]}), sources=0))
    with pytest.raises(InputError, match="client must be one that has subscribed, got 7"):
        live.unsubscribe(7)
    with pytest.raises(InputError, match=r"gateway must be a broker below .*, got 5"):
        live.subscribe("x = 1", 5)
