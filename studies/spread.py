"""Independent work spread over Spark: a function, many points, the answers as they come."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple
from uuid import uuid4

from pyspark import inheritable_thread_target
from pyspark.sql import SparkSession

# A worker is one of several: libraries that start threads of their own would only get in each other's way.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")

JOB_S = 1.0
MOST_IN_A_JOB = 32


class Done(NamedTuple):
    """A point, what came of it, and the seconds and the seconds of CPU it took where it ran."""

    point: Any
    result: Any
    seconds: float
    cpu_s: float


def spread(spark: SparkSession, work: Callable[[Any], Any], points: Sequence[Any]) -> Generator[Done]:
    """`work(point)` for every point, the answers as soon as they are there, so that they can be kept.

    As many jobs are under way as there are cores, each with one thread and with points for about a second, as long
    as those before took: a job costs a tenth of that. Closing it stops what is under way.
    """
    context = spark.sparkContext
    group, cores = f"spread-{uuid4()}", max(1, context.defaultParallelism)

    def job(some: Sequence[Any]) -> list[Done]:
        context.setJobGroup(group, "studies", interruptOnCancel=True)
        done: list[Done] = context.parallelize(some, 1).map(lambda each: _timed(work, each)).collect()
        return done

    under_way: set[Future[list[Done]]] = set()
    begun, answered, spent = 0, 0, 0.0
    with ThreadPoolExecutor(cores) as pool:
        try:
            while begun < len(points) or under_way:
                while begun < len(points) and len(under_way) < cores:
                    size = max(1, min(MOST_IN_A_JOB, int(JOB_S * answered / spent))) if spent > 0 else 1
                    under_way.add(pool.submit(inheritable_thread_target(spark)(job), points[begun : begun + size]))
                    begun += size
                finished, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                for done in (each for one in finished for each in one.result()):
                    answered, spent = answered + 1, spent + done.seconds
                    yield done
        finally:
            while not all(one.done() for one in under_way):
                context.cancelJobGroup(group)  # again: a job may have begun just after
                time.sleep(0.1)


def _timed(work: Callable[[Any], Any], point: Any) -> Done:
    for name in THREADS:
        os.environ.setdefault(name, "1")
    begin, busy = time.perf_counter(), time.process_time()
    result = work(point)
    return Done(point, result, time.perf_counter() - begin, time.process_time() - busy)
