"""The workers' sums: exact, whatever the batches, the order and the hash."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from narrowcast.data.statistics.match import Holders
from narrowcast.data.statistics.partials import Partials, same_sets
from narrowcast.data.statistics.tree_demand import TreeWalk, marks
from narrowcast.data.statistics.unpack import unpacked
from narrowcast.model import Tree


@given(st.integers(0, 2**32 - 1), st.sampled_from([64, 3, 1]))
def test_equal_sets_are_found_whatever_the_hash(seed: int, bits: int) -> None:
    rng = np.random.default_rng(seed)
    rows, cols = np.nonzero(rng.random((60, 5)) < rng.random())
    if not rows.size:
        return
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    ends = np.append(starts[1:], cols.size)
    seen: dict[tuple[int, ...], int] = {}
    want = [seen.setdefault(tuple(cols[a:b]), i) for i, (a, b) in enumerate(zip(starts, ends, strict=True))]
    assert same_sets(cols, starts, ends, bits).tolist() == want


@pytest.mark.parametrize(("batch", "most"), [(400, 10**6), (37, 10**6), (37, 40)])
def test_sums_are_those_of_the_definition_however_the_rows_are_cut(batch: int, most: int) -> None:
    rng = np.random.default_rng(1)
    n, n_profiles = 400, 6
    match = rng.random((n, n_profiles)) < 0.3
    values = rng.integers(0, 1000, (n, 3))
    flow = rng.choice(list("abc"), n)
    sums = Partials(n_profiles, classes=True, most=most)
    out = []
    for at in range(0, n, batch):
        rows, cols = np.nonzero(match[at : at + batch])
        sums.add(rows, cols, values[at : at + batch], pa.array(flow[at : at + batch]))
        if sums.is_full():
            out += list(sums.take())
    out += list(sums.take())
    table = unpacked(pa.Table.from_batches(out)).to_pandas()
    added = table.assign(members=table.members.map(lambda m: None if m is None else tuple(m)))
    got = {
        kind: rows.groupby(["a", "flow", "members"], dropna=False)[["messages", "bytes", "weight"]].sum()
        for kind, rows in added.groupby("kind")
    }
    assert got["total"].to_numpy().tolist() == [values.sum(0).tolist()]
    for (profile, *_), row in got["profile"].iterrows():
        assert row.tolist() == values[match[:, int(profile)]].sum(0).tolist()
    for (profile, name, _), row in got["pair"].iterrows():
        assert row.tolist() == values[match[:, int(profile)] & (flow == name)].sum(0).tolist()
    for (*_, members), row in got["class"].iterrows():
        mine = (match == np.isin(np.arange(n_profiles), members)).all(axis=1)
        assert row.tolist() == values[mine].sum(0).tolist()
    assert len(got["class"]) == len({tuple(row) for row in match} - {(False,) * n_profiles})
    together = (match * values[:, 2:]).T @ match
    pairs: Counter[tuple[int, int]] = Counter()
    for row in table[table.kind == "overlap"].itertuples():
        for other, weight in zip(row.members, row.weights, strict=True):
            pairs[int(row.a), int(other)] += int(weight)
    assert pairs == {(i, j): together[i, j] for i in range(n_profiles) for j in range(i + 1, n_profiles)}


def test_sums_of_nothing_are_no_rows_but_the_total() -> None:
    found = unpacked(pa.Table.from_batches(list(Partials(3).take())))
    assert found.to_pylist() == [
        {"kind": "total", "messages": 0, "bytes": 0, "weight": 0} | dict.fromkeys(("a", "flow", "members", "weights"))
    ]


def test_a_message_that_two_profiles_of_one_subscriber_match_counts_once() -> None:
    holders = Holders.from_pairs(np.array([0, 1, 1, 2]), np.array([0, 0, 1, 2]), 3, 3)
    rows, people = holders.of(np.array([0, 0, 1, 3]), np.array([0, 1, 2, 1]))
    assert list(zip(rows.tolist(), people.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 2), (3, 0), (3, 1)]


@given(st.integers(0, 2**32 - 1))
def test_a_walk_finds_where_paths_meet_and_counts_unions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    tree = Tree([-1, *(int(rng.integers(0, v)) for v in range(1, n))])

    def above(v: int) -> list[int]:
        return [v, *above(int(tree.parents[v]))] if v >= 0 else []

    walk = TreeWalk.of(tree)
    pairs = [(u, v) for u in range(n) for v in range(n) if walk.place[u] < walk.place[v]]
    a, b = walk.place[[u for u, _ in pairs]], walk.place[[v for _, v in pairs]]
    meets = [next(w for w in above(u) if w in above(v)) for u, v in pairs]
    assert walk.vertex[walk.meet(a, b)].tolist() == meets
    wanted = sorted({(int(rng.integers(5)), int(walk.place[v])) for v in rng.choice(tree.leaves, 12)})
    table = pa.table(
        {
            "item": [f"i{i}" for i, _ in wanted],
            "place": [p for _, p in wanted],
            "size": [float(1 + i) for i, _ in wanted],
        }
    )
    items, _ = marks(table, walk)
    below = {v: {i for i, p in wanted if v in above(int(walk.vertex[p]))} for v in range(n)}
    totals = [sum(int(items[walk.place[u]]) for u in range(n) if v in above(u)) for v in range(n)]
    assert totals == [len(below[v]) for v in range(n)]
