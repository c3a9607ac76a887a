"""A merge plan as the tables of a plan folder, with names in place of indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.errors import InputError
from narrowcast.model.plan import Plan
from narrowcast.plans.queries.boxes import Floats, as_boxes
from narrowcast.plans.queries.merged import MergePlan


def as_plan(
    merged: MergePlan,
    attributes: Sequence[str],
    *,
    boxes: ArrayLike,
    names: Sequence[str] | None = None,
    clients: Sequence[str] | None = None,
    parameters: Mapping[str, Any] | None = None,
    inputs: Mapping[str, str] | None = None,
) -> Plan:
    """The plan in the form that is written and checked: each query's box and sets, and the boxes of each set.

    `boxes` are those that were merged. `queries` has a row per query and dimension; `channels` one per set,
    piece and dimension: a set's merged query is the union of its pieces. `names` are the queries' own, by
    default their numbers; where clients use the same names, `clients` tells their queries apart.

    >>> from narrowcast.plans.queries.plan import merge
    >>> three = [[[0, 2]], [[1, 3]], [[9, 10]]]
    >>> plan = as_plan(merge(three, km=1, kt=1, ku=0.1), ["price"], boxes=three, names=["a", "b", "c"])
    >>> plan.tables["merges"].to_pydict()
    {'query': ['a', 'b', 'c'], 'set': [0, 0, 1]}
    >>> plan.tables["channels"].to_pylist()[0]
    {'set': 0, 'piece': 0, 'dimension': 'price', 'low': 0.0, 'high': 3.0}
    """
    import pyarrow as pa

    ranges = as_boxes(boxes, finite=False)
    if len(attributes) != merged.boxes.shape[1]:
        raise InputError(
            f"attributes has {len(attributes)} names for {merged.boxes.shape[1]} dimensions", name="attributes"
        )
    pairs = sorted((query, at) for at, members in enumerate(merged.sets) for query in members)
    if {query for query, _ in pairs} != set(range(len(ranges))):
        raise InputError(f"boxes has {len(ranges)} queries and the plan is of others", name="boxes", got=len(ranges))
    whose = [query for query, _ in pairs]
    merges = pa.table({**_named(whose, names, clients), "set": pa.array([at for _, at in pairs], pa.int64())})
    each = np.repeat(np.arange(len(ranges)), len(attributes)).tolist()
    asked = pa.table({**_named(each, names, clients), **_sides(ranges, attributes)})
    constants = {name: getattr(merged.constants, name) for name in ("km", "kt", "ku", "ka", "per_query", "per_object")}
    terms = merged.terms
    return Plan(
        kind="queries",
        tables={"queries": asked, "merges": merges, "channels": _channels(merged, attributes)},
        cost={
            "total": terms.total,
            "server": terms.server,
            "channel": terms.channel,
            "transfer": terms.transfer,
            "client": terms.client,
        },
        parameters={"method": merged.method, "procedure": merged.procedure, **constants, **(parameters or {})},
        baselines={"apart": merged.baseline},
        inputs=inputs or {},
        seed=merged.seed,
    )


def _named(queries: Sequence[int], names: Sequence[str] | None, clients: Sequence[str] | None) -> dict[str, Any]:
    """The columns that say which query a row is about."""
    import pyarrow as pa

    found = {"query": pa.array([str(q) if names is None else names[q] for q in queries], pa.string())}
    return found if clients is None else found | {"client": pa.array([clients[q] for q in queries], pa.string())}


def _sides(boxes: Floats, attributes: Sequence[str]) -> dict[str, Any]:
    """The columns with a row for each box and dimension."""
    import pyarrow as pa

    return {
        "dimension": pa.array(list(attributes) * len(boxes), pa.string()),
        "low": boxes[:, :, 0].ravel(),
        "high": boxes[:, :, 1].ravel(),
    }


def _channels(merged: MergePlan, attributes: Sequence[str]) -> Any:
    import pyarrow as pa

    counts = [len(pieces) for pieces in merged.pieces]
    boxes = np.concatenate([*merged.pieces, np.zeros((0, len(attributes), 2))])
    d, total = len(attributes), sum(counts)
    sets = np.repeat(np.arange(len(counts)), counts)
    pieces = np.arange(total) - np.repeat(np.cumsum(counts, dtype=np.int64) - counts, counts)
    return pa.table(
        {
            "set": pa.array(np.repeat(sets, d), pa.int64()),
            "piece": pa.array(np.repeat(pieces, d), pa.int64()),
            **_sides(boxes, attributes),
        }
    )
