"""The incremental state equals the one computed from scratch, and touches only what changed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import narrowcast as nc
from naive.filter_problems import complete_binary, random_problem, recursive_tree
from narrowcast.errors import InputError
from narrowcast.plans.filters.methods.flip import goal, state_of


def same_as_from_scratch(watch, wanted_counts, size, delays=(0.0, 1.0)):
    tree = watch.tree
    leaf, item = np.nonzero(wanted_counts > 0)
    f = nc.filters.flow_from_demand(tree, leaf, item, size)
    assert watch.flow == pytest.approx(f, abs=1e-9)
    mask = np.isin(np.arange(tree.n), watch.filters)
    fresh = state_of(tree, f, goal(tree, watch.objective, *delays), mask)
    for now, then in zip(watch._state, fresh, strict=True):
        assert now == pytest.approx(then, abs=1e-9)
    if watch.objective == "traffic":
        assert watch.value == pytest.approx(nc.filters.traffic(tree, f, watch.filters), abs=1e-9)
    else:
        F, c = delays
        assert watch.value == pytest.approx(
            nc.filters.delay(tree, f, watch.filters, filter_delay=F, link_delay=c), abs=1e-9
        )


@given(seed=st.integers(0, 10**6), objective=st.sampled_from(["traffic", "delay"]))
def test_random_changes_leave_the_state_of_a_fresh_start(seed, objective):
    tree, _, _, size = random_problem(seed, most=30)
    rng = np.random.default_rng(seed)
    n_items, leaves = size.size, tree.leaves
    counts = np.zeros((tree.n, n_items), int)
    watch = nc.filters.TreeWatch(tree, [], [], size=size, objective=objective, filter_delay=0.5, link_delay=2.0)
    for _ in range(5):
        leaf, item = rng.choice(leaves, 20), rng.integers(0, n_items, 20)
        np.add.at(counts, (leaf, item), 1)
        present = np.repeat(np.stack(np.nonzero(counts)), counts[counts > 0], axis=1)
        gone = present[:, rng.random(present.shape[1]) < 0.4]
        np.subtract.at(counts, (gone[0], gone[1]), 1)
        watch.change((leaf, item), (gone[0], gone[1]))
        watch.put(np.flatnonzero(tree.can_filter & (rng.random(tree.n) < 0.5)))
        same_as_from_scratch(watch, counts, size, (0.5, 2.0) if objective == "delay" else (0.0, 1.0))
        watch.improve(2)
        same_as_from_scratch(watch, counts, size, (0.5, 2.0) if objective == "delay" else (0.0, 1.0))


def test_a_subscription_somebody_else_has_changes_one_vertex_only():
    tree = complete_binary(10)
    a, b = tree.leaves[:2].tolist()
    watch = nc.filters.TreeWatch(tree, [a], [0], n_items=5)
    assert watch.change(subscribe=([b], [0])) == 1  # its sibling's path has it already
    assert watch.change(subscribe=([b], [1])) == 10  # nobody has: up to the root
    assert watch.change(unsubscribe=([b], [0])) == 1
    assert watch.change(subscribe=([a], [0]), unsubscribe=([a], [0])) == 0


def test_unsubscribing_what_nobody_has_changes_nothing():
    tree = complete_binary(3)
    watch = nc.filters.TreeWatch(tree, [3, 4], [0, 1], n_items=4)
    before = watch.flow
    with pytest.raises(InputError, match="item 1 is not wanted at vertex 5"):
        watch.change(subscribe=([6], [2]), unsubscribe=([3, 5], [0, 1]))
    assert watch.flow.tolist() == before.tolist()
    assert watch.value == nc.filters.traffic(tree, before, [])


def test_unknown_items_are_refused():
    watch = nc.filters.TreeWatch(complete_binary(3), [3], [0])
    with pytest.raises(InputError, match="must be items from 0 to 0, got"):
        watch.change(subscribe=([3], [1]))


def test_the_table_grows_with_the_demand_and_forgets_what_is_gone():
    tree = recursive_tree(5_000, seed=1)
    rng = np.random.default_rng(1)
    leaf, item = rng.choice(tree.leaves, 20_000), rng.integers(0, 1000, 20_000)
    watch = nc.filters.TreeWatch(tree, leaf, item)
    assert watch.flow.tolist() == nc.filters.flow_from_demand(tree, leaf, item).tolist()
    watch.change(unsubscribe=(leaf, item))
    assert not watch.flow.any()
    assert watch.value == 0


def test_the_watch_improves_as_the_function_does():
    tree, f, wanted, size = random_problem(11, most=40)
    pairs = [(v, i) for v, items in enumerate(wanted) for i in sorted(items)]
    leaf, item = zip(*pairs, strict=True)
    start = np.flatnonzero(tree.can_filter)[:4]
    watch = nc.filters.TreeWatch(tree, leaf, item, size=size, filters=start)
    r = nc.filters.improve(tree, f, start, moves=3)
    assert watch.improve(3) == r.moves
    assert watch.filters.tolist() == r.filters.tolist()
    assert watch.value == r.after
