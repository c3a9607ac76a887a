"""What is kept of a log that is being followed: the workers' sums, added up over micro-batches, and nothing else.

All sums are whole numbers (docs/decisions/0062). Weights decay, so they are held as of an *anchor*, a whole
number of half-lives since 1970 that is no earlier than any message: when it moves on by k half-lives every
weight is shifted by k bits, and a late message is weighed by its age at the anchor like any other. What a message
adds does not depend on when it comes (docs/decisions/0121).

Profiles have numbers here that never change or come back, since others come and go.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from narrowcast.data.statistics.partials import OVERLAP, WEIGHT, Ints
from narrowcast.data.statistics.unpack import unpacked
from narrowcast.errors import InputError
from narrowcast.model.whole_folder import whole_folder

HEAD, SUMS = "state.json", "sums.parquet"
KEYS = ("kind", "a", "b", "flow")
VALUES = ("messages", "bytes", "weight", "timeless")
KEEP = 2


def empty_sums() -> Any:
    """No sums: rows of a kind, profiles `a` and `b` (-1: none), a flow; `timeless` counts messages without a time."""
    import pyarrow as pa

    kinds = {"kind": pa.string(), "a": pa.int64(), "b": pa.int64(), "flow": pa.string()}
    return pa.schema(kinds | dict.fromkeys(VALUES, pa.int64())).empty_table()


@dataclass(frozen=True)
class StreamState:
    """The sums after micro-batch `batch`. `position` is the last entry of each shard that is in them."""

    batch: int = -1
    anchor: int | None = None
    first_us: int | None = None
    newest_us: int | None = None
    position: Mapping[int, int] = field(default_factory=dict)
    numbers: Mapping[str, int] = field(default_factory=dict)  # of each profile, by its text
    next_number: int = 0
    sums: Any = field(default_factory=empty_sums)

    def with_profiles(self, texts: Sequence[str]) -> StreamState:
        """The state for these profiles: new ones begin with nothing, of others every sum is dropped."""
        wanted = set(texts)
        kept = {text: number for text, number in self.numbers.items() if text in wanted}
        new = sorted(wanted - set(kept))
        numbers = kept | {text: self.next_number + k for k, text in enumerate(new)}
        sums = self.sums
        if len(kept) < len(self.numbers):
            sums = _only(sums, np.array([-1, *kept.values()], np.int64))
        return replace(self, numbers=numbers, next_number=self.next_number + len(new), sums=sums)

    def at(self, anchor: int | None) -> StreamState:
        """The same as of a later anchor."""
        if anchor is None or anchor <= (self.anchor if self.anchor is not None else anchor - 1):
            return self
        if self.anchor is None:  # no message had a time so far
            return replace(self, anchor=anchor)
        return replace(self, anchor=anchor, sums=_decayed(self.sums, anchor - self.anchor))

    def plus(self, sums: Sequence[Any], span: BatchSpan, batch: int) -> StreamState:
        """With the sums of a micro-batch, which are as of the state's anchor."""
        return replace(
            self,
            batch=batch,
            first_us=_least(self.first_us, span.first_us),
            newest_us=span.newest(self.newest_us),
            position={**self.position, **span.position},
            sums=_added(self.sums, *sums),
        )

    def without_the_forgotten(self) -> StreamState:
        """Without flows and pairs that have decayed to nothing; totals stay."""
        import pyarrow.compute as pc

        weighs = pc.or_(pc.greater(self.sums["weight"], 0), pc.greater(self.sums["timeless"], 0))
        total = pc.and_(pc.equal(self.sums["flow"], ""), pc.equal(self.sums["b"], -1))
        return replace(self, sums=self.sums.filter(pc.or_(weighs, total)))


@dataclass(frozen=True, slots=True)
class BatchSpan:
    """What a micro-batch covers: messages, how many bear a time, the first and last of these, and where it ends."""

    messages: int = 0
    timed: int = 0
    first_us: int | None = None
    newest_us: int | None = None
    position: Mapping[int, int] = field(default_factory=dict)

    def newest(self, other: int | None) -> int | None:
        found = [at for at in (self.newest_us, other) if at is not None]
        return max(found, default=None)


