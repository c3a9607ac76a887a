"""Spark's classes kept ready on disk: a JVM that starts with them is sooner at its first result.

    python -m narrowcast.data.spark.fast_start

makes the archive once (some 200 MB in the user's cache; Java calls it class data sharing). `make setup` does it; else
the first command on small inputs has it made after its end, in the background at the lowest priority. Sessions
for small inputs use it; a JVM whose version or jars differ does not. See docs/decisions/0067 and 0146.
"""

from __future__ import annotations

import atexit
import hashlib
import logging
import os
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyspark
from pyspark import SparkContext

from narrowcast.data.spark.java import caches, java_home
from narrowcast.errors import InputError

log = logging.getLogger(__name__)

WAIT_S, AGAIN_S = 600.0, 3600.0
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
    """Options for a JVM that starts with the kept classes; if there are none yet, they are made after this process."""
    kept = archive(java)
    if kept is None:
        return ""
    if kept.is_file():
        return f'{_SILENT} "-XX:SharedArchiveFile={kept}"'
    atexit.register(make_later, kept)
    return ""


def make_later(target: Path) -> subprocess.Popen[bytes] | None:
    """Start a process of its own that makes the archive, unless one was started within the hour; it outlives us."""
    begun = target.with_suffix(".begun")
    with suppress(OSError):
        if target.is_file():
            return None
        if begun.is_file() and time.time() - begun.stat().st_mtime > AGAIN_S:
            begun.unlink(missing_ok=True)
        begun.touch(exist_ok=False)  # of several commands that end at once, one goes on
        log.info("keeping Spark's classes for the next start, in the background")
        command = ["nice", "-n", "19", sys.executable, "-m", "narrowcast.data.spark.fast_start"]
        silent: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        return subprocess.Popen(command, start_new_session=True, cwd=target.parent, **silent)
    return None


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
        if (jvm := _jvm()) is not None:  # something failed: it would still write
            jvm.kill()
            jvm.wait()
        new.unlink(missing_ok=True)
    return target


def _run(options: str) -> None:
    """What most commands on Spark do: check tables of two formats, match, and write."""
    from narrowcast import workloads
    from narrowcast.data.spark import fast_start  # run as a program, this module is another one
    from narrowcast.data.spark.session import session
    from narrowcast.data.statistics.measure import MeasureSettings, find_inputs, measure_folder

    spark = session(quick=True, extra={"spark.driver.extraJavaOptions": options})
    atexit.unregister(fast_start.make_later)
    with tempfile.TemporaryDirectory() as name:
        for form in ("parquet", "csv"):  # the second with bad rows, which more of Spark has to do with
            bad = 0.02 if form == "csv" else 0.0
            size: Any = {"messages": 500, "users": 20, "symbols": 50, "bad_rows": bad, "seed": 1}
            workloads.write("market", Path(name) / form, format=form, **size)
            inputs, out = find_inputs(Path(name) / form), Path(name) / f"{form}-out"
            measure_folder(spark, inputs, out, MeasureSettings(key=("symbol",)))
    spark.stop()


def _jvm() -> Any:
    """The JVM that this process started, while it runs."""
    process = getattr(SparkContext._gateway, "proc", None)
    return process if process is not None and process.poll() is None else None


def _end_jvm() -> None:
    """Let the JVM write its classes and end; one that hangs is killed."""
    process = _jvm()
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
