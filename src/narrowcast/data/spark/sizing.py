"""Spark's settings by the size of the inputs: a small job spends its time planning, not working.

Adaptive execution runs every shuffle as a job of its own and plans the rest anew after each. That pays
when sizes are unknown and large; on tables of a few megabytes it is most of the time that a measurement
takes, and so is compiling what runs for a second.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from narrowcast.data.spark.home import activate, is_connect, is_local, with_settings

SMALL_BYTES = 16 << 20
# A task costs more to start than so much takes to work on.
TASK_BYTES = 1 << 20
PART_BYTES = 32 << 20
# What Spark knows nothing of it takes for 8 EB, so that it is never copied to all workers.
UNKNOWN = 1 << 50
# No job per shuffle, and no Java code written and compiled for each: its rows are soon done without.
_PLAIN = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# Names of columns are what they are, as in profiles: a log may have both Pid and PID.
_EXACT = {"spark.sql.caseSensitive": "true"}


@contextmanager
def sized(spark: SparkSession, sources: Iterable[str | Path]) -> Iterator[SparkSession]:
    """A session with settings that suit inputs of this size; the one that was given stays as it is."""
    chosen = {} if not is_local(spark) else _EXACT | _settings(spark.sparkContext.defaultParallelism, list(sources))
    with with_settings(spark, chosen) as copy:
        yield copy


@contextmanager
def at_once(spark: SparkSession, sources: Iterable[str | Path]) -> Iterator[ThreadPoolExecutor]:
    """A pool for jobs of one measurement in a session: many side by side for small inputs, else one after another.

    Spark plans each job on one core and needs seconds for it in a young JVM. Jobs on large inputs use
    all cores by themselves, and two would need twice the memory. A job that fails lets no other start.
    """
    threads = 8 if are_small(list(sources)) else 1
    with ThreadPoolExecutor(threads, initializer=activate, initargs=(spark,)) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _settings(parallel: int, sources: list[str | Path]) -> dict[str, str]:
    total = sum(_bytes(source) or 0 for source in sources)
    if are_small(sources):
        few = str(max(1, min(parallel, total // TASK_BYTES)))
        names = ("shuffle.partitions", "files.minPartitionNum", "leafNodeDefaultParallelism")
        return _PLAIN | {f"spark.sql.{name}": few for name in names}
    # What a task sorts should fit into its memory; Parquet is several times as large unpacked.
    parts = total // PART_BYTES
    return {"spark.sql.shuffle.partitions": str(parts)} if parts > 2 * parallel else {}


def are_small(sources: Iterable[str | Path]) -> bool:
    """Whether all inputs together are a few megabytes on this machine."""
    known = [_bytes(source) for source in sources]
    return bool(known) and all(size is not None for size in known) and sum(size or 0 for size in known) < SMALL_BYTES


class ViewName(str):
    """A view of somebody's DataFrame, by its name; `size_bytes` is what Spark reckons it to be, if it says."""

    size_bytes: int | None = None

    @classmethod
    def of(cls, name: str, frame: DataFrame) -> ViewName:
        view = cls(name)
        if not is_connect(frame.sparkSession):
            inside: Any = frame._jdf
            size = int(str(inside.queryExecution().optimizedPlan().stats().sizeInBytes()))
            view.size_bytes = size if size < UNKNOWN else None
        return view


def _bytes(source: str | Path) -> int | None:
    """The size of a local file or folder, or of a frame; None for anything else, which may be large."""
    if isinstance(source, ViewName):
        return source.size_bytes
    path = Path(source)
    if path.is_file():
        return path.stat().st_size
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return None