def anchor_of(newest_us: int | None, half_life_us: int | None) -> int | None:
    """The first whole number of half-lives since 1970 that is not before a time.

    >>> anchor_of(25_000_000, 10_000_000), anchor_of(None, 10_000_000)
    (3, None)
    """
    return None if newest_us is None or half_life_us is None else -(-newest_us // half_life_us)


def as_sums(partials: Any, numbers: Ints, *, timed: bool) -> Any:
    """The rows that workers handed over (partials.SCHEMA, in Arrow), keyed by lasting numbers of profiles.

    Without a time a message weighs 1 for ever; such messages are counted, not weighed.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    partials = unpacked(partials)
    single = partials.filter(pc.not_equal(partials["kind"], OVERLAP))
    pairs = partials.filter(pc.equal(partials["kind"], OVERLAP)).combine_chunks()
    parents = pc.list_parent_indices(pairs["members"]).combine_chunks()
    a = np.concatenate([_numbered(single["a"], numbers), _numbered(pairs["a"].take(parents), numbers)])
    b = np.concatenate([np.full(single.num_rows, -1), _numbered(pc.list_flatten(pairs["members"]), numbers)])
    none = np.zeros(len(parents), np.int64)
    weight = np.concatenate([single["weight"].to_numpy(), pc.list_flatten(pairs["weights"]).to_numpy()])
    columns = {
        "kind": pa.concat_arrays([_one(single["kind"]), pa.repeat(OVERLAP, len(parents))]),
        # Each pair once, whichever of the two came first.
        "a": np.where(b >= 0, np.minimum(a, b), a),
        "b": np.where(b >= 0, np.maximum(a, b), b),
        "flow": pa.concat_arrays([_one(pc.fill_null(single["flow"], "")), pa.repeat("", len(parents))]),
        "messages": np.concatenate([single["messages"].to_numpy(), none]),
        "bytes": np.concatenate([single["bytes"].to_numpy(), none]),
        "weight": weight if timed else np.zeros_like(weight),
        "timeless": np.zeros_like(weight) if timed else weight // WEIGHT,
    }
    return pa.table(columns, schema=empty_sums().schema)


def _one(column: Any) -> Any:
    found = column.combine_chunks()
    return found.chunk(0) if hasattr(found, "chunk") and found.num_chunks else found


def _numbered(column: Any, numbers: Ints) -> Ints:
    """Places in the matcher as lasting numbers; none stays none."""
    import pyarrow as pa

    places = column.cast(pa.int64()).fill_null(-1).to_numpy()
    result: Ints = np.append(numbers, -1)[places]
    return result


def _added(*tables: Any) -> Any:
    import pyarrow as pa

    summed = pa.concat_tables(tables).group_by(list(KEYS)).aggregate([(name, "sum") for name in VALUES])
    plain = summed.rename_columns([name.removesuffix("_sum") for name in summed.column_names])
    return plain.select([*KEYS, *VALUES]).sort_by([(name, "ascending") for name in KEYS]).combine_chunks()


def _decayed(sums: Any, half_lives: int) -> Any:
    """Every weight halved so many times, to the nearest whole number."""
    weight = sums["weight"].to_numpy()
    if half_lives > 62:
        halved = np.zeros_like(weight)
    else:
        halved = (weight + (1 << (half_lives - 1))) >> half_lives
    return sums.set_column(sums.schema.get_field_index("weight"), "weight", [halved])


def _only(sums: Any, kept: Ints) -> Any:
    keep = np.isin(sums["a"].to_numpy(), kept) & np.isin(sums["b"].to_numpy(), kept)
    return sums.filter(keep)


def _least(*times: int | None) -> int | None:
    return min((at for at in times if at is not None), default=None)


# On disk: a folder for each of the last micro-batches, whole or not there.


def save(state: StreamState, folder: Path) -> None:
    """Write the state after a micro-batch beside the ones before it, of which the last stay."""
    import pyarrow.parquet as pq

    place = folder / f"state-{state.batch:08d}"
    with whole_folder(place, marker=HEAD, overwrite=True) as half:
        pq.write_table(state.sums, half / SUMS, compression="zstd")
        names = ("batch", "anchor", "first_us", "newest_us", "next_number")
        head: dict[str, Any] = {name: getattr(state, name) for name in names}
        head |= {"position": {str(k): v for k, v in state.position.items()}, "numbers": dict(state.numbers)}
        (half / HEAD).write_text(json.dumps(head), encoding="utf-8")
    for batch in _batches(folder)[:-KEEP]:
        shutil.rmtree(folder / f"state-{batch:08d}", ignore_errors=True)


def load(folder: Path) -> StreamState:
    """The newest state in a folder; where there is none, that of an empty log."""
    import pyarrow.parquet as pq

    batches = _batches(folder)
    if not batches:
        return StreamState()
    place = folder / f"state-{batches[-1]:08d}"
    try:
        head = json.loads((place / HEAD).read_text(encoding="utf-8"))
        sums = pq.read_table(place / SUMS)
    except (OSError, ValueError) as error:
        raise InputError(f"{place}: the state cannot be read: {error}", name="checkpoint", got=str(place)) from None
    return StreamState(**head | {"position": {int(k): v for k, v in head["position"].items()}}, sums=sums)


def _batches(folder: Path) -> list[int]:
    found = folder.glob("state-*") if folder.is_dir() else ()
    return sorted(int(path.name.removeprefix("state-")) for path in found if (path / HEAD).is_file())
