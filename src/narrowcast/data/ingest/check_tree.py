"""Rows of a tree table that are not in the tree."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from narrowcast.data.ingest.read import FILE, ROW
from narrowcast.data.ingest.verdicts import KIND, judged
from narrowcast.errors import InputError


def tree_checked(frame: DataFrame) -> DataFrame:
    """The first row without a parent is the root; every other must lead to it."""
    good = frame.where(F.col(KIND).isNull()).orderBy(FILE, ROW).select("node", "parent", FILE, ROW).collect()
    parent_of: dict[str, str | None] = {}
    faults: list[tuple[str, int, str, str]] = []
    root: str | None = None
    for node, parent, file, row in good:
        if node in parent_of:
            continue
        if parent is None or not parent.strip():
            if root is not None:
                faults.append((file, row, "second root", f"node is {node}: the root is {root} already"))
                continue
            root, parent = node, None
        parent_of[node] = parent
    reached = _reach(parent_of, root)
    faults += [
        (file, row, "not in the tree", f"node is {node}: it never reaches the root")
        for node, parent, file, row in good
        if node in parent_of and node not in reached
    ]
    if root is None:
        raise InputError("the tree table has no root: one row must have an empty parent", name="tree")
    if not faults:
        return frame
    table = frame.sparkSession.createDataFrame(faults, f"{FILE} string, {ROW} long, _k string, _r string")
    joined = frame.join(F.broadcast(table), [FILE, ROW], "left")
    bad = F.when(F.col("_k").isNotNull(), F.struct(F.col("_k").alias("kind"), F.col("_r").alias("reason")))
    return judged(joined, bad).drop("_k", "_r")


def _reach(parent_of: Mapping[str, str | None], root: str | None) -> set[str]:
    children: dict[str, list[str]] = {}
    for node, parent in parent_of.items():
        if parent is not None:
            children.setdefault(parent, []).append(node)
    reached, open_nodes = set(), [root] if root is not None else []
    while open_nodes:
        node = open_nodes.pop()
        reached.add(node)
        open_nodes += children.get(node, [])
    return reached
