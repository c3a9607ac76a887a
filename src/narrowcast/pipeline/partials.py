"""What one worker keeps of the messages it matched: sums, never the pairs themselves.

A message is matched, added to a few sums and forgotten, so that ten million messages send thousands
of rows through the shuffle, not billions. All sums are of whole numbers: sizes in 1/1024 of a byte and
decay weights in 2⁻³⁰, so they do not depend on the order of adding, and any number of partitions gives
the same result to the last bit (docs/decisions/0062).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

Ints = NDArray[np.int64]

BYTE = 1024
WEIGHT = 1 << 30
TOTAL, PROFILE, FLOW, PAIR, CLASS, OVERLAP = "total", "profile", "flow", "pair", "class", "overlap"
# The profiles that overlap with profile `a` travel as one row, `members` with their `weights`.
SCHEMA = (
    "kind string, a bigint, flow string, members array<int>, weights array<bigint>, "
    "messages bigint, bytes bigint, weight bigint"
)


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
class Sums:
    """Messages, bytes and weight added up by a key."""

    keys: list[Ints] = field(default_factory=list)
    values: list[Ints] = field(default_factory=list)
    size: int = 0

    def add(self, keys: Ints, values: Ints) -> None:
        """Add rows of (messages, bytes, weight) under their keys."""
        if keys.size:
            found, summed = _summed(keys, values)
            self.keys.append(found)
            self.values.append(summed)
            self.size += found.size

    def take(self) -> tuple[Ints, Ints]:
        """Everything so far by ascending key; nothing is kept."""
        if not self.keys:
            return np.zeros(0, np.int64), np.zeros((0, 3), np.int64)
        found, summed = _summed(np.concatenate(self.keys), np.concatenate(self.values))
        self.keys, self.values, self.size = [], [], 0
        return found, summed

    def shrink(self) -> None:
        """Merge equal keys."""
        if len(self.keys) > 1:
            self.add(*self.take())


def _summed(keys: Ints, values: Ints) -> tuple[Ints, Ints]:
    order = np.argsort(keys, kind="stable")
    found, first = np.unique(keys[order], return_index=True)
    return found, np.add.reduceat(values[order], first, axis=0)


@dataclass
class Partials:
    """The sums of one worker over `n_profiles` profiles.

    `classes` adds up by content class (the set of matching profiles), `overlap` by pairs of profiles.
    `most` bounds how many sums are held before they are handed over.
    """

    n_profiles: int
    classes: bool = False
    overlap: bool = True
    most: int = 2_000_000
    total: Ints = field(default_factory=lambda: np.zeros(3, np.int64))
    flow_names: dict[str, int] = field(default_factory=dict)
    flows: Sums = field(default_factory=Sums)
    pairs: Sums = field(default_factory=Sums)
    class_sums: dict[bytes, Ints] = field(default_factory=dict)
    class_members: int = 0
    together: Any = None

    def __post_init__(self) -> None:
        self.profiles: Ints = np.zeros((self.n_profiles, 3), np.int64)

    def add(self, rows: Ints, cols: Ints, values: Ints, flow: pa.Array | None) -> None:
        """Add a batch: its matches sorted by row, (messages, bytes, weight) of each row, each row's flow."""
        self.total += values.sum(axis=0)
        matched = values[rows]
        for k in range(3):
            # Exact: whole numbers below 2^53 in floats. A batch's bytes and weights are.
            self.profiles[:, k] += np.bincount(cols, matched[:, k], self.n_profiles).astype(np.int64)
        if flow is not None:
            codes = self._codes(flow)
            self.flows.add(codes, values)
            self.pairs.add(codes[rows] * self.n_profiles + cols, matched)
        # Where the matches of each matched row start.
        starts: Ints = np.flatnonzero(np.diff(rows, prepend=-1))
        if self.classes and starts.size:
            self._add_classes(rows, cols, starts, values)
        if self.overlap and starts.size:
            self._add_overlap(starts, cols, values[rows[starts], 2])

    def _codes(self, flow: pa.Array) -> Ints:
        encoded = flow.dictionary_encode()
        names = self.flow_names
        codes = [names.setdefault(name, len(names)) for name in encoded.dictionary.to_pylist()]
        result: Ints = np.array(codes, np.int64)[encoded.indices.to_numpy(zero_copy_only=False)]
        return result

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

    def _add_overlap(self, starts: Ints, cols: Ints, weight: Ints) -> None:
        from scipy.sparse import csr_array

        offsets = np.append(starts, cols.size)
        lengths = np.diff(offsets)
        shape = (starts.size, self.n_profiles)
        once = csr_array((np.ones(cols.size, np.int64), cols, offsets), shape=shape)
        weighed = csr_array((np.repeat(weight, lengths), cols, offsets), shape=shape)
        found = (once.T @ weighed).tocsr()
        self.together = found if self.together is None else self.together + found

    @property
    def size(self) -> int:
        """How many sums are held."""
        together = 0 if self.together is None else self.together.nnz
        return self.flows.size + self.pairs.size + self.class_members + together

    def is_full(self) -> bool:
        """Whether the sums must be handed over, even after merging equal keys."""
        if self.size <= self.most:
            return False
        self.flows.shrink()
        self.pairs.shrink()
        return self.size > self.most // 2

    def take(self) -> Iterator[pa.RecordBatch]:
        """Hand over all sums as rows of SCHEMA and start again."""
        yield _batch(TOTAL, self.total[None])
        busy = np.flatnonzero(self.profiles[:, 0])
        yield _batch(PROFILE, self.profiles[busy], a=busy)
        names = np.array(list(self.flow_names), dtype=object)
        keys, values = self.flows.take()
        yield _batch(FLOW, values, flow=names[keys] if keys.size else None)
        keys, values = self.pairs.take()
        flow, profile = np.divmod(keys, self.n_profiles)
        yield _batch(PAIR, values, a=profile, flow=names[flow] if keys.size else None)
        yield _class_batch(self.class_sums)
        yield self._overlap_batch()
        self.__init__(self.n_profiles, self.classes, self.overlap, self.most)  # type: ignore[misc]

    def _overlap_batch(self) -> pa.RecordBatch:
        """For each profile the later ones that it overlaps with."""
        import pyarrow as pa
        from scipy.sparse import triu

        if self.together is None:
            return _batch(OVERLAP, np.zeros((0, 3), np.int64))
        upper = triu(self.together, k=1, format="csr")
        upper.eliminate_zeros()
        busy = np.flatnonzero(np.diff(upper.indptr))
        offsets = pa.array(np.append(upper.indptr[busy], upper.indptr[-1]).astype(np.int32))
        members = pa.ListArray.from_arrays(offsets, pa.array(upper.indices.astype(np.int32)))
        weights = pa.ListArray.from_arrays(offsets, pa.array(upper.data))
        return _batch(OVERLAP, np.zeros((busy.size, 3), np.int64), a=busy, members=members, weights=weights)


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
    kind: str, values: Ints, *, a: Any = None, flow: Any = None, members: Any = None, weights: Any = None
) -> pa.RecordBatch:
    import pyarrow as pa

    n = len(values)

    def column(given: Any, type_: Any) -> Any:
        return pa.nulls(n, type_) if given is None else pa.array(given, type_)

    return pa.RecordBatch.from_pydict(
        {
            "kind": pa.repeat(kind, n),
            "a": column(a, pa.int64()),
            "flow": column(flow, pa.string()),
            "members": pa.nulls(n, pa.list_(pa.int32())) if members is None else members,
            "weights": pa.nulls(n, pa.list_(pa.int64())) if weights is None else weights,
            "messages": pa.array(values[:, 0]),
            "bytes": pa.array(values[:, 1]),
            "weight": pa.array(values[:, 2]),
        }
    )
