"""Spark's classes kept ready on disk: a JVM that starts with them is sooner at its first result.

    python -m narrowcast.data.spark.fast_start

makes the archive once (some 200 MB in the user's cache; Java calls it class data sharing). Sessions for
small inputs then use it; a JVM whose version or jars differ does not. See docs/decisions/0067.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkContext

from narrowcast.data.spark.java import caches, java_home
from narrowcast.errors import InputError

WAIT_S = 600.0
# Java would list every class that cannot be kept, and every reason not to use the archive.
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


def make() -> Path:
    """Measure a small workload in this process and keep the classes that took. The process's JVM ends with it."""
    target = archive(java_home())
    if target is None:
        raise InputError("no cache folder is writable", name="XDG_CACHE_HOME", hint="set it to one of yours")
    if SparkContext._active_spark_context is not None:
        raise InputError("this process has a Spark session already", hint="make the archive in a process of its own")
    target.unlink(missing_ok=True)
    new = target.with_suffix(f".{os.getpid()}")
    try:
        _run(f'{_SILENT} "-XX:ArchiveClassesAtExit={new}"')
        _end_jvm()
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)
    return target


def _run(options: str) -> None:
    """What most commands on Spark do: check tables of two formats, match, and write."""
    from narrowcast import workloads
    from narrowcast.data.spark.session import session
    from narrowcast.data.statistics.measure import MeasureSettings, find_inputs, measure_folder

    spark = session(quick=True, extra={"spark.driver.extraJavaOptions": options})
    with tempfile.TemporaryDirectory() as name:
        for form in ("parquet", "csv"):
            workloads.write("market", Path(name) / form, messages=500, users=20, symbols=50, format=form, seed=1)
            inputs, out = find_inputs(Path(name) / form), Path(name) / f"{form}-out"
            measure_folder(spark, inputs, out, MeasureSettings(key=("symbol",)))
    spark.stop()


def _end_jvm() -> None:
    """Let the JVM write its classes and end; one that hangs is killed."""
    process: Any = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        raise InputError("this process did not start its JVM", hint="make the archive in a process of its own")
    process.stdin.close()
    try:
        process.wait(WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise InputError(f"Java did not write its classes within {WAIT_S:g} s") from None


def main() -> int:
    """Make the archive and say where it is; 1 if that fails."""
    try:
        print(make())
    except (InputError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
