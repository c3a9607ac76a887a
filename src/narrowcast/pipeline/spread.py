"""Independent work spread over Spark: a function, many points, the answers as they come."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, NamedTuple
from uuid import uuid4

from pyspark import inheritable_thread_target
from pyspark.sql import SparkSession

# A worker is one of several: libraries that start threads of their own would only get in each other's way.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Done(NamedTuple):
    """A point, what came of it, and the seconds and the seconds of CPU it took where it ran."""

    point: Any
    result: Any
    seconds: float
    cpu_s: float


def spread(spark: SparkSession, work: Callable[[Any], Any], points: Sequence[Any]) -> Generator[Done]:
    """`work(point)` for every point, each answer as soon as it is there, so that it can be kept.

    A point is a job of its own with one thread; as many are under way as there are cores, and the next begins
    when any is done. Closing it stops what is under way.
    """
    context = spark.sparkContext
    group = f"spread-{uuid4()}"

    def one(point: Any) -> Done:
        context.setJobGroup(group, "studies", interruptOnCancel=True)
        done: Done = context.parallelize([point], 1).map(lambda each: _timed(work, each)).collect()[0]
        return done

    with ThreadPoolExecutor(max(1, context.defaultParallelism)) as pool:
        asked = [pool.submit(inheritable_thread_target(spark)(one), point) for point in points]
        try:
            for answer in as_completed(asked):
                yield answer.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            while not all(answer.done() for answer in asked):
                context.cancelJobGroup(group)  # again: a job may have begun just after
                time.sleep(0.1)


def _timed(work: Callable[[Any], Any], point: Any) -> Done:
    for name in THREADS:
        os.environ.setdefault(name, "1")
    begin, busy = time.perf_counter(), time.process_time()
    result = work(point)
    return Done(point, result, time.perf_counter() - begin, time.process_time() - busy)
