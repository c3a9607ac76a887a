"""From input tables to everything planning needs, in one folder."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from narrowcast.data.ingest.find import check_enough, find_inputs
from narrowcast.data.ingest.fit import absent_in, absent_line, short
from narrowcast.data.ingest.key import check_key, check_names
from narrowcast.data.ingest.misfits import without_misfits
from narrowcast.data.ingest.read import FILE, ROW
from narrowcast.data.ingest.take_in import Ingested, ingest_all, nothing_quarantined, quarantined
from narrowcast.data.spark.output import PIECE, Output, TableStep, write_manifest, writing
from narrowcast.data.spark.progress import TaskReporter, watched
from narrowcast.data.spark.sizing import at_once, sized
from narrowcast.data.statistics import definitions
from narrowcast.data.statistics import tables as statistics
from narrowcast.data.statistics.match import Decay, partials
from narrowcast.data.statistics.partials import OVERLAP, PAIR
from narrowcast.data.statistics.query_sizes import grid, query_sizes
from narrowcast.data.statistics.remarks import emptiness, remarks
from narrowcast.data.statistics.tree_demand import tree_demand
from narrowcast.errors import InputError
from narrowcast.model import Tree
from narrowcast.model.tables import key_metadata, local_path
from narrowcast.version import __version__

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MeasureSettings", "Measured", "find_inputs", "measure_folder"]
QUARANTINE_KEY = ("table", "file", "row")


@dataclass(frozen=True)
class Measured:
    """A folder of measured tables: how many rows went in and were set aside, and what each step took.

    `remarks` are lines for a person: columns that profiles name and messages lack, profiles that matched nothing,
    and why a result is empty.
    """

    folder: Path
    rows_in: Mapping[str, int]
    set_aside: Mapping[str, int]
    steps: tuple[TableStep, ...]
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class MeasureSettings:
    """What to measure. `key` names the attributes that make a flow; without any, flows are content classes.

    Selectivity and overlap weigh messages by `decay`; `overlap=False` leaves out the pairs of
    profiles, whose number grows with the square of the matches per message. `seconds` is the time the
    log covers, by default from its first to its last timestamp. The grid has `grid_cells` steps along
    each of `grid_attributes`, by default those of the queries.
    """

    key: tuple[str, ...] = ()
    decay: Decay = field(default_factory=Decay)
    overlap: bool = True
    seconds: float | None = None
    grid_attributes: tuple[str, ...] | None = None
    grid_cells: int = 32
    types: Mapping[str, str] | None = None
    strict: bool = False
    partitions: int | None = None


def measure_folder(
    spark: SparkSession,
    inputs: Mapping[str, str | Path],
    out: str | Path,
    settings: MeasureSettings | None = None,
    *,
    overwrite: bool = False,
    explain: Callable[[TableStep], None] | None = None,
    progress: TaskReporter | None = None,
) -> Measured:
    """Take in the tables, measure, and write Parquet tables with a manifest into the folder `out`.

    With messages and subscriptions: profiles, profile_rates, selectivity, overlap, flows,
    flow_profile, interest, audiences, flow_audience (and classes). With interest and flows instead:
    audiences. With tree and demand: tree_demand. With queries and messages: query_sizes and grid.
    Always: quarantine. `explain` is told each table's rows and seconds as it is done. The manifest and the
    metadata of flows say the key.

    The folder is complete or not there. The same inputs give the same tables, byte for byte, for any
    number of partitions and workers; only the manifest's times differ.
    """
    settings = settings or MeasureSettings()
    check_enough(inputs)
    out = local_path(out, "out")
    _refuse_inputs(inputs.values(), out)
    whole = writing(out, overwrite=overwrite, explain=explain)
    with watched(spark, progress), sized(spark, inputs.values()), whole as output:
        taken = without_misfits(_take_in(spark, inputs, settings, output), settings.strict)
        bad = any(table.n_quarantined for table in taken.values())
        output.write("quarantine", quarantined(taken, spark) if bad else nothing_quarantined(), QUARANTINE_KEY)
        with at_once(inputs.values()) as pool:
            about = _measure(spark, taken, settings, output, pool)
        said = tuple(about.get("remarks", ()))
        counts = {
            name: {"rows_in": t.n_in, "accepted": t.n_accepted, "quarantined": dict(t.n_bad), "types": dict(t.types)}
            for name, t in taken.items()
        }
        write_manifest(output, {"narrowcast": __version__, "key": settings.key, "inputs": counts, **about})
        steps = tuple(output.steps)
    counted = {n: t.n_in for n, t in taken.items()}, {n: t.n_quarantined for n, t in taken.items()}
    return Measured(out, *counted, steps, said)


def _refuse_inputs(sources: Iterable[str | Path], out: Path) -> None:
    """A workload's folder has a manifest as results have: it must not be taken for an earlier result."""
    for source in sources:
        if out.absolute() in Path(source).absolute().parents:
            raise InputError(f"out must not be the folder of the inputs, got {out}", name="out", got=str(out))


