"""Overlays are connected, cost something everywhere, and have the roles asked for."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import rustworkx as rx

import narrowcast as nc
from narrowcast.errors import InputError, UnsupportedError
from narrowcast.workloads.real_networks import network_names, real_network


def is_connected(topology: nc.Topology) -> bool:
    graph = rx.PyGraph()
    graph.add_nodes_from(range(topology.n_brokers))
    graph.add_edges_from_no_data([(u, v) for u, v in topology.edges.tolist()])
    return rx.is_connected(graph)


def of_role(topology: nc.Topology, role: str) -> np.ndarray:
    return np.flatnonzero(np.array(topology.roles) == role)


@pytest.mark.parametrize("model", ["waxman", "transit-stub", "topohub:sndlib/germany50", "topohub:topozoo/Abilene"])
@pytest.mark.parametrize("brokers", [12, 100, 600])
def test_overlays_are_connected_and_every_link_costs_something(model: str, brokers: int) -> None:
    topology = nc.workloads.overlay(brokers, model, seed=1)
    assert is_connected(topology)
    assert topology.cost.min() > 0
    assert topology.delay.min() > 0
    if ":" not in model:
        assert topology.n_brokers == brokers
        assert of_role(topology, "gateway").size == round(0.2 * brokers)
    assert of_role(topology, "source").size >= 1


@pytest.mark.parametrize("brokers", range(3, 40))
def test_small_and_sparse_overlays_are_connected_too(brokers: int) -> None:
    for model in ("waxman", "transit-stub"):
        assert is_connected(nc.workloads.overlay(brokers, model, degree=0.5, seed=brokers))


def test_waxman_overlays_have_the_degree_asked_for_and_prefer_near_links() -> None:
    near = nc.workloads.overlay(400, degree=6, beta=0.05, seed=0)
    far = nc.workloads.overlay(400, degree=6, beta=5.0, seed=0)
    for topology in (near, far):
        assert 5 < 2 * topology.n_links / 400 < 7
    assert near.cost.mean() < 0.4 * far.cost.mean()


def test_only_stubs_of_a_transit_stub_overlay_are_sources_or_gateways() -> None:
    topology = nc.workloads.overlay(600, "transit-stub", seed=2)
    assert set(np.array(topology.roles)[:20]) == {"interior"}
    # The core carries the long links.
    core = (topology.edges < 20).all(axis=1)
    assert topology.cost[core].mean() > 2 * topology.cost[~core].mean()


def test_links_may_all_cost_the_same() -> None:
    topology = nc.workloads.overlay(50, cost="unit", seed=0)
    assert (topology.cost == 1).all()
    assert np.ptp(topology.delay) > 0


def test_real_networks_keep_their_names_and_delays_follow_light() -> None:
    topology = nc.workloads.overlay(model="topohub:sndlib/polska", seed=0)
    assert topology.names is not None
    assert {"Gdansk", "Warsaw"} <= set(topology.names)
    np.testing.assert_allclose(topology.delay * 200, topology.cost)


def test_every_tenth_real_network_can_be_read() -> None:
    for name in network_names()[::10]:
        network = real_network(name)
        assert len(set(network.names)) == network.n > 1
        assert network.edges.max() < network.n


def test_an_unknown_network_names_close_ones() -> None:
    with pytest.raises(InputError, match="topozoo/Abilene"):
        nc.workloads.overlay(model="topohub:topozoo/abilene")
    with pytest.raises(InputError, match="groups: backbone"):
        nc.workloads.overlay(model="topohub:qqqqqqqq")


def test_without_topohub_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    # None in sys.modules is how Python itself marks a module that cannot be imported.
    monkeypatch.setitem(sys.modules, "topohub", None)
    with pytest.raises(UnsupportedError, match=r"narrowcast\[topologies\]"):
        nc.workloads.overlay(model="topohub:sndlib/polska")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"model": "waxmann"}, "did you mean 'waxman'"),
        ({"brokers": 1}, r"brokers must be .*, got 1"),
        ({"gateways": 1.5}, r"gateways must be .*, got 1.5"),
        ({"gateways": 0.9, "sources": 0.9}, "do not fit"),
        ({"cost": "euros"}, "must be one of distance, unit"),
        ({"beta": 0.0}, "beta must be above 0"),
    ],
)
def test_impossible_parameters_are_refused(wrong: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        nc.workloads.overlay(**wrong)
