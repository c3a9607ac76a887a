"""The workers' sparse sums, merged on workers: Spark brings together what has one key and adds nothing itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from narrowcast.data.statistics.sparse_sums import SparseSums, merge_by_key

if TYPE_CHECKING:
    import pyarrow as pa


def merged(
    partials: DataFrame, key: str, width: int, rows: Callable[[pa.Array, SparseSums], pa.RecordBatch], schema: str
) -> DataFrame:
    """Rows of `schema` that `rows` makes of keys and their merged sums of `width` numbers each.

    `partials` are rows of one kind. A worker holds one key's sums and a bounded number of others.
    """
    together = partials.select(key, "others", "sums").repartition(key).sortWithinPartitions(key)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for keys, sums in merge_by_key(batches, width):
            yield rows(keys, sums)

    return together.mapInArrow(work, schema)
