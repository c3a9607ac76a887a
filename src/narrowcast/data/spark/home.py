"""At home in any Spark: a session of ours, a user's own, or one that is reached by Spark Connect.

Nothing of a session that was given is changed. On this machine work is done in a copy of it, which has settings and
views of its own and shares everything else. On clusters, and over Connect, which knows neither contexts nor broadcasts,
the session is used as it is.
"""

from __future__ import annotations

import atexit
import builtins
import hashlib
import pickle
import shutil
import tempfile
import types
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, cast

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

# What jobs are called in Spark's own pages.
NAMED = "narrowcast: "
_DESCRIPTION = "spark.job.description"
_KEPT = "_narrowcast_kept"
# Values that worker processes have unpacked, by their digests: the last few.
_UNPACKED: dict[bytes, Any] = {}
_MOST_UNPACKED = 4
# Sessions over Connect, and applications, whose workers have been sent the package.
_SHIPPED: set[str] = set()


class Shared(Protocol):
    """Something that every worker has; it is looked at through `value`, as Spark's broadcasts are."""

    @property
    def value(self) -> Any: ...


class CarriedValue:
    """A value inside the function that Spark sends to its workers; a worker process unpacks it once."""

    def __init__(self, value: Any) -> None:
        self._packed = pickle.dumps(value, protocol=5)
        self._digest = hashlib.sha256(self._packed).digest()

    @property
    def value(self) -> Any:
        if self._digest not in _UNPACKED:
            while len(_UNPACKED) >= _MOST_UNPACKED:
                del _UNPACKED[next(iter(_UNPACKED))]
            _UNPACKED[self._digest] = pickle.loads(self._packed)
        return _UNPACKED[self._digest]


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is a client of a Spark elsewhere, by Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def is_local(spark: SparkSession) -> bool:
    """Whether all of Spark runs in this process's JVM, and sees the files of this machine."""
    return not is_connect(spark) and str(spark.sparkContext.master).startswith("local")


def has_file_system(spark: SparkSession, url: str) -> bool:
    """Whether a session of this process can read a URL by Hadoop's file systems."""
    inside: Any = spark
    systems = inside._jvm.org.apache.hadoop.fs.FileSystem
    try:
        systems.getFileSystemClass(url.partition("://")[0], inside.sparkContext._jsc.hadoopConfiguration())
    except Exception:  # py4j is no part of a client of Connect, where nobody asks
        return False
    return True


def share(spark: SparkSession, value: Any) -> Shared:
    """Let all workers have a value: by a broadcast, or inside the functions that use it where there are none."""
    if is_connect(spark):
        return CarriedValue(value)
    shared: Shared = spark.sparkContext.broadcast(value)
    return shared


def n_partitions(frame: DataFrame) -> int:
    """Into how many tasks a frame's rows are cut; over Connect a job has to count them."""
    if not is_connect(frame.sparkSession):
        return frame.rdd.getNumPartitions()
    from pyspark.sql import functions as F  # noqa: N812

    found = frame.select(F.spark_partition_id().alias("task")).agg(F.max("task").alias("last")).collect()
    return 1 + (found[0]["last"] or 0)


def map_arrow(frame: DataFrame, work: Callable[[Any], Iterator[Any]], schema: str | StructType) -> DataFrame:
    """`frame.mapInArrow`, also where names of columns have dots in them, which PySpark takes for fields of structs."""
    if not any("." in name for name in frame.columns):
        return frame.mapInArrow(work, schema)
    names = frame.columns

    def renamed(batches: Iterator[Any]) -> Iterator[Any]:
        return work(batch.rename_columns(names) for batch in batches)

    return frame.toDF(*(f"_{place}" for place in range(len(names)))).mapInArrow(renamed, schema)


@contextmanager
def job_named(spark: SparkSession, what: str) -> Iterator[None]:
    """Within the block, jobs of this thread are called so in Spark's pages; over Connect they have it as a tag."""
    text = f"{NAMED}{what}".replace(",", ";")
    if is_connect(spark):
        spark.addTag(text)
        try:
            yield
        finally:
            spark.removeTag(text)
        return
    context = spark.sparkContext
    before = context.getLocalProperty(_DESCRIPTION)
    context.setLocalProperty(_DESCRIPTION, text)
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]


