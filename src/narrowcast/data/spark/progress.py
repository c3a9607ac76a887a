"""How far Spark is, from its own count of tasks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from pyspark.sql import SparkSession

from narrowcast.data.spark.home import is_connect


class TaskReporter(Protocol):
    """Told now and then how many tasks of the stages at work are done, of how many."""

    def __call__(self, done: int, total: int) -> None: ...


@contextmanager
def watched(spark: SparkSession, report: TaskReporter | None, *, every_s: float = 0.5) -> Iterator[None]:
    """Report Spark's progress while the block runs; nothing at all without a reporter."""
    if report is None:
        yield
        return
    if is_connect(spark):
        with _told(spark, report):
            yield
        return
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, report, every_s, ended), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()


@contextmanager
def _told(spark: SparkSession, report: TaskReporter) -> Iterator[None]:
    """Over Connect the server tells."""

    def told(stages: Any, **_: Any) -> None:
        known = list(stages or ())
        report(sum(s.num_completed_tasks for s in known), sum(s.num_tasks for s in known))

    spark.registerProgressHandler(told)  # type: ignore[arg-type]
    try:
        yield
    finally:
        spark.removeProgressHandler(told)  # type: ignore[arg-type]


def _watch(spark: SparkSession, report: TaskReporter, every_s: float, ended: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not ended.wait(every_s):
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        report(sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known))
