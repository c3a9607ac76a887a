"""The one Spark session of a process, with defaults for small machines."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from narrowcast.data.spark.java import java_home
from narrowcast.errors import InputError, UnsupportedError

try:
    from pyspark.errors import PySparkException
    from pyspark.logger import PySparkLogger
    from pyspark.sql import SparkSession

    from narrowcast.data.spark.home import is_connect, ship
except ImportError as error:
    raise UnsupportedError("measuring on Spark needs PySpark: pip install 'narrowcast[spark]'") from error

DEFAULT_MASTER = "local[*]"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+PerfDisableSharedMem"
QUIET = Path(__file__).with_name("log4j2.properties")


def session(
    master: str = DEFAULT_MASTER,
    *,
    memory: str = "1g",
    ui: bool = False,
    quick: bool = False,
    extra: Mapping[str, str] | None = None,
) -> SparkSession:
    """The process's Spark session, started at the first call (about 8 s).

    `master` is `local[n]`, the address of a cluster, or `sc://host:port` of a Spark Connect server; `memory` is the
    driver's heap, which on `local` is all of Spark's; `quick` suits a command that does little on this machine: Java
    then compiles fast, not well, and workers know no pandas; `extra` are further Spark settings and win over the
    defaults. A session that runs already is returned as it is, also one that somebody else started; asking for
    another master then is an InputError. A program that `spark-submit` runs gets the session as submitted.

        spark = session("local[2]")
        spark.range(3).count()
    """
    running = _running()
    if running is not None:
        return _same(running, master)
    if master.startswith("sc://"):
        return _connected(master, extra or {})
    if "PYSPARK_GATEWAY_PORT" in os.environ and master == DEFAULT_MASTER:
        # spark-submit has started the JVM, and knows the master and all settings.
        return SparkSession.builder.config(map=dict(extra or {})).getOrCreate()
    local = master.startswith("local")
    if not local:
        _reachable(master)
    java = java_home()
    os.environ["JAVA_HOME"] = str(java)
    if local:
        # The workers must be this very Python, not the first python3 on the PATH.
        os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName("narrowcast")
    settings = _defaults(local, memory, ui)
    if quick and local:
        from narrowcast.data.spark import fast_start

        settings["spark.driver.extraJavaOptions"] += f" {QUICK} {fast_start.using(java)}"
        settings["spark.python.daemon.module"] = "narrowcast.data.spark.worker_daemon"
    for key, value in (extra or {}).items():
        # Java's options add up; everything else given wins.
        settings[key] = f"{settings[key]} {value}" if key.endswith("JavaOptions") and key in settings else value
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        with _ending_with_us():
            spark = builder.getOrCreate()
    except (PySparkException, OSError) as error:
        line = str(error).splitlines()[0]
        raise InputError(f"Spark does not start at {master}: {line}", name="master", got=master) from error
    # PySpark's own JSON log repeats on stderr, with pages of Java stack, what the exception says already.
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    ship(spark)
    return spark


@contextmanager
def _ending_with_us() -> Iterator[None]:
    """Java that is still starting when we are stopped would wait for us for ever: it is ended."""
    gateway: Any = import_module("pyspark.java_gateway")
    started: list[subprocess.Popen[bytes]] = []

    def noted(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(*words, **options))
        return started[-1]

    gateway.Popen = noted
    try:
        yield
    except BaseException:
        for process in started:
            process.kill()
            process.wait()
        raise
    finally:
        gateway.Popen = subprocess.Popen


def _running() -> SparkSession | None:
    """The session of this process, if there is one and it was not stopped."""
    try:
        found = SparkSession.active()
    except PySparkException:
        return None
    if is_connect(found):
        return None if found.is_stopped else found  # type: ignore[attr-defined]
    return None if found.sparkContext._jsc.sc().isStopped() else found


def _connected(master: str, extra: Mapping[str, str]) -> SparkSession:
    """A session with a server elsewhere, whose settings are its own."""
    try:
        spark = SparkSession.builder.config(map=dict(extra)).remote(master).getOrCreate()
        spark.version  # noqa: B018  (asks the server)
    except ImportError as error:
        raise UnsupportedError(f"{master} needs Spark Connect: pip install 'narrowcast[connect]'") from error
    except PySparkException as error:
        line = str(error).strip().splitlines()[0]
        raise InputError(f"no Spark Connect at {master}: {line}", name="master", got=master) from error
    return spark


def _same(running: SparkSession, master: str) -> SparkSession:
    has = "sc:// (Spark Connect)" if is_connect(running) else running.sparkContext.master
    if is_connect(running) and master.startswith("sc://"):
        return running
    if master in (has, DEFAULT_MASTER):
        return running
    raise InputError(
        f"this process already has a Spark session at {has}, so none at {master} can start",
        name="master",
        got=master,
        hint="stop it first, or use another process",
    )


def _reachable(master: str) -> None:
    """Say at once that nobody listens: Spark itself tries for a minute, then blames its own state."""
    if not master.startswith("spark://"):
        return
    for address in master.removeprefix("spark://").split(","):
        place = urlsplit(f"spark://{address}")
        try:
            with socket.create_connection((place.hostname or "", place.port or 7077), timeout=10):
                return
        except OSError:
            continue
    raise InputError(f"no Spark master answers at {master}", name="master", got=master)


def _defaults(local: bool, memory: str, ui: bool) -> dict[str, str]:
    scratch = tempfile.mkdtemp(prefix="narrowcast-spark-")
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    options = f'-Xss4m -Duser.timezone=UTC "-Dlog4j2.configurationFile={QUIET.as_uri()}"'
    settings = {
        "spark.driver.memory": memory,
        # -Xss: a long regular expression overflows the default stack of the JVM's threads.
        "spark.driver.extraJavaOptions": options,
        "spark.executor.extraJavaOptions": "-Xss4m -Duser.timezone=UTC",
        "spark.ui.enabled": str(ui).lower(),
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Noting the line of Python of every column costs more calls to the JVM than the columns do.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        # Adding a batch to the sums costs as much as the sums are long: few large batches.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.driver.maxResultSize": "0",
        # Java's streams hold on to all they wrote until they are reset: at the default of 100, up to 400 MB of what
        # is put aside on disk.
        "spark.serializer.objectStreamReset": "10",
        # Matching is the work, not reading: a file of a few megabytes is worth more than one task.
        "spark.sql.files.openCostInBytes": "262144",
        # A streaming query that does not stop says so, where it would wait for ever.
        "spark.sql.streaming.stopTimeout": "120s",
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
        "spark.sql.shuffle.partitions": str(max(2, 2 * (os.cpu_count() or 1))),
    }
    if local:
        settings |= {
            "spark.local.dir": f"{scratch}/local",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
    return settings
