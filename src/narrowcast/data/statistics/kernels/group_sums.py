"""Sums of a sparse matrix's rows by group: how often profiles match the messages of a flow, or of one another.

Gustavson 1978's way to multiply sparse matrices: one group at a time, in an array as wide as the matrix,
so that an addition is one step and nothing is sorted but the columns a group has.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit

Ints = NDArray[np.int64]
Columns = NDArray[np.int32]


@jit
def grouped(keys: NDArray[np.int64] | Columns, n_groups: int) -> tuple[Ints, Ints]:
    """(where each group starts, the places of its keys in order): a counting sort."""
    start = np.zeros(n_groups + 1, np.int64)
    for key in keys:
        start[key + 1] += 1
    for g in range(n_groups):
        start[g + 1] += start[g]
    at = start[:-1].copy()
    order = np.empty(keys.size, np.int64)
    for i in range(keys.size):
        order[at[keys[i]]] = i
        at[keys[i]] += 1
    return start, order


@jit
def column_sums(offsets: Ints, cols: Columns, values: Ints, total: Ints) -> None:
    """Add the values of each row to those of its columns."""
    for r in range(offsets.size - 1):
        for k in range(offsets[r], offsets[r + 1]):
            for w in range(values.shape[1]):
                total[cols[k], w] += values[r, w]


@jit
def group_sums(
    group_start: Ints,
    order: Ints,
    row_of: Columns,
    offsets: Ints,
    cols: Columns,
    values: Ints,
    held_start: Ints,
    held_cols: Columns,
    held_values: Ints,
    n_cols: int,
) -> tuple[Ints, Columns, Ints]:
    """(where each group starts, its columns ascending, their sums), what is held already added in.

    Group g has the rows `order[group_start[g]:group_start[g + 1]]`, and each row adds its values to
    all its columns. With a `row_of`, groups have entries in place of rows: an entry adds the values of its row
    to the columns after it. Rows whose values are all 0 add nothing. A group's held columns may repeat.
    """
    width, by_entry = held_values.shape[1], row_of.size > 0
    total = np.zeros((n_cols, width), np.int64)
    seen = np.full(n_cols, -1, np.int64)
    touched = np.empty(n_cols, np.int32)
    start = np.zeros(group_start.size, np.int64)
    room = held_cols.size + order.size + 64
    out_cols, out_values = np.empty(room, np.int32), np.empty((room, width), np.int64)
    size = 0
    for g in range(group_start.size - 1):
        n = 0
        if g < held_start.size - 1:
            for k in range(held_start[g], held_start[g + 1]):
                c = held_cols[k]
                if seen[c] != g:
                    seen[c] = g
                    touched[n] = c
                    n += 1
                for w in range(width):
                    total[c, w] += held_values[k, w]
        for i in range(group_start[g], group_start[g + 1]):
            at = order[i]
            row = row_of[at] if by_entry else at
            idle = True
            for w in range(width):
                idle &= values[row, w] == 0
            if idle:
                continue
            for k in range(at + 1 if by_entry else offsets[row], offsets[row + 1]):
                c = cols[k]
                if seen[c] != g:
                    seen[c] = g
                    touched[n] = c
                    n += 1
                for w in range(width):
                    total[c, w] += values[row, w]
        if size + n > room:
            room = 2 * (size + n)
            wider, more = np.empty(room, np.int32), np.empty((room, width), np.int64)
            wider[:size], more[:size] = out_cols[:size], out_values[:size]
            out_cols, out_values = wider, more
        for c in np.sort(touched[:n]):
            out_cols[size] = c
            for w in range(width):
                out_values[size, w] = total[c, w]
                total[c, w] = 0
            size += 1
        start[g + 1] = size
    return start, out_cols[:size].copy(), out_values[:size].copy()
