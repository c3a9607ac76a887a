"""Sparse sums: groups of columns, each with a few whole numbers, held compactly and merged exactly.

They travel through Spark as two cells of bytes per group, columns and values, which the JVM copies as
they are: it never sees the pairs, of which there are millions where groups and columns are thousands.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from narrowcast.data.statistics.kernels.group_sums import Columns, group_sums, grouped

if TYPE_CHECKING:
    import pyarrow as pa

Ints = NDArray[np.int64]

# Bytes of columns and values that are merged at a time.
AT_A_TIME = 16 << 20
# Of a column's number in a cell.
COLUMN_BYTES = 4
_NO_ROWS: Columns = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True, eq=False)
class Matches:
    """Messages that were matched: the columns of row i are `cols[offsets[i]:offsets[i + 1]]`, ascending."""

    offsets: Ints
    cols: Columns

    @property
    def row_of(self) -> Columns:
        return np.repeat(np.arange(self.offsets.size - 1, dtype=np.int32), np.diff(self.offsets))

    @classmethod
    def of(cls, rows: Ints, cols: Ints, n_rows: int) -> Matches:
        """From pairs sorted by row and column."""
        offsets = np.zeros(n_rows + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=n_rows), out=offsets[1:])
        return cls(offsets, cols.astype(np.int32))

    @classmethod
    def joined(cls, parts: list[Matches]) -> Matches:
        shifts = np.cumsum([0, *(part.cols.size for part in parts)])
        offsets = [part.offsets[1:] + shift for part, shift in zip(parts, shifts, strict=False)]
        return cls(np.concatenate([[0], *offsets]), np.concatenate([part.cols for part in parts]))


@dataclass(frozen=True, slots=True, eq=False)
class SparseSums:
    """The columns of group g are `cols[start[g]:start[g + 1]]`, ascending, each with a row of `values`."""

    start: Ints
    cols: Columns
    values: Ints

    @classmethod
    def none(cls, width: int) -> SparseSums:
        return cls(np.zeros(1, np.int64), _NO_ROWS, np.zeros((0, width), np.int64))

    @property
    def size(self) -> int:
        return int(self.cols.size)

    def with_groups(self, matches: Matches, values: Ints, group: Ints, n_groups: int, n_cols: int) -> SparseSums:
        """And the values of each row under its group, for every column of the row."""
        start, order = grouped(group, n_groups)
        return self._added(start, order, _NO_ROWS, matches, values, n_cols)

    def with_pairs(self, matches: Matches, values: Ints, n_cols: int) -> SparseSums:
        """And the values of each row for every two of its columns, the lesser being the group."""
        start, order = grouped(matches.cols, n_cols)
        return self._added(start, order, matches.row_of, matches, values, n_cols)

    def _added(
        self, start: Ints, order: Ints, row_of: Columns, matches: Matches, values: Ints, n_cols: int
    ) -> SparseSums:
        held = self.start, self.cols, self.values
        return SparseSums(*group_sums(start, order, row_of, matches.offsets, matches.cols, values, *held, n_cols))

    def merged(self) -> SparseSums:
        """Equal columns of a group, which may repeat here and stand in any order, as one."""
        groups = np.zeros(self.start.size, np.int64)
        n_cols = int(self.cols.max()) + 1 if self.cols.size else 0
        nothing = Matches(np.zeros(1, np.int64), _NO_ROWS)
        return self._added(groups, groups[:0], _NO_ROWS, nothing, self.values, n_cols)

    @property
    def busy(self) -> Ints:
        """The groups that have a column."""
        return np.flatnonzero(np.diff(self.start))

    def cells(self, most: int) -> Iterator[tuple[Ints, pa.Array, pa.Array]]:
        """Busy groups with their columns and values as bytes: at most so many columns at a time, or one group."""
        busy, width = self.busy, self.values.shape[1]
        ends = self.start[busy + 1]
        first = 0
        while first < busy.size:
            begin = self.start[busy[first]]
            end = max(first + 1, int(np.searchsorted(ends, begin + most, "right")))
            at = np.append(begin, ends[first:end])
            cols, values = self.cols[begin : at[-1]], self.values[begin : at[-1]]
            yield busy[first:end], _binary(cols, at - begin), _binary(values, (at - begin) * width)
            first = end

    @classmethod
    def from_cells(cls, columns: pa.Array, values: pa.Array, first: Ints, width: int) -> SparseSums:
        """Groups from cells in their order, a group beginning at each row that `first` names."""
        cols, ends = _numbers(columns, np.int32)
        flat, _ = _numbers(values, np.int64)
        return cls(np.append(ends[first], ends[-1]), cols, flat.reshape(-1, width))


def _binary(numbers: NDArray[Any], ends: Ints) -> pa.Array:
    import pyarrow as pa

    offsets = pa.py_buffer((ends * numbers.itemsize).astype(np.int32))
    data = pa.py_buffer(np.ascontiguousarray(numbers))
    return pa.Array.from_buffers(pa.binary(), ends.size - 1, [None, offsets, data])


def _numbers(cells: pa.Array, kind: Any) -> tuple[NDArray[Any], Ints]:
    """The numbers of all cells in one array, and where each cell's begin."""
    if not len(cells):
        return np.zeros(0, kind), np.zeros(1, np.int64)
    _, offsets, data = cells.buffers()
    at = np.frombuffer(offsets, np.int32)[cells.offset : cells.offset + len(cells) + 1].astype(np.int64)
    size = np.dtype(kind).itemsize
    if data is None:
        return np.zeros(0, kind), at
    # A copy, as kernels are compiled once more for arrays that cannot be written to.
    return np.frombuffer(data, kind, (at[-1] - at[0]) // size, at[0]).copy(), (at - at[0]) // size


def merge_by_key(
    batches: Iterator[pa.RecordBatch], width: int, at_a_time: int = AT_A_TIME
) -> Iterator[tuple[pa.Array, SparseSums]]:
    """Keys and their merged sums, from rows (key, others, sums) in the order of their keys.

    No more is held at once than `at_a_time` bytes and the rows of one key.
    """
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(part.nbytes for part in held) > at_a_time:
            rows = pa.Table.from_batches(held).combine_chunks()
            last = int(_first_of_key(rows.column(0))[-1])
            held = rows.slice(last).to_batches()
            if last:
                yield _merged(rows.slice(0, last), width)
    if held and (rows := pa.Table.from_batches(held)).num_rows:
        yield _merged(rows, width)


def _first_of_key(keys: pa.ChunkedArray) -> Ints:
    codes = keys.combine_chunks().dictionary_encode().indices
    result: Ints = np.flatnonzero(np.diff(codes.to_numpy(zero_copy_only=False), prepend=-1))
    return result


def _merged(rows: pa.Table, width: int) -> tuple[pa.Array, SparseSums]:
    import pyarrow as pa

    first = _first_of_key(rows.column(0))
    whole = rows.combine_chunks().to_batches()[0]
    sums = SparseSums.from_cells(whole.column(1), whole.column(2), first, width)
    keys = whole.column(0).take(pa.array(first))
    # A key of one row is merged already.
    return keys, sums if first.size == rows.num_rows else sums.merged()
