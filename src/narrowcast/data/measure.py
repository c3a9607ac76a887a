"""`nc.measure`: from messages and subscriptions to the demand that plans are made for."""

from __future__ import annotations

import logging
import shutil
import tempfile
import uuid
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from narrowcast.data.ingest.key import check_key, check_known, chosen_key
from narrowcast.data.ingest.types import attribute_types
from narrowcast.errors import InputError
from narrowcast.model.demand import Demand
from narrowcast.model.intake import read_measured
from narrowcast.model.quarantine import Quarantine
from narrowcast.model.stores import as_url, copy_of, destination, is_url, reachable
from narrowcast.model.tables import as_table, local_path

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from narrowcast.data.statistics.measure import MeasureSettings

log = logging.getLogger(__name__)
# Rows of a table that the driver looks through by itself.
FEW = 200_000


def measure(
    messages: Any,
    subscriptions: Any,
    key: str | Sequence[str] | None = None,
    *,
    tree: Any = None,
    out: str | Path | None = None,
    spark: SparkSession | None = None,
    half_life_s: float | None = None,
    window_s: float | None = None,
    overlap: bool = True,
    types: Mapping[str, str] | None = None,
    strict: bool = False,
    overwrite: bool = False,
) -> Demand:
    """Match messages with subscriptions on Spark: who wants which flow, and how fast each flows.

    Parameters
    ----------
    messages : a path (Parquet, CSV, JSON lines, a folder of them), a pyarrow.Table, a pandas or a Spark DataFrame, or
        the name of a table that the session knows, such as "db.messages"
    subscriptions : the same, with the columns subscriber and profile
    key : the attribute, or attributes, of a message that make its flow. None takes what the `manifest.json` beside
        the messages says; without one, and for (), flows are content classes: messages that the same profiles match
    tree : the multicast tree for a filters plan (node, parent); subscriptions then say the node each is at
    out : the folder to write, also as a URL (`s3://bucket/measured`; s3a, gs, hdfs, file); None measures into a
        temporary one that lives as long as the demand
    spark : the session to work in, also one of Spark Connect; none of its settings is changed. None takes that of a
        Spark DataFrame, or the one of this process, which starts in some seconds and stays for the next call
    half_life_s, window_s : how selectivity and overlap weigh messages by age: half after so many seconds, none past
    overlap : count the pairs of profiles that match the same messages
    types : types of attributes in text files, such as {"symbol": "string"}: bigint, double, string, boolean,
        timestamp, date, or other usual names of these
    strict : stop at the first bad row; otherwise bad rows go to the table `quarantine` of the folder
    overwrite : replace an earlier result in `out`

    Returns
    -------
    Demand : with its `key`, the `folder` of all measured tables, and fingerprints of them in `inputs`

    Raises
    ------
    InputError : a key that is no column of the messages, a table that cannot be read, an `out` that is there already

    Example
    -------
        demand = nc.measure("messages.parquet", "subscriptions.parquet", key="symbol")
        plan = nc.plan(demand, groups=50, sessions=500)

        demand = nc.measure("messages.parquet", "subscriptions.parquet", tree="tree.parquet")
        plan = nc.plan(demand, "filters", k=15)
    """
    if out is not None and is_url(out):
        # Measured here, into a folder that lives as long as the demand, and put there when all is done.
        with destination(out, overwrite=overwrite) as (half, _):
            demand = measure(
                messages,
                subscriptions,
                key,
                tree=tree,
                spark=spark,
                half_life_s=half_life_s,
                window_s=window_s,
                overlap=overlap,
                types=types,
                strict=strict,
            )
            shutil.copytree(str(demand.folder), half)
        return demand
    place = None if out is None else local_path(out, "out")
    chosen_types = attribute_types(types or {})
    given = {
        "messages": _usable(messages, "messages"),
        "subscriptions": _usable(subscriptions, "subscriptions", ("subscriber", "profile")),
    }
    if tree is not None:
        given["tree"] = _usable(tree, "tree", ("node", "parent"))
    chosen = _chosen(given["messages"], (key,) if isinstance(key, str) else key)
    if isinstance(messages, str | Path):
        check_known(chosen_types, messages, "types")
    from narrowcast.data.spark.session import session
    from narrowcast.data.statistics.match import Decay
    from narrowcast.data.statistics.measure import MeasureSettings

    decay = Decay(half_life_s, window_s)
    settings = MeasureSettings(key=chosen, decay=decay, overlap=overlap, types=chosen_types, strict=strict)
    running = spark or next((table.sparkSession for table in given.values() if _is_spark(table)), None) or session()
    if place is not None:
        return _measured(running, given, place, settings, overwrite)
    folder = Path(tempfile.mkdtemp(prefix="narrowcast-measured-"))
    try:
        demand = _measured(running, given, folder / "measured", settings, overwrite)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(demand, shutil.rmtree, folder, ignore_errors=True)
    return demand


def _usable(table: Any, name: str, columns: Sequence[str] = ()) -> Any:
    """A path, a name or a Spark DataFrame as it is, anything else as an Arrow table."""
    if isinstance(table, str | Path) and str(table).startswith("file:"):
        return local_path(table, name)
    return table if isinstance(table, str | Path) or _is_spark(table) else as_table(table, name=name, columns=columns)


