"""Match messages against profiles on the workers.

The matcher is broadcast: each worker process unpacks it once and keeps it, whatever the number of
tasks. What comes back are the workers' sums (`partials`), from which every statistic is made.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import TimestampType

from narrowcast.data.ingest.key import check_key
from narrowcast.data.ingest.read import FILE, ROW
from narrowcast.data.ingest.verdicts import KIND, REASON
from narrowcast.data.spark.home import Shared, map_arrow, share
from narrowcast.data.statistics.partials import BYTE, MOST, SCHEMA, Ints, Partials, weights
from narrowcast.data.statistics.tally import AT, TaskTally, with_late
from narrowcast.errors import InputError
from narrowcast.model.arrays import distinct

if TYPE_CHECKING:
    import pyarrow as pa

    from narrowcast.profiles import Matcher

FLOW_OF, AGE, BYTES = "_flow", "_age", "_bytes"


@dataclass(frozen=True, slots=True)
class Decay:
    """How much a message counts by its age: halved every `half_life_s`, nothing past `window_s`."""

    half_life_s: float | None = None
    window_s: float | None = None

    def __post_init__(self) -> None:
        for name in ("half_life_s", "window_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} must be above 0, got {value}", name=name, got=value)


@dataclass(frozen=True, eq=False)
class Holders:
    """Who has which profile: the subscribers of profile i are `subscribers[offsets[i]:offsets[i + 1]]`."""

    offsets: Ints
    subscribers: Ints
    n_subscribers: int

    @classmethod
    def from_pairs(cls, profile: Ints, subscriber: Ints, n_profiles: int, n_subscribers: int) -> Holders:
        order = np.lexsort((subscriber, profile))
        offsets = np.zeros(n_profiles + 1, np.int64)
        np.cumsum(np.bincount(profile, minlength=n_profiles), out=offsets[1:])
        return cls(offsets, subscriber[order], n_subscribers)

    def of(self, rows: Ints, profiles: Ints) -> tuple[Ints, Ints]:
        """Matches of profiles as matches of subscribers, each once, sorted by row and subscriber."""
        lengths = np.diff(self.offsets)[profiles]
        place = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        found = self.subscribers[np.repeat(self.offsets[profiles], lengths) + place]
        pairs = distinct(np.repeat(rows, lengths) * self.n_subscribers + found)
        result: tuple[Ints, Ints] = np.divmod(pairs, self.n_subscribers)
        return result


def flow_name(columns: Sequence[str]) -> Column:
    """The flow of a message: the text of its key columns, joined so that no two keys look alike."""
    parts = []
    for name in columns:
        text = F.col(f"`{name}`").cast("string")
        if len(columns) > 1:
            text = F.replace(F.replace(text, F.lit("\\"), F.lit("\\\\")), F.lit("|"), F.lit("\\|"))
        parts.append(F.coalesce(text, F.lit("\\N")))
    return F.concat_ws("|", *parts)


def partials(
    messages: DataFrame,
    matcher: Matcher,
    *,
    key: Sequence[str] | None = None,
    classes: bool = False,
    overlap: bool = True,
    decay: Decay | None = None,
    newest_us: int | None = None,
    holders: Holders | None = None,
    most: int = MOST,
    shared: Shared | None = None,
    time: str = "ts",
    room: int | None = None,
) -> DataFrame:
    """Table `partials`: the sums that all statistics are made from, one pass over the messages.

    `key` names the columns whose values make a flow; `classes` adds up by content class, the set of
    profiles that match; `overlap` by pairs of profiles. `newest_us` is the time ages are counted from, by
    the column `time`.
    With `holders` everything counts by subscriber, in place of profile: a message that several
    profiles of one subscriber match counts once. `shared` is the matcher where it was broadcast before.

    Messages with verdicts (`verdicts.KIND`) are counted by them, and only the good ones matched. With `room` rows
    have a further column `late`, true of what a task hands over beyond so many bytes, and both are told in rows
    of `tally`.
    """
    check_key(key or (), [name for name in messages.columns if name not in (FILE, ROW, KIND, REASON)])
    index_of = shared or share(messages.sparkSession, matcher)
    aging = decay or Decay()
    everybody = None if holders is None else share(messages.sparkSession, holders)
    n_columns = matcher.n_profiles if holders is None else holders.n_subscribers
    inputs = prepared(messages, matcher.attributes, key, newest_us, time)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if room is None:
            yield from summed(batches)
            return
        tally = TaskTally()
        yield from with_late(summed(tally.good(batch) for batch in batches), tally, room)

    def summed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        index, mine = index_of.value, None if everybody is None else everybody.value
        sums = Partials(n_columns, classes=classes, overlap=overlap, most=most)
        for batch in batches:
            rows, cols = index.match(batch, missing="null", threads=1)
            if mine is not None:
                rows, cols = mine.of(rows, cols)
            sums.add(rows, cols, _values(batch, aging), None if key is None else batch.column(FLOW_OF))
            if sums.is_full():
                yield from sums.take()
        yield from sums.take()

    return map_arrow(inputs, work, SCHEMA if room is None else f"{SCHEMA}, late boolean")


def prepared(
    messages: DataFrame, attributes: Sequence[str], key: Sequence[str] | None, newest_us: int | None, time: str = "ts"
) -> DataFrame:
    """Only what matching needs: the attributes that profiles name, flow, size and age."""
    kept = [F.col(f"`{c}`") for c in attributes if c in messages.columns and c != KIND]
    size = F.col("size") if "size" in messages.columns else F.lit(0.0)
    age = F.lit(None).cast("double")
    if newest_us is not None and time in messages.columns:
        age = (F.lit(newest_us) - F.unix_micros(F.col(f"`{time}`"))).cast("double")
    extra = [size.cast("double").alias(BYTES), age.alias(AGE)]
    if key is not None:
        extra.append(flow_name(key).alias(FLOW_OF))
    if KIND in messages.columns:
        has_times = time in messages.columns and isinstance(messages.schema[time].dataType, TimestampType)
        extra += [F.col(KIND), (F.unix_micros(F.col(f"`{time}`")) if has_times else F.lit(None).cast("long")).alias(AT)]
    return messages.select(*kept, *extra)


def _values(batch: pa.RecordBatch, decay: Decay) -> Any:
    """(1, size, weight) of each row as whole numbers; a size that is not known counts as 0."""
    size = batch.column(BYTES).fill_null(0.0).to_numpy(zero_copy_only=False)
    age = batch.column(AGE).to_numpy(zero_copy_only=False).astype(np.float64)
    values = np.ones((batch.num_rows, 3), np.int64)
    values[:, 1] = np.rint(size * BYTE)
    values[:, 2] = weights(age, decay.half_life_s, decay.window_s)
    return values
