"""Independent work spread over Spark: a function, many points, the answers as they come."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from pyspark.sql import SparkSession

# A worker is one of several: libraries that start threads of their own would only get in each other's way.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Done(NamedTuple):
    """A point, what came of it, and the seconds and the seconds of CPU it took where it ran."""

    point: Any
    result: Any
    seconds: float
    cpu_s: float


def spread(
    spark: SparkSession, work: Callable[[Any], Any], points: Sequence[Any], *, wave: int | None = None
) -> Iterator[Done]:
    """`work(point)` for every point, in waves, so that what is done can be kept before all is done.

    A wave has several points per core, drawn out evenly; each point is a task of its own with one thread.
    """
    context = spark.sparkContext
    size = wave or 16 * max(1, context.defaultParallelism)
    for start in range(0, len(points), size):
        part = points[start : start + size]
        yield from context.parallelize(part, len(part)).map(lambda point: _timed(work, point)).collect()


def _timed(work: Callable[[Any], Any], point: Any) -> Done:
    for name in THREADS:
        os.environ.setdefault(name, "1")
    begin, busy = time.perf_counter(), time.process_time()
    result = work(point)
    return Done(point, result, time.perf_counter() - begin, time.process_time() - busy)
