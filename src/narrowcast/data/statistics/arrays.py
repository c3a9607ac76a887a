"""The tables of `tables`, row for row and bit for bit, from sums that are at the driver. Function name = table name.

Flows stand in the order of their names and profiles in that of their numbers throughout, so nothing is sorted twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from narrowcast.data.statistics import partials as p
from narrowcast.data.statistics.definitions import flow_columns, pair_columns, per_second
from narrowcast.data.statistics.gather import Gathered
from narrowcast.data.statistics.match import Holders
from narrowcast.data.statistics.partials import Ints, same_sets
from narrowcast.data.statistics.sparse_sums import SparseSums, merge_by_key
from narrowcast.data.statistics.tables import Totals, overlap_rows, pair_rows

if TYPE_CHECKING:
    import pyarrow as pa

# Rows of interest that are made at the driver.
MOST_ROWS = 5_000_000


@dataclass(frozen=True, eq=False)
class FlowSums:
    """Flows in order with their messages and bytes (in whole 1/1024), and those of each that a profile matches."""

    flow: pa.Array
    messages: Ints
    units: Ints
    pairs: SparseSums
    classes: pa.Table | None = None


def by_key(here: Gathered) -> FlowSums:
    """Flows that a key makes."""
    rows = here.of(p.FLOW).group_by("flow").aggregate([("messages", "sum"), ("bytes", "sum")]).sort_by("flow")
    flow = rows["flow"].combine_chunks()
    keys, sums = _merged(here.of(p.PAIR), "flow", 3)
    # Every flow is a group, also one that no profile matches.
    length = np.zeros(len(flow), np.int64)
    if len(keys):
        length[_places(keys, flow)] = np.diff(sums.start)
    start = np.append(0, np.cumsum(length))
    messages, units = (rows[f"{name}_sum"].to_numpy() for name in ("messages", "bytes"))
    return FlowSums(flow, messages, units, SparseSums(start, sums.cols, sums.values))


def by_class(here: Gathered) -> FlowSums:
    """Flows that are content classes, numbered by their profiles."""
    import pyarrow as pa

    found: dict[bytes, list[int]] = {}
    for row in here.of(p.CLASS).to_batches():
        # As bytes, the greatest first, they sort as lists of numbers do.
        members = row.column("members")
        flat = members.flatten().to_numpy(zero_copy_only=False).astype(">i4").tobytes()
        at = (np.append(0, np.cumsum(members.value_lengths().to_numpy(zero_copy_only=False))) * 4).tolist()
        sums = zip(*(row.column(name).to_pylist() for name in ("messages", "bytes")), strict=True)
        for k, (messages, units) in enumerate(sums):
            held = found.setdefault(flat[at[k] : at[k + 1]], [0, 0])
            held[0] += messages
            held[1] += units
    keys = sorted(found)
    counts = np.array([found[key] for key in keys], np.int64).reshape(-1, 2)
    cols = np.frombuffer(b"".join(keys), ">i4").astype(np.int32)
    start = np.append(0, np.cumsum([len(key) // 4 for key in keys], dtype=np.int64)).astype(np.int64)
    flow = pa.array([f"class{k + 1:07d}" for k in range(len(keys))], pa.string())
    values = np.repeat(np.column_stack([counts, counts[:, :1]]), np.diff(start), axis=0)
    lists = pa.ListArray.from_arrays(start.astype(np.int32), pa.array(cols), type=_list(pa.int32()))
    classes = pa.table({"flow": flow, "profiles": lists})
    return FlowSums(flow, counts[:, 0].copy(), counts[:, 1].copy(), SparseSums(start, cols, values), classes)


def _merged(rows: pa.Table, key: str, width: int) -> tuple[pa.Array, SparseSums]:
    """Keys in order and their merged sums, at the driver in one piece."""
    import pyarrow as pa

    if not rows.num_rows:
        return pa.array([], rows[key].type), SparseSums.none(width)
    ordered: Iterator[Any] = iter(rows.select([key, "others", "sums"]).sort_by(key).to_batches())
    [(keys, sums)] = merge_by_key(ordered, width, at_a_time=rows.nbytes * 2)
    return keys, sums


def _places(names: pa.Array, known: pa.Array) -> Ints:
    import pyarrow.compute as pc

    result: Ints = pc.index_in(names, value_set=known).to_numpy(zero_copy_only=False).astype(np.int64)
    return result


def overlap(here: Gathered, over: Totals) -> pa.Table:
    import pyarrow as pa

    keys, sums = _merged(here.of(p.OVERLAP), "a", 1)
    return pa.Table.from_batches([overlap_rows(keys, sums, over.by_profile[:, 2])])


def flows(sums: FlowSums, over: Totals) -> pa.Table:
    import pyarrow as pa

    return pa.table({"flow": sums.flow, **flow_columns(sums.messages, sums.units, over.seconds)})


def flow_profile(sums: FlowSums) -> pa.Table:
    import pyarrow as pa

    rows = pa.Table.from_batches([pair_rows(sums.flow, sums.pairs)])
    return pa.table(
        {
            **{name: rows[name] for name in ("flow", "profile")},
            **pair_columns(rows["messages"].to_numpy(), rows["bytes"].to_numpy()),
        }
    )


@dataclass(frozen=True, eq=False)
class HolderNames:
    """Who has which profile: `names` in order, `holders` by their numbers."""

    names: pa.Array
    holders: Holders

    @classmethod
    def of(cls, holders: pa.Table, n_profiles: int) -> HolderNames:
        names = holders["subscriber"].combine_chunks().unique().sort()
        codes = _places(holders["subscriber"].combine_chunks(), names)
        profile = holders["profile"].to_numpy()
        return cls(names, Holders.from_pairs(profile, codes, n_profiles, max(1, len(names))))

    def most(self, pairs: SparseSums) -> int:
        """How many rows interest has at most: one for each flow, profile and subscriber of it."""
        return int(np.diff(self.holders.offsets)[pairs.cols].sum())


@dataclass(frozen=True, eq=False)
class WantedPairs:
    """Each flow and subscriber that wants it once, in order, as numbers."""

    flow: Ints
    subscriber: Ints

    @classmethod
    def of(cls, sums: FlowSums, who: HolderNames) -> WantedPairs:
        flow = np.repeat(np.arange(len(sums.flow)), np.diff(sums.pairs.start))
        return cls(*who.holders.of(flow, sums.pairs.cols.astype(np.int64)))


def interest(wanted: WantedPairs, sums: FlowSums, who: HolderNames) -> pa.Table:
    import pyarrow as pa

    return pa.table(
        {"flow": sums.flow.take(pa.array(wanted.flow)), "subscriber": who.names.take(pa.array(wanted.subscriber))}
    )


def audiences(wanted: WantedPairs, sums: FlowSums, who: HolderNames, over: Totals) -> dict[str, pa.Table]:
    """Tables flow_audience and audiences."""
    import pyarrow as pa

    starts = np.flatnonzero(np.diff(wanted.flow, prepend=-1))
    ends = np.append(starts[1:], wanted.flow.size)[: starts.size]
    busy = wanted.flow[starts]
    leader = same_sets(wanted.subscriber, starts, ends) if starts.size else starts
    first, group, n_flows = np.unique(leader, return_inverse=True, return_counts=True)
    messages = np.zeros(first.size, np.int64)
    np.add.at(messages, group, sums.messages[busy])
    lengths = ends[first] - starts[first]
    at = np.append(0, np.cumsum(lengths))
    place = np.arange(at[-1]) - np.repeat(at[:-1], lengths) + np.repeat(starts[first], lengths)
    members = who.names.take(pa.array(wanted.subscriber[place]))
    return {
        "flow_audience": pa.table(
            {"flow": sums.flow.take(pa.array(busy)), "audience": sums.flow.take(pa.array(busy[leader]))}
        ),
        "audiences": pa.table(
            [
                sums.flow.take(pa.array(busy[first])),
                n_flows.astype(np.int64),
                lengths.astype(np.int32),
                per_second(messages, over.seconds),
                pa.ListArray.from_arrays(at.astype(np.int32), members, type=_list(pa.string(), nullable=False)),
            ],
            schema=_audience_schema(),
        ),
    }


def _list(kind: pa.DataType, *, nullable: bool = True) -> pa.DataType:
    """A list as Spark has it."""
    import pyarrow as pa

    return pa.list_(pa.field("element", kind, nullable=nullable))


def _audience_schema() -> pa.Schema:
    import pyarrow as pa

    return pa.schema(
        [
            ("audience", pa.string()),
            pa.field("n_flows", pa.int64(), nullable=False),
            ("n_subscribers", pa.int32()),
            ("rate", pa.float64()),
            ("subscribers", _list(pa.string(), nullable=False)),
        ]
    )