def _chosen(messages: Any, asked: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(messages, str | Path):
        return chosen_key(asked, messages)
    key = tuple(asked or ())
    if not _is_spark(messages):
        check_key(key, messages.column_names)
        return key
    from narrowcast.data.ingest.kafka import is_topic
    from narrowcast.data.ingest.nested import leaves

    if not is_topic(messages):  # what is inside its records is not known yet
        check_key(key, list(leaves(messages.schema)))
    return key


def _measured(
    spark: SparkSession, given: Mapping[str, Any], out: Path, settings: MeasureSettings, overwrite: bool
) -> Demand:
    from narrowcast.data.ingest.here import clean_tables
    from narrowcast.data.statistics.measure import measure_folder

    with _sources(spark, given) as (sources, here):
        copied = {name: as_url(table) for name, table in given.items() if isinstance(table, str | Path)}
        origins = {str(sources[name]): url for name, url in copied.items() if sources[name] != given[name]}
        clean = clean_tables(here)
        made = measure_folder(spark, sources, out, settings, overwrite=overwrite, clean=clean, origins=origins)
    for line in made.remarks:
        log.warning(line)
    return read_measured(out, Quarantine())


@contextmanager
def _sources(
    spark: SparkSession, given: Mapping[str, Any]
) -> Iterator[tuple[dict[str, str | Path], dict[str, str | Path]]]:
    """What Spark can read, and what can be read here, while the block runs.

    Spark has paths as they are, frames as views and the rest as Parquet files; workers on other machines see no file
    of this one, so there the rest are views as well. Frames of few rows, but for messages, are files here too.
    """
    import pyarrow.parquet as pq

    from narrowcast.data.spark.home import is_local, job_named
    from narrowcast.data.spark.sizing import ViewName

    with ExitStack() as until, tempfile.TemporaryDirectory(prefix="narrowcast-inputs-") as folder:
        sources: dict[str, str | Path] = {}
        here: dict[str, str | Path] = {}
        for name, table in given.items():
            if isinstance(table, str | Path) and _must_fetch(spark, table):
                sources[name] = copy_of(str(table), Path(folder) / name, name)
            elif isinstance(table, str | Path):
                sources[name] = table
            elif _is_spark(table) or not is_local(spark):
                table = table if _is_spark(table) else spark.createDataFrame(_in_us(table))
                view = ViewName.of(f"narrowcast_{name}_{uuid.uuid4().hex}", table)
                table.createTempView(view)
                until.callback(table.sparkSession.catalog.dropTempView, view)
                sources[name] = here[name] = view
                if name != "messages":
                    with job_named(spark, f"taking in {name}"):
                        few = table.limit(FEW + 1).toArrow()
                    if few.num_rows <= FEW:
                        view.size_bytes = few.nbytes
                        here[name] = Path(folder) / f"{name}.parquet"
                        pq.write_table(few.replace_schema_metadata(None), here[name])
            else:
                sources[name] = Path(folder) / f"{name}.parquet"
                pq.write_table(_in_us(table), sources[name])
        yield sources, {**sources, **here}


def _must_fetch(spark: SparkSession, table: str | Path) -> bool:
    """Whether a table is on a file system that Arrow has, and Spark, which runs on this machine, has not."""
    from narrowcast.data.spark.home import has_file_system, is_local

    return is_url(table) and is_local(spark) and reachable(table) and not has_file_system(spark, as_url(table))


def _in_us(table: pa.Table) -> pa.Table:
    """Spark knows no nanoseconds."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            kind = pa.timestamp("us", field.type.tz)
            table = table.set_column(place, pa.field(field.name, kind), table[field.name].cast(kind, safe=False))
    return table


def frame(demand: Demand, name: str, spark: SparkSession | None = None) -> DataFrame:
    """One of the tables that `measure` has made, as a Spark DataFrame.

    Parameters
    ----------
    demand : what `measure` returned
    name : the table: flows, interest, audiences, profiles, selectivity, overlap, quarantine, …
    spark : the session to have it in, also one of Spark Connect; None takes the one of this process

    Returns
    -------
    DataFrame : its rows, which the driver hands to Spark: also where workers do not see the demand's folder

    Raises
    ------
    InputError : a demand that was not measured, or a table that it does not have

    Example
    -------
        demand = nc.measure(messages_df, subscriptions_df, key="symbol")
        nc.frame(demand, "interest").groupBy("subscriber").count().show()
    """
    import pyarrow.parquet as pq

    if demand.folder is None:
        raise InputError("demand must be one that measure has made, got one without a folder", name="demand")
    there = sorted(path.stem for path in demand.folder.glob("*.parquet"))
    if name not in there:
        message = f"name must be one of {', '.join(there)}, got {name!r}"
        raise InputError(message, name="name", allowed=tuple(there), got=name)
    from narrowcast.data.spark.session import session

    table = pq.read_table(demand.folder / f"{name}.parquet").replace_schema_metadata(None)
    return (spark or session()).createDataFrame(table)


def _is_spark(table: Any) -> bool:
    return type(table).__module__.startswith("pyspark.") and hasattr(table, "createTempView")
