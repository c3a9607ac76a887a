"""Sparse sums equal their definition, however they are cut, held, sent and merged."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive.group_sums import Found, by_group, by_pair
from narrowcast.data.statistics.sparse_sums import Matches, SparseSums, merge_by_key

Rows = list[tuple[int, list[int], list[int]]]
N_GROUPS, N_COLS = 4, 7


def some_rows(seed: int, width: int) -> Rows:
    rng = np.random.default_rng(seed)
    return [
        (
            int(rng.integers(N_GROUPS)),
            np.flatnonzero(rng.random(N_COLS) < rng.random()).tolist(),
            rng.integers(0, 2, width).tolist(),
        )
        for _ in range(rng.integers(0, 30))
    ]


def matches_of(rows: Rows) -> Matches:
    pairs = [(i, col) for i, (_, cols, _) in enumerate(rows) for col in cols]
    row, col = (np.array([pair[k] for pair in pairs], np.int64) for k in (0, 1))
    return Matches.of(row, col, len(rows))


def summed(rows: Rows, width: int, cut: int, pairs: bool) -> SparseSums:
    """The rows added in stretches of `cut`, each onto what is held."""
    sums = SparseSums.none(width)
    for at in range(0, len(rows), cut):
        part = rows[at : at + cut]
        values = np.array([v for _, _, v in part], np.int64).reshape(-1, width)
        group = np.array([g for g, _, _ in part], np.int64)
        added = matches_of(part)
        if pairs:
            sums = sums.with_pairs(added, values, N_COLS)
        else:
            sums = sums.with_groups(added, values, group, N_GROUPS, N_COLS)
    return sums


def as_found(keys: list[int], sums: SparseSums) -> Found:
    return {
        (key, int(col)): tuple(values.tolist())
        for i, key in enumerate(keys)
        for col, values in zip(
            sums.cols[sums.start[i] : sums.start[i + 1]], sums.values[sums.start[i] : sums.start[i + 1]], strict=True
        )
    }


@pytest.mark.parametrize("pairs", [False, True])
@given(seed=st.integers(0, 2**32 - 1), width=st.sampled_from([1, 3]), cut=st.sampled_from([1, 4, 100]))
def test_sums_are_those_of_the_definition(pairs: bool, seed: int, width: int, cut: int) -> None:
    rows = some_rows(seed, width)
    sums = summed(rows, width, cut, pairs)
    assert as_found(list(range(sums.start.size - 1)), sums) == (by_pair if pairs else by_group)(rows)
    for i in range(sums.start.size - 1):
        assert np.all(np.diff(sums.cols[sums.start[i] : sums.start[i + 1]]) > 0)


@given(
    seed=st.integers(0, 2**32 - 1),
    at_a_time=st.sampled_from([0, 100, 10**9]),
    batch=st.sampled_from([1, 3, 100]),
    at_once=st.sampled_from([1, 5, 10**6]),
)
def test_sums_of_several_workers_merge_into_those_of_all_rows(
    seed: int, at_a_time: int, batch: int, at_once: int
) -> None:
    workers = [some_rows(seed + k, 3) for k in range(3)]
    parts = []
    for rows in workers:
        sums = summed(rows, 3, 100, pairs=False)
        for busy, others, cells in sums.cells(at_once):
            assert len(busy) == 1 or len(b"".join(others.to_pylist())) <= 4 * at_once
            keys = pa.array([f"g{g}" for g in busy], pa.string())
            parts.append(pa.table({"key": keys, "others": others, "sums": cells}))
    if not parts:
        return
    table = pa.concat_tables(parts).sort_by("key")
    batches = iter(table.combine_chunks().to_batches(max_chunksize=batch))
    found: Found = {}
    for keys, merged in merge_by_key(batches, 3, at_a_time):
        names = [int(key[1:]) for key in keys.to_pylist()]
        part = as_found(names, merged)
        assert not part.keys() & found.keys()
        found |= part
    assert found == by_group([row for rows in workers for row in rows])
