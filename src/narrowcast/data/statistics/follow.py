"""Statistics of a stream that are always up to date: rates, interest, selectivity and overlap, with decay.

    query = follow(spark, stream, "subscriptions.parquet", key=("symbol",), half_life_s=600, checkpoint=…, out=…)

Each micro-batch is matched on the workers as `measure` does it, and its sums are added to the state after the
micro-batch before it. State N is written whole, from state N - 1, or not at all: a micro-batch that
Spark runs again finds its state there and adds nothing. So everything counts once, and a restart
from the checkpoint gives the numbers that an undisturbed run would have given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery

from narrowcast.data.spark.home import is_connect
from narrowcast.data.statistics import state as states
from narrowcast.data.statistics.match import Decay, partials
from narrowcast.data.statistics.snapshots import snapshot
from narrowcast.data.statistics.state import BatchSpan, StreamState
from narrowcast.data.statistics.subscriptions import Present, Subscriptions
from narrowcast.errors import InputError, NarrowcastError, UnsupportedError
from narrowcast.model import snapshot as snapshots

FOLDER = "statistics"  # in the checkpoint: the state belongs to it


@dataclass(frozen=True)
class FollowSettings:
    """What to keep. `key` names the columns whose values make a flow.

    Weights halve every `half_life_s` seconds of age, by the column `time`; None: nothing decays.
    `overlap=False` leaves out pairs of profiles. `forget` drops flows and pairs once they weigh nothing,
    after 31 half-lives: for streams without an end. `every` micro-batches there is a snapshot; the last `keep` stay.
    """

    key: tuple[str, ...]
    half_life_s: float | None = None
    time: str = "ts"
    overlap: bool = True
    forget: bool = False
    every: int = 1
    keep: int = 5

    def __post_init__(self) -> None:
        Decay(self.half_life_s)
        if not self.key:
            raise InputError(
                "key must name at least one column, got none", name="key", hint="for example key=('symbol',)"
            )
        if self.half_life_s is not None and abs(self.half_life_s * 1e6 - round(self.half_life_s * 1e6)) > 1e-6:
            raise InputError(f"half_life_s must be whole microseconds, got {self.half_life_s}", name="half_life_s")

    @property
    def half_life_us(self) -> int | None:
        return None if self.half_life_s is None else round(self.half_life_s * 1e6)


def follow(
    spark: SparkSession,
    stream: DataFrame,
    subscriptions: Subscriptions,
    *,
    checkpoint: str | Path,
    out: str | Path,
    key: Sequence[str],
    every_s: float = 10.0,
    available_now: bool = False,
    **settings: Any,
) -> Following:
    """Follow a stream of messages and write snapshots (`narrowcast.model.snapshot`) into the folder `out`.

    `subscriptions` is a table or a function, asked again for every micro-batch; the statistics of a new
    profile begin with the micro-batch that first sees it. The folder `checkpoint` holds Spark's offsets and the
    state: start with the same one to go on. There is a micro-batch every `every_s` seconds; with `available_now`
    what is there is taken in and the query ends. `settings` are those of FollowSettings.
    """
    wanted = FollowSettings(tuple(key), **settings)
    if is_connect(spark):
        raise UnsupportedError(
            "follow does not support Spark Connect: it keeps its state and snapshots on the driver's disk",
            works=("a session of the classic kind, as in spark-submit on the server",),
        )
    _check(stream, wanted, checkpoint)
    taker = _Taker(wanted, Present(spark.sparkContext, subscriptions), Path(checkpoint) / FOLDER, Path(out))
    writer = stream.writeStream.foreachBatch(taker.take).option("checkpointLocation", str(checkpoint))
    timed = writer.trigger(availableNow=True) if available_now else writer.trigger(processingTime=f"{every_s} seconds")
    return Following(spark, timed.start(), Path(out))


def _check(stream: DataFrame, settings: FollowSettings, checkpoint: str | Path) -> None:
    if "://" in str(checkpoint):
        raise InputError(f"checkpoint must be a folder on the driver's disk, got {checkpoint}", name="checkpoint")
    needed = [*settings.key, *([settings.time] if settings.half_life_s is not None else [])]
    for name in needed:
        if name not in stream.columns:
            raise InputError(f"the stream has no column {name!r}; it has {', '.join(stream.columns)}", name=name)


class Following:
    """A stream that is being followed."""

    def __init__(self, spark: SparkSession, query: StreamingQuery, out: Path) -> None:
        self._spark, self.query, self._out = spark, query, out

    def wait(self, timeout: float) -> bool:
        """Wait for its end, at most so many seconds; whether it has ended. If it failed, the reason is raised."""
        try:
            return bool(self.query.awaitTermination(max(1, round(timeout))))
        except PySparkException as error:
            raise NarrowcastError(f"streaming statistics stopped: {_reason(error)}") from error

    def stop(self, timeout: float = 60.0) -> None:
        """Stop after the micro-batch under way. What is not taken in yet stays in the log for the next start."""
        name = "spark.sql.streaming.stopTimeout"
        before = self._spark.conf.get(name)
        self._spark.conf.set(name, f"{round(timeout * 1000)}")
        try:
            self.query.stop()
        except PySparkException as error:
            raise NarrowcastError(f"streaming statistics did not stop: {_reason(error)}") from error
        finally:
            self._spark.conf.set(name, str(before))

    def latest(self) -> snapshots.Snapshot | None:
        """The newest snapshot, if there is one yet."""
        return snapshots.latest(self._out)


def _reason(error: Exception) -> str:
    """The line of a worker's or callback's traceback that says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    own = [line for line in lines if line.startswith("narrowcast.errors.")]
    return own[-1].partition(": ")[2] if own else lines[0] if lines else type(error).__name__