def _take_in(
    spark: SparkSession, inputs: Mapping[str, str | Path], settings: MeasureSettings, output: Output
) -> dict[str, Ingested]:
    def done(table: Ingested, seconds: float) -> None:
        output.note(f"{table.name} (accepted)", table.n_accepted, seconds)

    named = {*settings.key, *(settings.grid_attributes or ())}
    return ingest_all(spark, inputs, types=settings.types, strict=settings.strict, named=named, done=done)


def _measure(
    spark: SparkSession,
    taken: Mapping[str, Ingested],
    settings: MeasureSettings,
    output: Output,
    pool: ThreadPoolExecutor,
) -> dict[str, Any]:
    about: dict[str, Any] = {"remarks": []}
    messages = taken["messages"].rows if "messages" in taken else None
    if messages is not None and settings.partitions is not None:
        messages = messages.repartition(settings.partitions)
    if messages is not None and "subscriptions" in taken:
        about |= _from_messages(spark, messages, taken, settings, output, pool)
    elif "interest" in taken and "flows" in taken:
        _audiences(taken["interest"].rows, taken["flows"].rows, output)
    if "tree" in taken and "demand" in taken:
        _tree_demand(taken["tree"].rows, taken["demand"].rows, output)
    if messages is not None and "queries" in taken:
        about["remarks"] += _query_sizes(messages, taken, settings, output)
    return about


def _from_messages(
    spark: SparkSession,
    messages: DataFrame,
    taken: Mapping[str, Ingested],
    settings: MeasureSettings,
    output: Output,
    pool: ThreadPoolExecutor,
) -> dict[str, Any]:
    from narrowcast.profiles import Matcher, Profile

    log, subscriptions, times = taken["messages"], taken["subscriptions"].rows, taken["messages"].times_us
    check_key(settings.key, log.columns)
    start = time.perf_counter()
    profiles = _profiles(taken["subscriptions"])
    parsed = [Profile.parse(text) for text in profiles["text"].to_pylist()]
    matcher = Matcher(parsed)
    output.note("matcher", matcher.n_profiles, time.perf_counter() - start)
    output.write("profiles", profiles, ("profile",))
    numbered = spark.createDataFrame(profiles.select(["profile", "text"]))
    held = subscriptions.select("subscriber", F.col("profile").alias("text")).join(numbered, "text")
    # Each once: profile and subscriber are the key of subscriptions.
    holders = held.select("profile", "subscriber")
    newest = None if times is None else times[1]
    seconds = settings.seconds if settings.seconds is not None or times is None else (times[1] - times[0]) / 1e6
    sums = partials(
        messages,
        matcher,
        key=settings.key or None,
        classes=not settings.key,
        overlap=settings.overlap,
        decay=settings.decay,
        newest_us=newest,
    ).persist(StorageLevel.DISK_ONLY)
    try:
        start = time.perf_counter()
        over = statistics.totals(sums, seconds or None)
        output.note("partials", over.n_partials, time.perf_counter() - start)
        _write_statistics(sums, holders, over, settings, output, pool)
    finally:
        sums.unpersist()
    absent = sorted(set(matcher.attributes) - set(log.columns))
    counts, _, _ = over.of_profiles(matcher.n_profiles)
    empty = emptiness(log.n_accepted, log.n_quarantined, int(counts.sum()))
    said = [*([empty] if empty else ()), *remarks(parsed, counts, log.columns, output.folder / "holders.parquet")]
    about = {"messages": over.messages, "log_seconds": over.seconds, "newest_us": newest}
    return {**about, "attributes_absent": absent, "remarks": said}


def _profiles(taken: Ingested) -> pa.Table:
    """Table `profiles`: profile, text, n_subscribers; numbered in the order of their texts."""
    import pyarrow as pa

    found = taken.rows.groupBy(F.col("profile").alias("text")).agg(F.count("*").alias("n_subscribers")).toArrow()
    if not found.num_rows:
        raise _none_left(taken)
    # As Python sorts them, by code points.
    texts, counts = zip(
        *sorted(zip(*(found[c].to_pylist() for c in ("text", "n_subscribers")), strict=True)), strict=True
    )
    count = pa.field("n_subscribers", pa.int64(), nullable=False)
    schema = pa.schema([("profile", pa.int64()), ("text", pa.string()), count])
    return pa.table([range(len(texts)), texts, counts], schema=schema)


def _none_left(taken: Ingested) -> InputError:
    """No row of a table of profiles can be used: what is wrong with the first."""
    first = taken.quarantine.orderBy("file", "row").limit(1).collect()
    why = f"row {first[0]['row']} of {taken.n_in:,}: {first[0]['reason']}" if first else None
    return InputError(f"{taken.name} must have at least one valid row, got none", name=taken.name, hint=why)


