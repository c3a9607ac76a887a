"""Spark's classes kept ready on disk, so that the next JVM starts with them: about half the time to a first result.

Java calls it class data sharing. The archive (some 200 MB, in the user's cache) is written by a JVM when it
ends, and a JVM whose version or jars differ does not use it. See docs/decisions/0067.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkContext

from narrowcast.pipeline.java import caches, java_home

WAIT_S = 120.0
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
    yield kept
    kept.finish()


class Keeping:
    """One JVM that is to leave its classes at `target`; nothing to do if there are some already."""

    def __init__(self, target: Path | None) -> None:
        self._target = None if target is None or target.is_file() else target
        self._new = None if self._target is None else self._target.with_suffix(f".{os.getpid()}")

    @property
    def options(self) -> str:
        return "" if self._new is None else f'{_SILENT} "-XX:ArchiveClassesAtExit={self._new}"'

    @property
    def is_due(self) -> bool:
        return self._new is not None

    def finish(self) -> None:
        """End the process's JVM and keep its classes. A JVM that fails at it or hangs leaves nothing."""
        if self._new is None or self._target is None:
            return
        process: Any = getattr(SparkContext._gateway, "proc", None)
        try:
            if process is not None:
                process.stdin.close()
                process.wait(WAIT_S)
                self._new.replace(self._target)
        except (OSError, subprocess.TimeoutExpired):
            if process is not None:
                process.kill()
                process.wait()
        finally:
            self._new.unlink(missing_ok=True)
