"""Clients share profiles by the selectivity factor and overlap by the degree asked for."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import narrowcast as nc
from narrowcast.errors import InputError
from narrowcast.network import shortest_paths
from narrowcast.workloads.overlay_clients import names_of
from narrowcast.workloads.tables.places import overlay_tables


@pytest.fixture(scope="module")
def topology() -> nc.Topology:
    return nc.workloads.overlay(60, seed=1)


def matches(made: nc.workloads.OverlayClients) -> np.ndarray:
    """messages × profiles."""
    profiles = [nc.Profile.parse(text) for text in made.profiles]
    rows = made.messages.select(["reading"]).to_pylist()
    return np.array([[profile.matches(row) for profile in profiles] for row in rows])


@pytest.mark.parametrize("selectivity", [1, 2, 7])
def test_distinct_profiles_are_one_in_selectivity_of_all(topology: nc.Topology, selectivity: int) -> None:
    made = nc.workloads.overlay_clients(topology, 700, selectivity=selectivity, overlap=0.2, messages=0)
    assert len(set(made.profiles)) == len(made.profiles) == 700 // selectivity
    assert made.clients.shape == (700, 2)
    assert set(made.clients[:, 1]) <= set(np.flatnonzero(np.array(topology.roles) == "gateway"))


def test_profiles_without_overlap_share_out_the_messages(topology: nc.Topology) -> None:
    made = nc.workloads.overlay_clients(topology, 60, selectivity=3, messages=150)
    assert (matches(made).sum(axis=1) == 1).all()


@pytest.mark.parametrize("overlap", [0.1, 0.4, 0.8])
def test_the_mean_overlap_is_the_one_asked_for(topology: nc.Topology, overlap: float) -> None:
    made = nc.workloads.overlay_clients(topology, 80, selectivity=1, overlap=overlap, messages=300, seed=2)
    hit = matches(made).astype(float)
    both = hit.T @ hit
    shares = both / np.maximum(np.diag(both), 1)[:, None]
    off_diagonal = (shares.sum() - np.trace(shares)) / (80 * 79)
    assert off_diagonal == pytest.approx(overlap, abs=0.06)


def test_some_overlapping_profiles_contain_others(topology: nc.Topology) -> None:
    made = nc.workloads.overlay_clients(topology, 20, selectivity=1, overlap=0.4, messages=0, seed=0)
    profiles = [nc.Profile.parse(text) for text in made.profiles]
    assert any(a.covers(b) for a in profiles for b in profiles if a is not b)


def test_messages_come_from_source_brokers_in_order_of_time(topology: nc.Topology) -> None:
    made = nc.workloads.overlay_clients(topology, 10, messages=500)
    assert set(made.sources) <= set(np.flatnonzero(np.array(topology.roles) == "source"))
    ts = made.messages["ts"].cast("int64").to_numpy()
    assert (np.diff(ts) >= 0).all()


def test_impossible_wishes_are_refused(topology: nc.Topology) -> None:
    with pytest.raises(InputError, match=r"cannot draw .* distinct profiles with overlap"):
        nc.workloads.overlay_clients(topology, 10, overlap=1.0)
    with pytest.raises(InputError, match=r"selectivity must be .*, got 0\.5"):
        nc.workloads.overlay_clients(topology, 10, selectivity=0.5)
    with pytest.raises(InputError, match="role gateway"):
        nc.workloads.overlay_clients(nc.Topology([(0, 1)]), 10)


def test_the_latency_bounds_of_generated_clients_can_be_kept() -> None:
    tables = {source.name: source for source in overlay_tables(messages=0, users=300, brokers=60, seed=2)}
    clients = pa.Table.from_batches(tables["subscriptions"].batches())
    topology = nc.workloads.overlay(60, seed=2)
    sources = [i for i, role in enumerate(topology.roles) if role == "source"]
    quickest = shortest_paths(topology, "delay").delay[sources].max(axis=0)
    place = {name: at for at, name in enumerate(names_of(topology).tolist())}
    bounds = [(row["latency_bound"], quickest[place[row["node"]]]) for row in clients.to_pylist()]
    kept = [(bound, least) for bound, least in bounds if bound is not None]
    assert 30 < len(kept) < 120
    assert all(least <= bound <= 5 * least for bound, least in kept)