def _write_statistics(
    sums: DataFrame,
    holders: DataFrame,
    over: statistics.Totals,
    settings: MeasureSettings,
    output: Output,
    pool: ThreadPoolExecutor,
) -> None:
    """Every table from the sums: small ones side by side, see `at_once`."""
    messages, units, weight = over.of_profiles(output.rows_of("profiles"))
    output.write("profile_rates", definitions.profile_rates(messages, units, over.seconds), ("profile",))
    output.write("selectivity", definitions.selectivity(weight, over.weight), ("profile",))
    classes = statistics.classes(sums).persist(StorageLevel.DISK_ONLY) if not settings.key else None
    flows = statistics.flows(sums, over, classes)
    pairs = statistics.flow_profile(sums, classes)
    interest = statistics.interest(pairs, holders).persist(StorageLevel.DISK_ONLY)
    of_flow = statistics.audience_of_flow(interest).persist(StorageLevel.DISK_ONLY)
    tables: list[Made] = [
        ("interest", interest, ("flow", "subscriber")),
        ("flow_audience", of_flow.select("flow", "audience"), ("flow",)),
        ("audiences", statistics.audiences(of_flow, flows), ("audience",)),
        ("holders", holders, ("profile", "subscriber")),
        ("flows", flows, ("flow",)),
        ("flow_profile", pairs, ("flow", "profile")),
    ]
    says = {"flows": key_metadata(settings.key)}
    if settings.overlap:
        tables.append(("overlap", statistics.overlap(sums, over), ("profile", "other")))
    large = {name for name, kind in PACKED.items() if over.most_rows.get(kind, 0) > PIECE}
    if classes is not None:
        tables.append(("classes", classes.select("flow", "profiles"), ("flow",)))
    try:
        _write_all(tables, output, pool, large, says)
    finally:
        for kept in (of_flow, interest, classes):
            if kept is not None:
                kept.unpersist()


Made = tuple[str, DataFrame, tuple[str, ...]]
# Tables made by Python's workers from packed sums, and the kind of these.
PACKED = {"flow_profile": PAIR, "overlap": OVERLAP}


def _write_all(
    tables: Sequence[Made],
    output: Output,
    pool: ThreadPoolExecutor,
    large: Collection[str],
    says: Mapping[str, Mapping[str, str]],
) -> None:
    def write(name: str, rows: DataFrame, order: tuple[str, ...]) -> None:
        output.write(name, rows, order, large=name in large, metadata=says.get(name))

    for written in [pool.submit(write, *table) for table in tables]:
        written.result()


def _audiences(interest: DataFrame, flows: DataFrame, output: Output) -> None:
    of_flow = statistics.audience_of_flow(interest).persist(StorageLevel.DISK_ONLY)
    output.write("flow_audience", of_flow.select("flow", "audience"), ("flow",))
    output.write("audiences", statistics.audiences(of_flow, flows), ("audience",))
    of_flow.unpersist()


def _tree_demand(tree: DataFrame, demand: DataFrame, output: Output) -> None:
    rows = tree.orderBy(FILE, ROW).select("node", "parent").collect()
    names = {row["node"]: i for i, row in enumerate(rows)}
    parents = [names[row["parent"]] if row["parent"] and row["parent"].strip() else -1 for row in rows]
    output.write("tree_demand", tree_demand(demand, Tree(parents), names), ("node",))


def _query_sizes(
    messages: DataFrame, taken: Mapping[str, Ingested], settings: MeasureSettings, output: Output
) -> list[str]:
    """Write how much each query asks for; lines on columns that queries name and messages lack."""
    from narrowcast.profiles import Matcher, Profile

    queries, columns = taken["queries"].rows, taken["messages"].columns
    texts = sorted({row["profile"] for row in queries.select("profile").distinct().collect()})
    if not texts:
        raise _none_left(taken["queries"])
    profiles = [Profile.parse(text) for text in texts]
    numbered = queries.sparkSession.createDataFrame(list(enumerate(texts)), "number bigint, profile string")
    named = queries.join(numbered, "profile").select("query", "client", F.col("number").alias("profile"))
    output.write("query_sizes", query_sizes(messages, named, Matcher(profiles)), ("query", "client"))
    check_names(settings.grid_attributes or (), columns, "grid")
    along = settings.grid_attributes or tuple(
        sorted({name for profile in profiles for name in profile.attributes} & set(columns))
    )
    if along:
        cells = grid(messages, along, cells=settings.grid_cells)
        output.write("grid", cells, tuple(f"{a}_cell" for a in along))
    absent = absent_in(profiles, columns)
    return [absent_line(n, len(at), [short(profiles[i]) for i in at], columns) for n, at in absent.items()]
