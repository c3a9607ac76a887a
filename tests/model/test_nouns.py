"""Interest, Tree and Topology: what they hold, what they refuse, and that they stay as they are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import narrowcast as nc
from narrowcast.errors import InputError


def test_interest_keeps_each_pair_once_and_sorted() -> None:
    interest = nc.Interest.from_pairs(flow=[1, 0, 1, 1], user=[2, 0, 0, 2], rates=[3.0, 4.0, 5.0])
    assert (interest.n_flows, interest.n_users, interest.n_pairs) == (3, 3, 3)
    assert [interest.users_of(k).tolist() for k in range(3)] == [[0], [0, 2], []]
    offsets, flows = interest.by_user
    assert [flows[offsets[u] : offsets[u + 1]].tolist() for u in range(3)] == [[0, 1], [], [1]]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 6)), max_size=40))
def test_interest_from_any_pairs_is_the_set_of_them(pairs: list[tuple[int, int]]) -> None:
    flow, user = [p[0] for p in pairs], [p[1] for p in pairs]
    interest = nc.Interest.from_pairs(flow, user, np.ones(10), n_users=7)
    assert set(zip(interest.flow_of_pair.tolist(), interest.users.tolist(), strict=True)) == set(pairs)
    offsets, flows = interest.by_user
    back = {(int(k), u) for u in range(7) for k in flows[offsets[u] : offsets[u + 1]]}
    assert back == set(pairs)


@pytest.mark.parametrize(
    ("flow", "user", "rates", "says"),
    [
        ([0, 3], [0, 0], [1.0, 1.0], r"flow\[1\] must be .* below 2, got 3"),
        ([0, -1], [0, 0], [1.0, 1.0], r"flow\[1\] must be .* got -1"),
        ([0], [0, 1], [1.0], "flow and user must have the same length, got 1 and 2"),
        ([0], [0], [-1.0], r"rates\[0\] must be .* got -1"),
        ([0], [0], [float("nan")], r"rates\[0\] must be .* got nan"),
        ([0.5], [0], [1.0], "whole numbers"),
        ([[0]], [0], [1.0], "1-d"),
        ([0], [0], ["fast"], "must be numbers"),
    ],
)
def test_interest_refuses_what_cannot_be_with_the_place(flow, user, rates, says) -> None:
    with pytest.raises(InputError, match=says):
        nc.Interest.from_pairs(flow, user, rates)


def test_the_arrays_of_a_noun_cannot_be_written() -> None:
    rates = np.ones(2)
    interest = nc.Interest.from_pairs([0, 1], [0, 0], rates)
    rates[0] = 7
    assert interest.rates[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        interest.rates[0] = 7


def random_parents(n: int, seed: int) -> np.ndarray:
    """A random tree with its vertices renamed, so that parents may have larger indices than children."""
    rng = np.random.default_rng(seed)
    parents = np.array([-1] + [int(rng.integers(0, i)) for i in range(1, n)])
    name = rng.permutation(n)
    renamed = np.full(n, -1)
    for child, parent in enumerate(parents):
        renamed[name[child]] = -1 if parent < 0 else name[parent]
    return renamed


@given(st.integers(1, 60), st.integers(0, 10**6))
def test_tree_depth_order_and_children_follow_from_the_parents(n: int, seed: int) -> None:
    parents = random_parents(n, seed)
    tree = nc.Tree(parents)
    for v in range(n):
        steps, x = 0, v
        while parents[x] >= 0:
            steps, x = steps + 1, parents[x]
        assert tree.depth[v] == steps
        assert x == tree.root
    place = np.argsort(tree.order)
    offsets, below = tree.children
    for v in range(n):
        children = below[offsets[v] : offsets[v + 1]].tolist()
        assert children == [c for c in range(n) if parents[c] == v]
        assert all(place[c] > place[v] for c in children)
        assert bool(tree.is_leaf[v]) == (not children) == (not tree.can_filter[v])


def test_a_path_of_a_hundred_thousand_vertices_is_no_trouble() -> None:
    assert nc.Tree(np.arange(-1, 99_999)).depth[-1] == 99_999


@pytest.mark.parametrize(
    ("parents", "says"),
    [
        ([-1, 2, 1], "cycle"),
        ([-1, 0, 2], "cycle"),
        ([-1, -1], "one root"),
        ([0, 0], "one root"),
        ([], "at least one"),
        ([-1, 5], r"parents\[1\] must be .* got 5"),
    ],
)
def test_tree_refuses_what_is_no_tree(parents, says) -> None:
    with pytest.raises(InputError, match=says):
        nc.Tree(parents)


def test_hosts_may_be_a_mask_or_a_list_and_never_a_leaf() -> None:
    for hosts in ([1, 2], [False, True, True, False, False]):
        tree = nc.Tree([-1, 0, 0, 1, 1], can_filter=hosts)
        assert tree.can_filter.tolist() == [False, True, False, False, False]


def test_topology_keeps_the_cheaper_of_two_links() -> None:
    net = nc.Topology([(0, 1), (1, 2), (1, 0)], cost=[5, 1, 2])
    assert net.edges.tolist() == [[0, 1], [1, 2]]
    assert net.cost.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("edges", "options", "says"),
    [
        ([(0, 0)], {}, "two brokers, got 0 twice"),
        ([(0, 1)], {"cost": [0]}, "positive"),
        ([(0, 1, 2)], {}, "shape"),
        ([(0, 1)], {"roles": ["source"]}, "roles must have 2 entries, one per broker, got 1"),
        ([(0, 1)], {"roles": ["source", "chief"]}, "'chief'"),
        ([(0, 9)], {"n_brokers": 3}, "below 3"),
    ],
)
def test_topology_refuses_what_is_no_network(edges, options, says) -> None:
    with pytest.raises(InputError, match=says):
        nc.Topology(edges, **options)