@contextmanager
def with_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """A copy of a session with these settings, for the block; the session itself is as it was, always.

    Over Connect and on clusters it is the session, without the settings: they make small jobs quicker, not other.
    """
    ship(spark)
    if not is_local(spark):
        with _letting_go(spark, spark):
            yield spark
        return
    from pyspark import RDD

    inside: Any = spark._jsparkSession
    active, rdds = SparkSession._activeSession, cast(Any, RDD)
    to_frame = rdds.toDF
    copy = SparkSession(spark.sparkContext, inside.cloneSession())
    rdds.toDF = to_frame  # every new session would have frames of RDDs made in itself
    for name, value in settings.items():
        copy.conf.set(name, value)
    try:
        activate(copy)
        with _letting_go(spark, copy):
            yield copy
    finally:
        activate(spark if active is None or active._sc is not spark._sc else active)
        SparkSession._activeSession = active


def activate(spark: SparkSession) -> None:
    """Make a session the active one of this thread: some of Spark looks for its settings there."""
    if is_connect(spark):
        return
    SparkSession._activeSession = spark
    sessions: Any = SparkSession._get_j_spark_session_class(cast(Any, spark._jvm))
    sessions.setActiveSession(spark._jsparkSession)


@contextmanager
def _letting_go(spark: Any, copy: Any) -> Iterator[None]:
    """Once the outermost block ends, Spark lets go of what was kept within (`keep`)."""
    outer = getattr(spark, _KEPT, None)
    kept = [] if outer is None else outer
    setattr(copy, _KEPT, kept)
    try:
        yield
    finally:
        if outer is None:
            delattr(copy, _KEPT)
            for frame in reversed(kept):
                frame.unpersist()


def keep(frame: DataFrame, level: StorageLevel = StorageLevel.DISK_ONLY) -> DataFrame:
    """A frame that Spark keeps once made, until the work that it is for has ended (`with_settings`)."""
    frame.persist(level)
    getattr(frame.sparkSession, _KEPT, []).append(frame)
    return frame


def ship(spark: SparkSession) -> None:
    """Send the package to workers on other machines, once; they need nothing of it installed."""
    if is_connect(spark):
        place = f"connect {spark.session_id}"  # type: ignore[attr-defined]
    else:
        place = str(spark.sparkContext.applicationId)
        if is_local(spark):
            return
    if place in _SHIPPED:
        return
    if is_connect(spark):
        # Where the server has this very package, its kernels are compiled already.
        if _has_package(spark) != _own_digest():
            spark.addArtifacts(str(package_zip()), pyfile=True)
    else:
        spark.sparkContext.addPyFile(str(package_zip()))
    _SHIPPED.add(place)


def _own_digest() -> str:
    """A digest of the code of this package; "" where there is none. It travels to workers as it stands."""
    import hashlib
    import importlib.util
    from pathlib import Path

    found = importlib.util.find_spec("narrowcast")
    whole = hashlib.sha256()
    for root in (found.submodule_search_locations or []) if found is not None else []:
        for file in sorted(Path(root).rglob("*.py")):
            whole.update(f"{file.relative_to(root)}\n".encode() + file.read_bytes())
    return whole.hexdigest() if found is not None else ""


def _has_package(spark: SparkSession) -> str:
    """The digest of the package that a server's worker has."""
    digest = types.FunctionType(_own_digest.__code__, {"__builtins__": builtins})

    def look(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"digest": [digest()]})

    for function in (digest, look):
        function.__module__ = "__main__"  # sent whole: by name it could only be found where the package is
    with job_named(spark, "looking for the package"):
        return str(spark.range(1).mapInArrow(look, "digest string").collect()[0]["digest"])


def package_zip() -> Path:
    """This package as one file, for executors that do not have it."""
    root = Path(__file__).parents[2]
    folder = Path(tempfile.mkdtemp(prefix="narrowcast-zip-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / "narrowcast.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(root.rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts:
                archive.write(file, Path("narrowcast") / file.relative_to(root))
    return target