@dataclass
class _Taker:
    """Takes in micro-batches, one after the other, each once."""

    settings: FollowSettings
    present: Present
    folder: Path
    out: Path
    state: StreamState | None = field(default=None)

    def take(self, messages: DataFrame, batch: int) -> None:
        self.present.refresh()
        state = states.load(self.folder) if self.state is None else self.state
        if state.batch not in (batch - 1, batch):  # Spark runs again only the one it was at
            raise InputError(
                f"{self.folder}: the state is at micro-batch {state.batch}, but Spark continues with {batch}",
                name="checkpoint",
                hint="start with a new checkpoint",
            )
        if state.batch < batch:
            state = self._added(state, messages, batch)
            states.save(state, self.folder)
        self.state = state
        if batch % self.settings.every == 0:
            self._publish(state)

    def _publish(self, state: StreamState) -> None:
        settings = self.settings
        found = snapshot(state, self.present.holders, key=settings.key, half_life_s=settings.half_life_s)
        snapshots.save(found, self.out, keep=settings.keep)

    def _added(self, state: StreamState, messages: DataFrame, batch: int) -> StreamState:
        kept = messages.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            span = _span(kept, self.settings.time)
            state = state.with_profiles(self.present.texts)
            state = state.at(states.anchor_of(span.newest(state.newest_us), self.settings.half_life_us))
            found = [self._sums(part, state, is_timed) for part, is_timed in self._parts(kept, span)]
            state = state.plus(found, span, batch)
        finally:
            kept.unpersist()
        return state.without_the_forgotten() if self.settings.forget else state

    def _parts(self, messages: DataFrame, span: BatchSpan) -> list[tuple[DataFrame, bool]]:
        """Messages with a time, which decay, and those without one, which cannot."""
        if self.settings.half_life_s is None or span.timed == span.messages:
            return [(messages, True)] if span.messages else []
        time = F.col(f"`{self.settings.time}`")
        parts = [(messages.where(time.isNull()), False)]
        return [*parts, (messages.where(time.isNotNull()), True)] if span.timed else parts

    def _sums(self, messages: DataFrame, state: StreamState, timed: bool) -> Any:
        settings, matcher = self.settings, self.present.matcher
        assert matcher is not None
        half_life = settings.half_life_us
        found = partials(
            messages,
            matcher,
            key=settings.key,
            overlap=settings.overlap,
            decay=Decay(settings.half_life_s),
            newest_us=None if state.anchor is None or half_life is None else state.anchor * half_life,
            shared=self.present.shared,
            time=settings.time,
        ).toArrow()
        numbers = np.array([state.numbers[text] for text in self.present.texts], np.int64)
        return states.as_sums(found, numbers, timed=timed)


def _span(messages: DataFrame, time_column: str) -> BatchSpan:
    """What a micro-batch covers, in one small job."""
    has_place = {"_sequence", "_shard"} <= set(messages.columns)
    none = F.lit(None).cast("bigint")
    time = F.unix_micros(F.col(f"`{time_column}`")) if time_column in messages.columns else none
    shard = F.col("_shard") if has_place else F.lit(0)
    sequence = F.col("_sequence") if has_place else none
    rows = (
        messages.groupBy(shard.alias("shard"))
        .agg(
            F.count("*").alias("messages"),
            F.count(time).alias("timed"),
            F.min(time).alias("first"),
            F.max(time).alias("newest"),
            F.max(sequence).alias("sequence"),
        )
        .collect()
    )
    return BatchSpan(
        sum(row["messages"] for row in rows),
        sum(row["timed"] for row in rows),
        min((row["first"] for row in rows if row["first"] is not None), default=None),
        max((row["newest"] for row in rows if row["newest"] is not None), default=None),
        {row["shard"]: row["sequence"] for row in rows if row["sequence"] is not None},
    )
