"""Latency bounds: every message of a known source is in time, or one line says what bound would do."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import narrowcast as nc
from naive import semantic_system as naive
from naive.paths import distances
from narrowcast.errors import InfeasibleError, InputError
from narrowcast.plans.semantic.api import METHODS
from narrowcast.plans.semantic.judge.faults import semantic_faults


def delays(small: naive.Small, seed: int) -> nc.Topology:
    """The same overlay with delays that have nothing to do with its costs."""
    rng = np.random.default_rng(seed)
    t = small.topology
    return nc.Topology(t.edges, cost=t.cost, delay=rng.integers(1, 9, t.n_links), n_brokers=t.n_brokers)


def least(topology: nc.Topology, small: naive.Small) -> float:
    """The smallest bound for all clients: the slowest quickest way."""
    quick = distances(topology, topology.delay)
    sources = {small.sources} if np.ndim(small.sources) == 0 else set(np.asarray(small.sources).tolist())
    return max((quick[s][g] for s in sources for _, g in small.clients), default=0.0)


def late(plan, topology: nc.Topology, table: pa.Table, sources, bound: dict[int, float]) -> list:
    """Gateways that a message comes to after its bound, the way to the rendezvous as quick as can be."""
    quick = distances(topology, topology.delay)
    link = {tuple(sorted(e)): d for e, d in zip(topology.edges.tolist(), topology.delay.tolist(), strict=True)}
    found = []
    for i, c in zip(*(part.tolist() for part in plan.route(table, sources)), strict=True):
        channel, source = plan.channels[c], sources if np.ndim(sources) == 0 else int(sources[i])
        at = {channel.rendezvous: quick[source][channel.rendezvous]}
        edges = channel.edges.tolist()
        while len(at) <= len(edges):
            at |= {v: at[u] + link[tuple(sorted((u, v)))] for u, v in edges if u in at}
        found += [(i, c, g) for g in channel.gateways if at[g] > bound.get(g, np.inf) * (1 + 1e-8)]
    return found


@pytest.mark.parametrize("variant", METHODS)
def test_bounds_are_kept_and_nobody_is_missed(variant: str) -> None:
    kept, refused = 0, []
    for seed in range(60):
        small = naive.small_system(seed)
        if not small.clients or not small.window.num_rows:
            continue
        topology = delays(small, seed)
        bound = least(topology, small) * (1.0, 1.2, 2.0)[seed % 3]
        if bound == 0:
            continue
        args = (topology, small.profiles, small.clients, small.window, small.sources)
        cap = None if seed % 2 else 4
        try:
            plan = nc.semantic.plan(*args, variant=variant, max_channels=cap, latency_bound=bound, seed=seed)
        except InfeasibleError as error:
            # A rendezvous shared by several sources may need more; one source never does.
            assert np.ndim(small.sources) == 1, seed
            assert variant != "search" or cap is not None, seed
            refused.append((error.budget, error.smallest / bound))
            continue
        kept += 1
        gateways = {g: bound for _, g in small.clients}
        assert late(plan, topology, small.window, small.sources, gateways) == [], seed
        assert naive.missed(plan, small.clients, small.profiles, small.later, small.later_sources) == [], seed
        assert naive.channel_faults(plan) == [], seed
        assert semantic_faults(plan.to_tables()) == [], seed
    assert kept > 20
    assert all(budget == "latency_bound" and more > 1 for budget, more in refused)


def test_one_below_the_smallest_bound_says_what_would_do_and_that_does() -> None:
    told = 0
    for seed in range(40):
        small = naive.small_system(seed)
        topology = delays(small, seed)
        smallest = least(topology, small) if small.clients and small.window.num_rows else 0.0
        if smallest <= 0:
            continue
        args = (topology, small.profiles, small.clients, small.window, small.sources)
        with pytest.raises(InfeasibleError, match=r"latency_bound .* cannot be kept at broker") as caught:
            nc.semantic.plan(*args, latency_bound=smallest * 0.99)
        assert caught.value.smallest == pytest.approx(smallest)
        nc.semantic.plan(*args, latency_bound=caught.value.smallest)
        told += 1
    assert told > 20


def test_each_client_may_have_a_bound_of_its_own() -> None:
    # 0 to 2 is cheap over 1 and quick directly.
    triangle = nc.Topology([(0, 1), (1, 2), (0, 2)], cost=[1, 1, 9], delay=[5, 5, 1])
    args = (triangle, ["x > 0"], [(0, 1), (0, 2)], pa.table({"x": [1, 2]}), 0)
    free = nc.semantic.plan(*args)
    hurried = nc.semantic.plan(*args, latency_bound=[np.nan, 2.0])
    assert nc.semantic.bandwidth(free, args[3], 0) == 4.0
    assert nc.semantic.bandwidth(hurried, args[3], 0) == 20.0
    assert late(hurried, triangle, args[3], 0, {2: 2.0}) == []
    with pytest.raises(InputError, match=r"must be one bound or 2, got shape"):
        nc.semantic.plan(*args, latency_bound=[1.0, 2.0, 3.0])
    with pytest.raises(InputError, match=r"above 0, got 0"):
        nc.semantic.plan(*args, latency_bound=0)


def test_without_known_sources_bounds_hold_from_the_rendezvous() -> None:
    line = nc.Topology([(0, 1), (1, 2), (2, 3), (3, 4)])
    plan = nc.semantic.plan(line, ["x > 0"], [(0, 0), (0, 4)], pa.table({"x": [1]}), latency_bound=2)
    assert {channel.rendezvous for channel in plan.channels if len(channel.gateways) == 2} == {2}
