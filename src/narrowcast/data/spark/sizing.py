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

from pyspark.sql import SparkSession

SMALL_BYTES = 16 << 20
# A task costs more to start than so much takes to work on.
TASK_BYTES = 1 << 20
PART_BYTES = 32 << 20
# No job per shuffle, and no Java code written and compiled for each: its rows are soon done without.
_PLAIN = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# Names of columns are what they are, as in profiles: a log may have both Pid and PID.
_EXACT = {"spark.sql.caseSensitive": "true"}


@contextmanager
def sized(spark: SparkSession, sources: Iterable[str | Path]) -> Iterator[None]:
    """Within the block, settings that suit inputs of this size; those of before come back after it."""
    chosen = _EXACT | _settings(spark.sparkContext.defaultParallelism, list(sources))
    before = {name: spark.conf.get(name, None) for name in chosen}
    for name, value in chosen.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            spark.conf.unset(name) if old is None else spark.conf.set(name, old)


@contextmanager
def at_once(sources: Iterable[str | Path]) -> Iterator[ThreadPoolExecutor]:
    """A pool for jobs of one measurement: many side by side for small inputs, else one after another.

    Spark plans each job on one core and needs seconds for it in a young JVM. Jobs on large inputs use
    all cores by themselves, and two would need twice the memory. A job that fails lets no other start.
    """
    with ThreadPoolExecutor(8 if are_small(list(sources)) else 1) as pool:
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


def _bytes(source: str | Path) -> int | None:
    """The size of a local file or folder; None for anything else, which may be large."""
    path = Path(source)
    if path.is_file():
        return path.stat().st_size
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return None
