"""Flows with the same audience as one point each, numbered, and dealt to shards: the input of clustering on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark import RDD, StorageLevel
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from narrowcast.data.planning.clusters import Counts, SessionClusters
from narrowcast.data.planning.minibatch import Table
from narrowcast.data.planning.shards import Moves, Pass, Shard, interleaved
from narrowcast.data.spark.home import keep
from narrowcast.data.statistics.tables import audience_of_flow
from narrowcast.model.arrays import Ints
from narrowcast.plans.channels.kernels.two_level import Prices
from narrowcast.plans.channels.points import Points

if TYPE_CHECKING:
    import pyarrow as pa

SHARD_PAIRS = 1_000_000
FEWEST_SHARDS = 4
SHARDS = "shard int, offsets binary, users binary, rates binary"
Packed = tuple[int, bytes, bytes, bytes]


@dataclass(frozen=True)
class FlowClasses:
    """Audience classes on Spark: `of_flow` (flow, number), the table of rates and sizes, and the users' names.

    Users and classes are numbered in the order of their names; a class has the name of its first flow.
    """

    of_flow: DataFrame
    points: DataFrame
    table: Table
    users: tuple[str, ...]

    @classmethod
    def of(cls, flows: DataFrame, interest: DataFrame) -> FlowClasses:
        """From rows (flow, rate) and (flow, subscriber). The pairs stay on Spark's disks."""
        import pyarrow as pa

        spark = interest.sparkSession
        names = interest.select("subscriber").distinct().orderBy("subscriber").toArrow().column(0).to_pylist()
        index = pa.table({"subscriber": pa.array(names, pa.string()), "user": pa.array(range(len(names)), pa.int32())})
        users = F.broadcast(spark.createDataFrame(index))
        numbered = interest.join(users, "subscriber").select("flow", F.col("user").alias("subscriber"))
        audiences = keep(audience_of_flow(numbered))
        # In ascending order, so that the sum does not depend on who comes first.
        added = F.aggregate(F.array_sort(F.collect_list("rate")), F.lit(0.0), lambda total, rate: total + rate)
        classes = (
            audiences.join(flows.select("flow", "rate"), "flow")
            .groupBy("audience")
            .agg(added.alias("rate"), F.first("members").alias("members"))
        )
        number = (F.row_number().over(Window.orderBy("audience")) - 1).cast("long").alias("number")
        numbers = classes.select("audience", number)
        points = keep(classes.join(numbers, "audience"))
        known = points.select("number", "rate", F.size("members").cast("long").alias("size")).orderBy("number")
        found = known.toArrow()
        table = Table(found["rate"].to_numpy(), found["size"].to_numpy(), len(names))
        of_flow = audiences.select("flow", "audience").join(points.select("audience", "number"), "audience")
        return cls(of_flow.select("flow", "number"), points, table, tuple(names))

    def shards(self, n_shards: int | None = None) -> SparkShards:
        """The classes packed for passes; the number of shards depends on the pairs alone."""
        n = n_shards or max(FEWEST_SHARDS, -(-int(self.table.sizes.sum()) // SHARD_PAIRS))
        parts = min(n, 2 * self.points.sparkSession.sparkContext.defaultParallelism)
        rows = self.points.select((F.col("number") % n).cast("int").alias("shard"), "number", "rate", "members")
        ordered = rows.repartition(parts, F.col("shard") % parts).sortWithinPartitions("shard", "number")
        n_users = self.table.n_users
        packed = ordered.mapInArrow(lambda batches: _packed(batches, n, n_users), SHARDS)
        # Bytes as they are: Spark hands cells of bytes over as bytearrays.
        plain = packed.rdd.map(lambda row: (int(row[0]), bytes(row[1]), bytes(row[2]), bytes(row[3])))
        return SparkShards(plain.persist(StorageLevel.DISK_ONLY), n, n_users)


def _packed(batches: Iterator[pa.RecordBatch], n_shards: int, n_users: int) -> Iterator[pa.RecordBatch]:
    """Rows in the order of their shards as one row per shard."""
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    for batch in batches:
        shards = batch.column("shard").to_numpy()
        cuts = [0, *(np.flatnonzero(np.diff(shards)) + 1).tolist(), len(shards)]
        for start, end in pairwise(cuts):
            if held and start < end and held[0].column("shard")[0].as_py() != shards[start]:
                yield _pack(pa.Table.from_batches(held), n_shards, n_users)
                held = []
            if start < end:
                held.append(batch.slice(start, end - start))
    if held:
        yield _pack(pa.Table.from_batches(held), n_shards, n_users)


def _pack(rows: pa.Table, n_shards: int, n_users: int) -> pa.RecordBatch:
    members = rows["members"].combine_chunks()
    offsets = np.zeros(rows.num_rows + 1, np.int64)
    np.cumsum(members.value_lengths().to_numpy(), out=offsets[1:])
    users = members.flatten().to_numpy().astype(np.int64)
    index = rows["shard"][0].as_py()
    shard = Shard(index, n_shards, Points(offsets, users, rows["rate"].to_numpy(), n_users))
    return _row({"shard": index, **shard.to_bytes()})


def _row(cells: dict[str, Any]) -> pa.RecordBatch:
    import pyarrow as pa

    types = {"shard": pa.int32()}
    return pa.RecordBatch.from_pydict({k: pa.array([v], types.get(k, pa.binary())) for k, v in cells.items()})


class SparkShards:
    """`minibatch.Shards` on Spark's workers.

    An RDD of packed shards: a plan takes hundreds of passes, and over a DataFrame each would be planned anew.
    """

    def __init__(self, packed: RDD[Packed], n_shards: int, n_users: int) -> None:
        self.packed, self.n_shards, self.n_users = packed, n_shards, n_users

    def sweep(self, clusters: SessionClusters, session_of: Counts, prices: Prices, task: Pass) -> Iterator[Moves]:
        """One pass: the clusters are broadcast, the changes collected."""
        yield from self._each(lambda shard, shared: shard.sweep(*shared), (clusters, session_of, prices, task))

    def gather(self, chosen: Ints) -> Points:
        """These points at the driver."""
        parts = self._each(lambda shard, wanted: shard.pick(wanted), chosen)
        return interleaved(parts, self.n_users)

    def _each(self, work: Callable[[Shard, Any], Any], given: Any) -> list[Any]:
        """What `work` makes of every shard and something that all of them are told."""
        shared = self.packed.context.broadcast(given)
        n_shards, n_users = self.n_shards, self.n_users

        def done(packed: Packed) -> Any:
            return work(Shard.from_bytes(packed[0], n_shards, n_users, *packed[1:]), shared.value)

        try:
            return self.packed.map(done).collect()
        finally:
            shared.destroy()
