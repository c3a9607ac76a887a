"""How much of the source's items passes each vertex of a tree: the size of the union of what is wanted below.

For one item, take the leaves that want it in the order of a walk through the tree. A vertex passes the
item once, however many of them are below it. So put +1 at each leaf and −1 where the paths of neighbours
in that order meet (their lowest common ancestor): summed over everything below a vertex this is 1 if any
of the leaves is there and 0 if none is. That needs one pass over the demand, not one per level.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from narrowcast.data.ingest.read import FILE, ROW
from narrowcast.data.spark.home import share
from narrowcast.model import Tree

if TYPE_CHECKING:
    import pyarrow as pa

Ints = NDArray[np.int64]
SIZE = 1 << 20


@dataclass(frozen=True, eq=False)
class TreeWalk:
    """A tree in the order of a walk, ready for lowest common ancestors.

    `place[v]` is v's number in the walk; `jumps[k]` the range minimum table over the walk's depths.
    """

    place: Ints
    vertex: Ints
    parent_place: Ints
    jumps: tuple[Ints, ...]

    @classmethod
    def of(cls, tree: Tree) -> TreeWalk:
        size = np.ones(tree.n, np.int64)
        for v in tree.order[::-1].tolist():
            if tree.parents[v] >= 0:
                size[tree.parents[v]] += size[v]
        place = np.zeros(tree.n, np.int64)
        free = np.zeros(tree.n, np.int64)
        for v in tree.order.tolist():
            parent = tree.parents[v]
            if parent >= 0:
                place[v] = free[parent]
                free[parent] += size[v]
            free[v] = place[v] + 1
        vertex = np.argsort(place)
        parent_place = np.where(tree.parents[vertex] >= 0, place[tree.parents[vertex]], 0)
        jumps = [parent_place]
        while 2 ** len(jumps) <= tree.n:
            last, step = jumps[-1], 2 ** (len(jumps) - 1)
            jumps.append(np.minimum(last[:-step], last[step:]))
        return cls(place, vertex, parent_place, tuple(jumps))

    def meet(self, a: Ints, b: Ints) -> Ints:
        """The lowest common ancestor of places a < b, as places.

        It is the least parent among the places after a up to b: below the meeting point every vertex
        of that stretch has a parent in the stretch or at the point itself. O(1) each.
        """
        length = b - a
        level = np.frompyfunc(lambda n: int(n).bit_length() - 1, 1, 1)(length).astype(np.int64)
        result = np.zeros(a.size, np.int64)
        for k in np.unique(level).tolist():
            at = level == k
            table = self.jumps[k]
            result[at] = np.minimum(table[a[at] + 1], table[b[at] + 1 - 2**k])
        return result


EXTRA = ("link_cost", "can_filter", "users")


def wanted_classes(classes: DataFrame, subscriptions: DataFrame, numbered: DataFrame) -> DataFrame:
    """What is wanted where, as messages show it: node, item (a content class), size (its messages).

    `classes` are flow, profiles and messages, `subscriptions` profile (its text) and node, `numbered` profile and
    text. Messages of a class are wanted by the same profiles, so unions of classes are unions of messages.
    """
    held = subscriptions.select("node", F.col("profile").alias("text")).where("node IS NOT NULL")
    at = held.join(F.broadcast(numbered), "text").select("node", "profile").distinct()
    pairs = classes.select(F.col("flow").alias("item"), F.explode("profiles").alias("profile"), "messages")
    found = pairs.join(F.broadcast(at), "profile").select("node", "item", F.col("messages").alias("size"))
    return found.distinct()


def tree_demand(demand: DataFrame, tree: DataFrame, seconds: float | None = None) -> pa.Table:
    """Table `tree_demand`: the tree, and items and size of all that is wanted at or below each node, exactly.

    An item's size is the largest given for it, 1 if none is; with `seconds` sizes become rates. The columns of
    the tree stay beside it, so that a plan needs no other table. O(pairs log pairs) once, in Spark; the tree
    itself is held by the driver.
    """
    told = ["node", "parent", *(name for name in EXTRA if name in tree.columns)]
    rows = tree.orderBy(FILE, ROW).select(*told).toArrow()
    names = {node: v for v, node in enumerate(rows["node"].to_pylist())}
    parents = [names[above] if above and above.strip() else -1 for above in rows["parent"].to_pylist()]
    below = {node: found for node, *found in _wanted_below(demand, Tree(parents), names)}
    size = [below[node][1] / (seconds or 1.0) for node in names]
    columns = {"items": [below[node][0] for node in names], "size": size}
    return _with(rows, columns)


def _with(rows: pa.Table, columns: Mapping[str, list[Any]]) -> pa.Table:
    import pyarrow as pa

    types = {"items": pa.int64(), "size": pa.float64()}
    for name, values in columns.items():
        rows = rows.append_column(name, pa.array(values, types[name]))
    return rows


def _wanted_below(demand: DataFrame, tree: Tree, names: Mapping[str, int]) -> list[tuple[str, int, float]]:
    """For each node: how many items are wanted at or below it, and their size."""
    spark = demand.sparkSession
    walk = TreeWalk.of(tree)
    shared = share(spark, walk)
    size = F.coalesce(F.col("size"), F.lit(1.0)) if "size" in demand.columns else F.lit(1.0)
    index = spark.createDataFrame(
        [(name, int(walk.place[v])) for name, v in names.items()], "node string, place bigint"
    )
    wanted = demand.select("node", "item", size.alias("size")).join(F.broadcast(index), "node")
    largest = wanted.groupBy("item", "place").agg(F.max("size").alias("size"))
    spread = largest.repartition("item").sortWithinPartitions("item", "place")

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        everything = pa.Table.from_batches(batches) if (batches := list(batches)) else None  # type: ignore[assignment]
        if everything is None or everything.num_rows == 0:
            return
        items, sizes = marks(everything, shared.value)
        busy = np.flatnonzero(items | sizes)
        yield pa.RecordBatch.from_pydict({"place": busy, "items": items[busy], "size": sizes[busy]})

    found = spread.mapInArrow(work, "place bigint, items bigint, size bigint")
    sums = found.groupBy("place").agg(F.sum("items").alias("items"), F.sum("size").alias("size")).collect()
    return _below(sums, walk, names)


def marks(demand: pa.Table, walk: TreeWalk) -> tuple[Ints, Ints]:
    """+1 at each leaf and −1 at each meeting point, counted and by size, for whole items in order."""
    item = demand.column("item").combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    place = demand.column("place").to_numpy()
    first = np.flatnonzero(np.diff(item, prepend=-1))
    size = np.maximum.reduceat(np.rint(demand.column("size").to_numpy() * SIZE).astype(np.int64), first)
    size = np.repeat(size, np.diff(np.append(first, item.size)))
    items, sizes = np.zeros(walk.place.size, np.int64), np.zeros(walk.place.size, np.int64)
    np.add.at(items, place, 1)
    np.add.at(sizes, place, size)
    next_same = np.flatnonzero(item[1:] == item[:-1])
    meets = walk.meet(place[next_same], place[next_same + 1])
    np.subtract.at(items, meets, 1)
    np.subtract.at(sizes, meets, size[next_same])
    return items, sizes


def _below(sums: list[Any], walk: TreeWalk, names: Mapping[str, int]) -> list[tuple[str, int, float]]:
    """Sums over everything below each vertex, from the leaves up: the walk backwards."""
    totals = np.zeros((walk.place.size, 2), np.int64)
    for row in sums:
        totals[row["place"]] = row["items"], row["size"]
    for at in range(len(totals) - 1, 0, -1):
        totals[walk.parent_place[at]] += totals[at]
    return [
        (name, int(totals[walk.place[v], 0]), float(totals[walk.place[v], 1] / SIZE))
        for name, v in sorted(names.items())
    ]
