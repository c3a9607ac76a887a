"""Large systems, at night."""

from __future__ import annotations

import numpy as np
import pytest

import narrowcast as nc


def unreached(plan: nc.semantic.SemanticPlan, messages, sources) -> int:
    """(message, gateway) pairs wanted and not reached, counted on matrices."""
    system = plan.system
    wanted = system.audience(system.match(messages))
    place = {int(g): j for j, g in enumerate(system.gateways)}
    reach = np.zeros((plan.n_channels, system.gateways.size), np.bool_)
    for c, channel in enumerate(plan.channels):
        reach[c, [place[g] for g in channel.gateways]] = True
    reached = np.zeros_like(wanted)
    for row, col in zip(*plan.route(messages, sources), strict=True):
        reached[row] |= reach[col]
    return int((wanted & ~reached).sum())


def planned(brokers: int, clients: int, profiles: int, messages: int):
    topology = nc.workloads.overlay(brokers, seed=1)
    made = nc.workloads.overlay_clients(
        topology, clients=clients, messages=messages + 200, overlap=0.01, selectivity=clients / profiles, seed=1
    )
    window, now = made.messages.slice(0, messages), made.sources[:messages]
    plan = nc.semantic.plan(topology, made.profiles, made.clients, window, now)
    spt = nc.semantic.baseline(topology, made.profiles, made.clients, window, now).cost
    assert nc.semantic.bandwidth(plan, window, now) <= spt
    assert unreached(plan, made.messages.slice(messages), made.sources[messages:]) == 0


def test_a_hundred_brokers_and_a_thousand_clients_are_planned_below_shortest_path_trees() -> None:
    planned(100, 1_000, 200, 400)


@pytest.mark.nightly
def test_two_thousand_brokers_and_a_hundred_thousand_clients_are_planned_below_shortest_path_trees() -> None:
    planned(2_000, 100_000, 10_000, 10_000)
