"""What one worker keeps of the messages it matched: sums, never the pairs themselves.

A message is matched, added to a few sums and forgotten, so that ten million messages send thousands
of rows through the shuffle, not billions. All sums are of whole numbers: sizes in 1/1024 of a byte and
decay weights in 2⁻³⁰, so they do not depend on the order of adding, and any number of partitions gives
the same result to the last bit (docs/decisions/0062).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from narrowcast.data.statistics.kernels.group_sums import column_sums
from narrowcast.data.statistics.sparse_sums import Matches, SparseSums

if TYPE_CHECKING:
    import pyarrow as pa

Ints = NDArray[np.int64]

BYTE = 1024
WEIGHT = 1 << 30
TOTAL, PROFILE, FLOW, PAIR, CLASS, OVERLAP = "total", "profile", "flow", "pair", "class", "overlap"
# The profiles that match messages of a flow travel as one row, and so do those that overlap with profile `a`:
# `others` has the profiles and `sums` what is added up for each, as bytes of `sparse_sums`.
SCHEMA = (
    "kind string, a bigint, flow string, members array<int>, others binary, sums binary, "
    "messages bigint, bytes bigint, weight bigint"
)
# Matches that wait to be added to the sparse sums; sums that are held before they are handed over, at 12 bytes or
# more; sums that are handed over in one batch, which Spark holds whole.
FOLD, MOST, AT_ONCE = 2_000_000, 12_000_000, 500_000


def weights(age_us: NDArray[np.float64], half_life_s: float | None, window_s: float | None) -> Ints:
    """The weight of each message by its age: a half after each half-life, none past the window.

    A message without a time (NaN) counts as new: unknown is wider.

    >>> weights(np.array([0.0, 10e6, 20e6, np.nan]), 10.0, 15.0).tolist() == [WEIGHT, WEIGHT // 2, 0, WEIGHT]
    True
    """
    age = np.where(np.isnan(age_us), 0.0, age_us) / 1e6
    share = np.ones(age.size) if half_life_s is None else np.exp2(-age / half_life_s)
    result: Ints = np.rint(share * WEIGHT).astype(np.int64)
    if window_s is not None:
        result[age > window_s] = 0
    return result


@dataclass
class Partials:
    """The sums of one worker over `n_profiles` profiles.

    `classes` adds up by content class (the set of matching profiles), `overlap` by pairs of profiles.
    `most` bounds how many sums are held before they are handed over.
    """

    n_profiles: int
    classes: bool = False
    overlap: bool = True
    most: int = MOST
    total: Ints = field(default_factory=lambda: np.zeros(3, np.int64))
    flow_names: dict[str, int] = field(default_factory=dict)
    flows: Ints = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    pairs: SparseSums = field(default_factory=lambda: SparseSums.none(3))
    together: SparseSums = field(default_factory=lambda: SparseSums.none(1))
    class_sums: dict[bytes, Ints] = field(default_factory=dict)
    class_members: int = 0
    waiting: list[_Waiting] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.profiles: Ints = np.zeros((self.n_profiles, 3), np.int64)

    def add(self, rows: Ints, cols: Ints, values: Ints, flow: pa.Array | None) -> None:
        """Add a batch: its matches sorted by row, (messages, bytes, weight) of each row, each row's flow."""
        matches = Matches.of(rows, cols, len(values))
        self.total += values.sum(axis=0)
        column_sums(matches.offsets, matches.cols, values, self.profiles)
        codes = None if flow is None else self._codes(flow)
        if codes is not None:
            self._add_flows(codes, values)
        if self.classes and rows.size:
            # Where the matches of each matched row start.
            starts: Ints = np.flatnonzero(np.diff(rows, prepend=-1))
            self._add_classes(rows, cols, starts, values)
        if codes is not None or self.overlap:
            self.waiting.append(_Waiting(matches, values, codes))
            if sum(batch.matches.cols.size for batch in self.waiting) > FOLD:
                self._fold()

    def _codes(self, flow: pa.Array) -> Ints:
        encoded = flow.dictionary_encode()
        names = self.flow_names
        codes = [names.setdefault(name, len(names)) for name in encoded.dictionary.to_pylist()]
        result: Ints = np.array(codes, np.int64)[encoded.indices.to_numpy(zero_copy_only=False)]
        return result

    def _add_flows(self, codes: Ints, values: Ints) -> None:
        grown = np.zeros((len(self.flow_names), 3), np.int64)
        grown[: len(self.flows)] = self.flows
        # Every row is a row of one column, its flow.
        column_sums(np.arange(codes.size + 1), codes.astype(np.int32), values, grown)
        self.flows = grown

    def _add_classes(self, rows: Ints, cols: Ints, starts: Ints, values: Ints) -> None:
        ends = np.append(starts[1:], cols.size)
        leader = same_sets(cols, starts, ends)
        leaders, group = np.unique(leader, return_inverse=True)
        summed = np.zeros((leaders.size, 3), np.int64)
        np.add.at(summed, group, values[rows[starts]])
        narrow = cols.astype(np.int32)
        for at, row in zip(leaders.tolist(), summed, strict=True):
            key = narrow[starts[at] : ends[at]].tobytes()
            held = self.class_sums.get(key)
            if held is None:
                self.class_sums[key] = row
                self.class_members += int(ends[at] - starts[at]) + 8
            else:
                held += row

    def _fold(self) -> None:
        """Add what waits to the sparse sums: that costs as much as the sums are long, so seldom."""
        if not self.waiting:
            return
        matches = Matches.joined([batch.matches for batch in self.waiting])
        values = np.concatenate([batch.values for batch in self.waiting])
        codes = [batch.codes for batch in self.waiting if batch.codes is not None]
        self.waiting = []
        if codes:
            group = np.concatenate(codes)
            self.pairs = self.pairs.with_groups(matches, values, group, len(self.flow_names), self.n_profiles)
        if self.overlap:
            self.together = self.together.with_pairs(matches, values[:, 2:].copy(), self.n_profiles)

    @property
    def size(self) -> int:
        """How many sums are held, what waits counted too."""
        waits = sum(batch.matches.cols.size for batch in self.waiting)
        return len(self.flows) + self.pairs.size + self.class_members + self.together.size + waits

    def is_full(self) -> bool:
        """Whether the sums must be handed over, even after merging equal keys."""
        if self.size <= self.most:
            return False
        self._fold()
        return self.size > self.most // 2

    def take(self) -> Iterator[pa.RecordBatch]:
        """Hand over all sums as rows of SCHEMA and start again."""
        self._fold()
        yield _batch(TOTAL, self.total[None])
        busy = np.flatnonzero(self.profiles[:, 0])
        yield _batch(PROFILE, self.profiles[busy], a=busy)
        names = np.array(list(self.flow_names), dtype=object)
        yield _batch(FLOW, self.flows, flow=names)
        for busy, others, sums in self.pairs.cells(AT_ONCE):
            yield _batch(PAIR, _no_sums(busy), flow=names[busy], others=others, sums=sums)
        yield _class_batch(self.class_sums)
        for busy, others, sums in self.together.cells(AT_ONCE):
            yield _batch(OVERLAP, _no_sums(busy), a=busy, others=others, sums=sums)
        self.__init__(self.n_profiles, self.classes, self.overlap, self.most)  # type: ignore[misc]


class _Waiting(NamedTuple):
    """Messages whose matches are not in the sparse sums yet."""

    matches: Matches
    values: Ints
    codes: Ints | None


def _no_sums(groups: Ints) -> Ints:
    return np.zeros((groups.size, 3), np.int64)


def same_sets(cols: Ints, starts: Ints, ends: Ints, bits: int = 64) -> Ints:
    """For each ascending run cols[starts[i]:ends[i]], the first run with the very same members.

    Runs are told apart by a hash of `bits` bits and then compared member by member, so that the answer
    is exact whatever the hash; only runs whose hash lied are compared through a dictionary.

    >>> same_sets(np.array([1, 2, 5, 1, 2]), np.array([0, 2, 3]), np.array([2, 3, 5])).tolist()
    [0, 1, 0]
    """
    mixed = cols.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    with np.errstate(over="ignore"):
        hashes = np.add.reduceat(mixed, starts) + (ends - starts).astype(np.uint64)
    hashes >>= np.uint64(64 - bits)
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    leader: Ints = first[group]
    lengths = ends - starts
    lied = lengths != lengths[leader]
    # Compare each member with that of the leader at the same place; where lengths differ, with itself.
    base = np.where(lied, starts, starts[leader])
    place = np.arange(cols.size) - np.repeat(starts, lengths)
    differs = cols != cols[np.repeat(base, lengths) + place]
    lied |= np.bitwise_or.reduceat(differs, starts)
    if lied.any():
        _settle(cols, starts, ends, leader, np.isin(leader, leader[lied]))
    return leader


def _settle(cols: Ints, starts: Ints, ends: Ints, leader: Ints, doubtful: NDArray[np.bool_]) -> None:
    """Find the leaders of the runs whose hash is shared by different sets."""
    seen: dict[bytes, int] = {}
    for i in np.flatnonzero(doubtful).tolist():
        leader[i] = seen.setdefault(cols[starts[i] : ends[i]].tobytes(), i)


def _class_batch(sums: dict[bytes, Ints]) -> pa.RecordBatch:
    import pyarrow as pa

    flat = np.frombuffer(b"".join(sums), np.int32)
    offsets = np.zeros(len(sums) + 1, np.int32)
    np.cumsum([len(key) // 4 for key in sums], out=offsets[1:])
    members = pa.ListArray.from_arrays(pa.array(offsets), pa.array(flat))
    values = np.array(list(sums.values()), np.int64).reshape(-1, 3)
    return _batch(CLASS, values, members=members)


def _batch(
    kind: str,
    values: Ints,
    *,
    a: Any = None,
    flow: Any = None,
    members: Any = None,
    others: Any = None,
    sums: Any = None,
) -> pa.RecordBatch:
    return sum_rows(kind, *values.T, a=a, flow=flow, members=members, others=others, sums=sums)


def sum_rows(kind: str, messages: Any, bytes_: Any = None, weight: Any = None, **named: Any) -> pa.RecordBatch:
    """Rows of SCHEMA of one kind; columns that are not given are null."""
    import pyarrow as pa

    n = len(messages)

    def column(given: Any, type_: Any) -> Any:
        return pa.nulls(n, type_) if given is None else pa.array(given, type_)

    lists = {"members": pa.list_(pa.int32()), "others": pa.binary(), "sums": pa.binary()}
    return pa.RecordBatch.from_pydict(
        {
            "kind": pa.repeat(kind, n),
            "a": column(named.get("a"), pa.int64()),
            "flow": column(named.get("flow"), pa.string()),
            **{name: pa.nulls(n, t) if named.get(name) is None else named[name] for name, t in lists.items()},
            "messages": column(messages, pa.int64()),
            "bytes": column(bytes_, pa.int64()),
            "weight": column(weight, pa.int64()),
        }
    )
