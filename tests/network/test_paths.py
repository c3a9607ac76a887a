"""Shortest paths and trees over them agree with their slow twins."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import paths as naive
from narrowcast.errors import InputError
from narrowcast.model import Topology
from narrowcast.network import DisseminationTree, shortest_paths, tree_edges


def random_topology(rng: np.random.Generator, n: int, *, whole: bool = False) -> Topology:
    """A random connected graph; whole costs make many ties."""
    edges = [(int(rng.integers(0, i)), i) for i in range(1, n)]
    edges += [(int(u), int(v)) for u, v in rng.integers(0, n, (n, 2)) if u != v]
    cost = rng.integers(1, 4, len(edges)) if whole else rng.random(len(edges)) + 0.01
    delay = rng.integers(0, 3, len(edges)) if whole else rng.random(len(edges))
    return Topology(edges or np.zeros((0, 2)), cost=cost, delay=delay, n_brokers=n)


systems = st.tuples(st.integers(1, 14), st.integers(0, 10**6), st.booleans())


@given(systems, st.sampled_from(["cost", "delay"]))
def test_distances_and_both_sums_along_the_paths_are_those_of_the_definition(system, by) -> None:
    n, seed, whole = system
    topology = random_topology(np.random.default_rng(seed), n, whole=whole)
    paths = shortest_paths(topology, by)
    assert np.allclose(paths.distance, naive.distances(topology, getattr(topology, by)))
    for u in range(n):
        for v in range(n):
            walk = paths.path(u, v)
            assert len(set(walk)) == len(walk)
            sums = [sum(paths.links[a, b][i] for a, b in itertools.pairwise(walk)) for i in (0, 1)]
            assert np.allclose(sums, [paths.cost[u, v], paths.delay[u, v]])


@given(systems, st.data())
@settings(max_examples=150)
def test_every_kind_of_tree_is_its_definitions_and_sound(system, data) -> None:
    n, seed, whole = system
    paths = shortest_paths(random_topology(np.random.default_rng(seed), n, whole=whole))
    root = data.draw(st.integers(0, n - 1))
    members = data.draw(st.lists(st.integers(0, n - 1), max_size=n, unique=True))
    d, hop = paths.distance.tolist(), paths.next_hop.tolist()
    assert set(tree_edges(paths, root, members, "join")) == naive.join_in_order(d, hop, root, members)
    assert set(tree_edges(paths, root, members, "nearest")) == naive.nearest_first(d, hop, root, members)
    assert set(tree_edges(paths, root, members, "spt")) == naive.shortest_path_tree(hop, root, members)
    joined = DisseminationTree(paths, root)
    for member in members:
        joined.join(member)
    assert tree_edges(paths, root, members, "join-broker") == joined.edges
    for kind in ("join", "join-broker", "nearest", "spt", "steiner", "starts", "best"):
        assert naive.tree_faults(tree_edges(paths, root, members, kind), root, set(members)) == []


def test_a_split_overlay_is_refused_where_a_path_would_be_needed() -> None:
    paths = shortest_paths(Topology([(0, 1), (2, 3)]))
    with pytest.raises(InputError, match="no path joins brokers 0 and 3"):
        tree_edges(paths, 0, [1, 3])
    with pytest.raises(InputError, match="no path joins brokers 1 and 2"):
        paths.path(1, 2)


def test_two_thousand_brokers_have_all_their_paths_in_seconds() -> None:
    topology = random_topology(np.random.default_rng(0), 2000)
    paths = shortest_paths(topology)
    assert paths.distance.shape == (2000, 2000)
    assert np.isfinite(paths.delay).all()
    assert paths.cost[0, 1999] == pytest.approx(
        sum(paths.links[a, b][0] for a, b in zip(paths.path(0, 1999), paths.path(0, 1999)[1:], strict=False))
    )
