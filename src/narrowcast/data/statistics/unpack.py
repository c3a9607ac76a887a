"""The workers' sums without packed cells, for whoever keeps them at the driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from narrowcast.data.statistics.partials import OVERLAP, PAIR
from narrowcast.data.statistics.sparse_sums import SparseSums

if TYPE_CHECKING:
    import pyarrow as pa


def unpacked(partials: pa.Table) -> pa.Table:
    """Rows of `partials.SCHEMA` as kind, a, flow, members, weights, messages, bytes, weight.

    A row for every flow and profile of kind PAIR. One for every profile of kind OVERLAP, with the
    profiles it overlaps with in `members` and their `weights`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    kinds = partials["kind"]
    packed = pc.is_in(kinds, value_set=pa.array([PAIR, OVERLAP]))
    rest = partials.filter(pc.invert(packed)).drop_columns(["others", "sums"])
    rest = rest.add_column(4, "weights", pa.nulls(rest.num_rows, pa.list_(pa.int64())))
    parts = [_pairs(partials.filter(pc.equal(kinds, PAIR))), _overlaps(partials.filter(pc.equal(kinds, OVERLAP)))]
    return pa.concat_tables([rest.replace_schema_metadata(None), *(part.select(rest.column_names) for part in parts)])


def _sums(rows: pa.Table, width: int) -> SparseSums:
    cells = [rows[name].combine_chunks() for name in ("others", "sums")]
    return SparseSums.from_cells(cells[0], cells[1], np.arange(rows.num_rows), width)


def _pairs(rows: pa.Table) -> pa.Table:
    import pyarrow as pa

    found = _sums(rows, 3)
    at = pa.array(np.repeat(np.arange(rows.num_rows), np.diff(found.start)))
    no_list = {name: pa.nulls(found.size, pa.list_(kind)) for name, kind in _list_types().items()}
    sums = {name: found.values[:, k].copy() for k, name in enumerate(("messages", "bytes", "weight"))}
    named = {"kind": rows["kind"].take(at), "flow": rows["flow"].take(at), "a": found.cols.astype(np.int64)}
    return pa.table({**named, **no_list, **sums})


def _overlaps(rows: pa.Table) -> pa.Table:
    import pyarrow as pa

    found = _sums(rows, 1)
    starts = pa.array(found.start.astype(np.int32))
    values = {"members": found.cols, "weights": found.values[:, 0].copy()}
    lists = {
        name: pa.ListArray.from_arrays(starts, pa.array(values[name], kind)) for name, kind in _list_types().items()
    }
    return (
        rows.drop_columns(["others", "sums", "members"])
        .append_column("members", lists["members"])
        .append_column("weights", lists["weights"])
    )


def _list_types() -> dict[str, pa.DataType]:
    import pyarrow as pa

    return {"members": pa.int32(), "weights": pa.int64()}
