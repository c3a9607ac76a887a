"""Spark's classes kept ready on disk, so that the next JVM starts with them: about half the time to a first result.

Java calls it class data sharing. The archive (some 200 MB, in the user's cache) is written by a JVM when it
ends, and a JVM whose version or jars differ does not use it. See docs/decisions/0067.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkContext

from narrowcast.pipeline.java import caches, java_home

WAIT_S = 120.0
STALE_S = 3600.0
# Java would list every class that cannot be kept.
_SILENT = "-Xlog:disable"


def archive(java: Path) -> Path | None:
    """Where the classes for this Java and Spark are or would be; None if no folder can be written."""
    spark = str(Path(pyspark.__file__).parent)
    name = hashlib.sha256("\n".join((str(java), pyspark.__version__, spark)).encode()).hexdigest()[:12]
    for folder in caches():
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder / f"spark-{name}.jsa"
    return None


def using(java: Path) -> str:
    """Options for a JVM that starts with the kept classes, if there are any."""
    kept = archive(java)
    return f'{_SILENT} "-XX:SharedArchiveFile={kept}"' if kept is not None and kept.is_file() else ""


@contextmanager
def keeping(wanted: bool) -> Iterator[Keeping]:
    """A JVM started within the block is to leave its classes behind, unless there are some already.

    At the end of a block without an error the JVM is ended, which takes some seconds more this once.
    """
    running = SparkContext._active_spark_context is not None
    kept = Keeping(archive(java_home()) if wanted and not running else None)
    try:
        yield kept
    except BaseException:
        kept.give_up()
        raise
    kept.finish()


class Keeping:
    """One JVM that is to leave its classes at `target`; nothing to do if there are some already."""

    def __init__(self, target: Path | None) -> None:
        self._target = None if target is None or target.is_file() else target
        if self._target is not None:
            _tidy(self._target)
        self._new = None if self._target is None else self._target.with_suffix(f".{os.getpid()}")

    @property
    def options(self) -> str:
        return "" if self._new is None else f'{_SILENT} "-XX:ArchiveClassesAtExit={self._new}"'

    @property
    def is_due(self) -> bool:
        return self._new is not None

    def finish(self) -> None:
        """End the process's JVM and keep its classes. A JVM that fails at it or hangs leaves nothing."""
        process = _jvm()
        if self._new is None or self._target is None or process is None:
            return
        try:
            process.stdin.close()
            process.wait(WAIT_S)
            self._new.replace(self._target)
        except (OSError, subprocess.TimeoutExpired):
            self.give_up()

    def give_up(self) -> None:
        """End the JVM without its classes, which it would otherwise leave after this process."""
        process = _jvm()
        if self._new is None or process is None:
            return
        process.kill()
        process.wait()
        self._new.unlink(missing_ok=True)


def _jvm() -> Any:
    """The process of this process's JVM, None if there is none."""
    return getattr(SparkContext._gateway, "proc", None)


def _tidy(target: Path) -> None:
    """Remove what JVMs left whose process was killed; one that still writes is younger."""
    for left in target.parent.glob(f"{target.stem}.*"):
        if left.suffix != target.suffix:
            with suppress(OSError):
                if left.stat().st_mtime < time.time() - STALE_S:
                    left.unlink()
