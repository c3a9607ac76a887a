"""The one promise, on a thousand random systems: whoever matches a message gets it, exactly once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import narrowcast as nc
from naive import semantic_system as naive
from narrowcast.plans.semantic.api import METHODS, LiveChannels

CAPS = (None, 1, 2, 4)


def unjust(plan, clients: list[tuple[int, int]], profiles, table, sources, note: object) -> None:
    """Walk every message from its source to the clients, and count what each client gets."""
    rows, cols = plan.route(table, sources)
    arrived: dict[int, list[tuple[int, int]]] = {}
    for i, c in zip(rows.tolist(), cols.tolist(), strict=True):
        channel = plan.channels[c]
        reached, front = {channel.rendezvous}, [channel.rendezvous]
        below: dict[int, list[int]] = {}
        for u, v in channel.edges.tolist():
            below.setdefault(u, []).append(v)
        while front:
            new = below.get(front.pop(), [])
            assert not reached & set(new), note  # no broker forwards a channel's message twice
            reached |= set(new)
            front += new
        assert reached >= set(channel.gateways), note
        arrived.setdefault(i, []).extend((gateway, i) for gateway in channel.gateways)
    for i, message in enumerate(table.to_pylist()):
        # A gateway may get a message over several channels: its edge filter passes the first copy on.
        copies = Counter(gateway for gateway, _ in arrived.get(i, []))
        got = Counter(
            client
            for gateway in copies
            for client, (profile, at) in enumerate(clients)
            if at == gateway and profiles[profile].matches(message)
        )
        wanted = {client for client, (profile, _) in enumerate(clients) if profiles[profile].matches(message)}
        assert got == Counter(dict.fromkeys(wanted, 1)), (note, i)


@pytest.mark.parametrize("start", range(0, 1000, 250))
def test_on_a_thousand_random_systems_every_matching_client_gets_every_message_exactly_once(start: int) -> None:
    for seed in range(start, start + 250):
        small = naive.small_system(seed)
        variant, cap = METHODS[seed % 5], CAPS[seed // 5 % 4]
        rendezvous = "random" if seed % 7 == 0 else "best"
        args = (small.topology, small.profiles, small.clients, small.window, small.sources)
        plan = nc.semantic.plan(*args, variant=variant, max_channels=cap, rendezvous=rendezvous, seed=seed)
        assert cap is None or plan.n_channels <= cap, seed
        assert naive.channel_faults(plan) == [], seed
        # The later messages lie outside the window, some from brokers that never published in it.
        for table, sources in ((small.window, small.sources), (small.later, small.later_sources)):
            unjust(plan, small.clients, small.profiles, table, sources, seed)


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, 1000, 250))
def test_on_a_thousand_systems_also_after_coming_and_going_and_after_planning_again(start: int) -> None:
    for seed in range(start, start + 250):
        small = naive.small_system(seed)
        rng = np.random.default_rng([seed, 5])
        args = (small.topology, small.profiles, small.clients, small.window, small.sources)
        live = LiveChannels(nc.semantic.plan(*args, variant=METHODS[seed % 5], max_channels=CAPS[seed // 5 % 4]))
        for _ in range(4):
            if live.clients and rng.random() < 0.5:
                live.unsubscribe(int(rng.choice(list(live.clients))))
            else:
                live.subscribe(naive.profile_text(rng), int(rng.integers(small.topology.n_brokers)))
        clients = list(live.clients.values())
        unjust(live.plan, clients, live.profiles, small.later, small.later_sources, seed)
        assert naive.channel_faults(live.plan) == [], seed
        again = nc.semantic.plan(
            small.topology, live.profiles, clients, small.later, small.later_sources, variant=METHODS[seed % 5]
        )
        unjust(again, clients, live.profiles, small.window, small.sources, seed)
