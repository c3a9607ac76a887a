"""Tree demand: f is a true union, chances have the mean they should, drift moves what it says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import narrowcast as nc
from naive.union import flow as flow_by_hand
from narrowcast.errors import InputError, UnsupportedError
from narrowcast.workloads.random_tree import places
from narrowcast.workloads.union import pack, sizes_of, unions, unpack


@st.composite
def trees(draw: st.DrawFn) -> list[int]:
    n = draw(st.integers(1, 25))
    parents = [-1] + [draw(st.integers(0, v - 1)) for v in range(1, n)]
    # Any numbering of the vertices, not only parents first.
    order = draw(st.permutations(range(n)))
    renamed = [0] * n
    for v, parent in enumerate(parents):
        renamed[order[v]] = -1 if parent < 0 else order[parent]
    return renamed


@given(parents=trees(), items=st.integers(1, 130), seed=st.integers(0, 99), weighted=st.booleans())
def test_flow_is_the_size_of_the_union_below(parents: list[int], items: int, seed: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    tree = nc.Tree(parents)
    wants = rng.random((tree.leaves.size, items)) < rng.choice([0.05, 0.5])
    sizes = rng.integers(1, 9, items).astype(float) if weighted else None
    ours = sizes_of(unions(tree, pack(wants)), sizes, items)
    by_leaf = {int(v): set(np.flatnonzero(row).tolist()) for v, row in zip(tree.leaves, wants, strict=True)}
    assert ours.tolist() == flow_by_hand(parents, by_leaf, [1.0] * items if sizes is None else sizes.tolist())
    assert np.array_equal(unpack(pack(wants), items), wants)


def test_uniform_demand_has_the_published_size_and_chance() -> None:
    demand = nc.workloads.tree_demand(p=0.3, seed=1)
    assert (demand.tree.n, demand.n_users, demand.items) == (127, 64, 64)
    assert abs(demand.wants.mean() - 0.3) < 0.03
    assert demand.flow.shape == (127,)
    np.testing.assert_array_equal(demand.flow[demand.tree.leaves], demand.wants.sum(axis=1))


@pytest.mark.parametrize("q", [0.01, 0.2, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("mean", [0.05, 0.2, 0.9])
def test_locality_keeps_the_mean_after_clipping(q: float, mean: float) -> None:
    demand = nc.workloads.tree_demand("locality", q=q, mean=mean)
    assert demand.chance is not None
    assert demand.chance.mean() == pytest.approx(mean, abs=1e-9)
    assert demand.chance.max() <= 1


def test_locality_falls_by_q_with_each_level_up_to_the_common_ancestor() -> None:
    chance = nc.workloads.tree_demand("locality", q=0.8, mean=0.1).chance
    assert chance is not None
    heights = {0: 0, 1: 1, 2: 2, 3: 2, 4: 3, 63: 6}
    for j, r in heights.items():
        assert chance[0, j] / chance[0, 0] == pytest.approx(0.8**r)
    np.testing.assert_allclose(chance, chance.T)


def test_without_locality_all_chances_are_equal() -> None:
    chance = nc.workloads.tree_demand("locality", q=1.0).chance
    assert chance is not None
    assert np.ptp(chance) < 1e-12


def test_commuters_start_on_the_left_and_end_on_the_right() -> None:
    home = nc.workloads.tree_demand("commuters", q=0.25, seed=3)
    left, right = home.wants[:32].mean(), home.wants[32:].mean()
    assert left > 0.5 > 0.1 > right
    halfway, work = home.commute(16), home.commute(32)
    assert np.array_equal(halfway.wants[:16], home.wants[32:48])
    assert np.array_equal(halfway.wants[16:32], home.wants[16:32])
    assert np.array_equal(work.wants, np.concatenate((home.wants[32:], home.wants[:32])))
    assert np.array_equal(home.commute(5).commute(11).wants, halfway.wants)
    assert np.array_equal(work.commute(32).wants, home.wants)
    assert work.flow[1] == home.flow[2]


def test_about_a_fifth_of_the_users_redraw_and_the_others_stay() -> None:
    demand = nc.workloads.tree_demand(levels=11, p=0.3, seed=0)
    later = demand.redraw(0.2, seed=1)
    changed = (later.wants != demand.wants).any(axis=1).mean()
    assert 0.15 < changed < 0.25
    assert abs(later.wants.mean() - 0.3) < 0.02
    assert np.array_equal(demand.redraw(0.2, seed=1).words, later.words)
    assert np.array_equal(demand.redraw(0.0).words, demand.words)


def test_redrawing_users_can_take_on_a_new_taste() -> None:
    demand = nc.workloads.tree_demand(levels=9, p=0.3, seed=0)
    later = demand.redraw(1.0, chance=np.linspace(0, 1, 256), seed=1)
    assert not later.wants[0].any()
    assert later.wants[-1].all()
    assert later.chance is not None
    assert later.redraw(1.0, seed=2).wants[-1].all()
    with pytest.raises(InputError, match="at most 1"):
        demand.redraw(chance=1.5)


def test_pairs_name_leaves() -> None:
    demand = nc.workloads.tree_demand(levels=3, items=5, p=0.5, seed=1)
    leaf, item = demand.pairs()
    assert set(leaf.tolist()) <= set(demand.tree.leaves.tolist())
    assert leaf.size == item.size == demand.wants.sum()


@pytest.mark.parametrize("shape", ["random", "complete", "deep"])
def test_large_trees_have_a_monotone_subadditive_flow(shape: str) -> None:
    demand = nc.workloads.random_tree(20_000, shape=shape, seed=2)
    tree, flow = demand.tree, demand.flow
    children = np.delete(np.arange(tree.n), tree.root)
    below = np.bincount(tree.parents[children], weights=flow[children], minlength=tree.n)
    assert (flow[tree.parents[children]] >= flow[children]).all()
    assert (flow[~tree.is_leaf] <= below[~tree.is_leaf]).all()
    assert flow[tree.leaves].min() >= 1
    assert flow[tree.leaves].max() <= 4
    assert np.unique(flow).size > 30


def test_places_run_from_left_to_right() -> None:
    tree = nc.Tree([-1, 0, 0, 1, 1, 2])
    assert places(tree).tolist() == pytest.approx([0, 0, 2 / 3, 0, 1 / 3, 2 / 3])


def test_only_what_was_drawn_from_chances_can_redraw() -> None:
    with pytest.raises(UnsupportedError, match="tree_demand"):
        nc.workloads.random_tree(50).redraw()


@pytest.mark.parametrize(
    ("kind", "wrong", "says"),
    [
        ("uniforn", {}, "did you mean 'uniform'"),
        ("uniform", {"p": 1.2}, r"p must be .*, got 1.2"),
        ("uniform", {"q": 0.2}, "q must be left out for uniform, which takes p only"),
        ("locality", {"p": 0.2}, "mean and q"),
        ("locality", {"q": 0.0}, r"q must be .*, got 0"),
        ("locality", {"q": 1.5}, r"q must be .*, got 1.5"),
        ("commuters", {"q": 0.4}, "must be in the range 0 to 1"),
        ("commuters", {"levels": 1}, r"levels must be .*, got 1"),
        ("uniform", {"items": 0}, r"items must be .*, got 0"),
        ("uniform", {"sizes": [1, 2]}, "sizes must have shape"),
    ],
)
def test_impossible_parameters_are_refused(kind: str, wrong: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        nc.workloads.tree_demand(kind, **wrong)


@pytest.mark.nightly
@pytest.mark.parametrize("shape", ["random", "complete", "deep"])
def test_five_million_vertices_are_made_in_seconds(shape: str) -> None:
    demand = nc.workloads.random_tree(5_000_000, shape=shape)
    assert (np.delete(demand.flow - demand.flow[demand.tree.parents], demand.tree.root) <= 0).all()
