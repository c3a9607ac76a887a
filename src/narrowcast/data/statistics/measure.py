"""From input tables to everything planning needs, in one folder."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
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
from narrowcast.data.ingest.read import BROKEN, FILE, ROW
from narrowcast.data.ingest.take_in import RAW, Checked, Ingested, ingest_all, nothing_quarantined, quarantined
from narrowcast.data.ingest.verdicts import REASON
from narrowcast.data.spark.home import job_named, keep
from narrowcast.data.spark.output import Output, TableStep, write_manifest, writing
from narrowcast.data.spark.progress import TaskReporter, watched
from narrowcast.data.spark.sizing import are_small, at_once, sized
from narrowcast.data.statistics import tables as statistics
from narrowcast.data.statistics.gather import gathered, room, totals_of
from narrowcast.data.statistics.match import Decay, partials
from narrowcast.data.statistics.query_sizes import grid, query_sizes
from narrowcast.data.statistics.remarks import emptiness, keyless, remarks
from narrowcast.data.statistics.tree_demand import tree_demand, wanted_classes
from narrowcast.data.statistics.write import Held, write_statistics
from narrowcast.errors import InputError
from narrowcast.model.tables import local_path
from narrowcast.version import __version__

if TYPE_CHECKING:
    from narrowcast.data.ingest.here import CleanTable

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
    clean: Mapping[str, CleanTable] | None = None,
    origins: Mapping[str, str] | None = None,
) -> Measured:
    """Take in the tables, measure, and write Parquet tables with a manifest into the folder `out`.

    With messages and subscriptions: profiles, profile_rates, selectivity, overlap, flows,
    flow_profile, interest, audiences, flow_audience (and classes). With interest and flows instead:
    audiences. With a tree, and a demand or messages and subscriptions that have a node: tree_demand. With queries and
    messages: query_sizes and grid. Always: quarantine. `explain` is told each table's rows and seconds as it is done.
    The manifest and the metadata of flows say the key. `clean` are tables that were taken in before (`clean_tables`).
    `origins` says of places that hold copies whence they came: the quarantine then names files there.

    The folder is complete or not there. The same inputs give the same tables, byte for byte, for any
    number of partitions and workers; only the manifest's times differ.
    """
    settings = settings or MeasureSettings()
    check_enough(inputs)
    out = local_path(out, "out")
    _refuse_inputs(inputs.values(), out)
    whole = writing(out, overwrite=overwrite, explain=explain)
    with watched(spark, progress), sized(spark, inputs.values()) as own, job_named(own, "measuring"), whole as output:
        taken, log = _take_in(own, inputs, settings, output, clean)
        taken = without_misfits(taken, log, settings.strict)
        with at_once(own, inputs.values()) as pool:
            about = _measure(own, taken, log, settings, output, pool, are_small(inputs.values()))
        bad = any(table.n_quarantined for table in taken.values())
        aside = _whence(quarantined(taken, own), origins or {}) if bad else nothing_quarantined()
        output.write("quarantine", aside, QUARANTINE_KEY)
        said = tuple(about.get("remarks", ()))
        counts = {
            name: {"rows_in": t.n_in, "accepted": t.n_accepted, "quarantined": dict(t.n_bad), "types": dict(t.types)}
            for name, t in taken.items()
        }
        write_manifest(output, {"narrowcast": __version__, "key": settings.key, "inputs": counts, **about})
        steps = tuple(output.steps)
    counted = {n: t.n_in for n, t in taken.items()}, {n: t.n_quarantined for n, t in taken.items()}
    return Measured(out, *counted, steps, said)


def _whence(aside: DataFrame, origins: Mapping[str, str]) -> DataFrame:
    for place, origin in origins.items():
        begins = f"^file:/+{re.escape(place.lstrip('/'))}"
        aside = aside.withColumn("file", F.regexp_replace("file", begins, origin.replace("$", "\\$")))
    return aside


def _refuse_inputs(sources: Iterable[str | Path], out: Path) -> None:
    """A workload's folder has a manifest as results have: it must not be taken for an earlier result."""
    for source in sources:
        if out.absolute() in Path(source).absolute().parents:
            raise InputError(f"out must not be the folder of the inputs, got {out}", name="out", got=str(out))


def _take_in(
    spark: SparkSession,
    inputs: Mapping[str, str | Path],
    settings: MeasureSettings,
    output: Output,
    clean: Mapping[str, CleanTable] | None,
) -> tuple[dict[str, Ingested], Checked | None]:
    def done(table: Ingested, seconds: float) -> None:
        output.note(f"{table.name} (accepted)", table.n_accepted, seconds)

    named = {*settings.key, *(settings.grid_attributes or ())}
    return ingest_all(spark, inputs, types=settings.types, strict=settings.strict, named=named, clean=clean, done=done)


def _measure(
    spark: SparkSession,
    taken: dict[str, Ingested],
    log: Checked | None,
    settings: MeasureSettings,
    output: Output,
    pool: ThreadPoolExecutor,
    small: bool,
) -> dict[str, Any]:
    """Everything that the tables suffice for; `taken` has the messages too, when they are counted."""
    about: dict[str, Any] = {"remarks": []}
    if log is not None and "subscriptions" in taken:
        about |= _from_messages(spark, log, taken, settings, output, pool, small)
    elif "interest" in taken and "flows" in taken:
        _audiences(taken["interest"].rows, taken["flows"].rows, output)
    if log is not None and "messages" not in taken:
        taken["messages"] = _counted(log, settings, output)
    if "tree" in taken and "demand" in taken and not _has_places(taken, log):
        output.write("tree_demand", tree_demand(taken["demand"].rows, taken["tree"].rows), ("node",))
    if log is not None and "queries" in taken:
        about["remarks"] += _query_sizes(_spread(taken["messages"].rows, settings), taken, settings, output)
    return about


def _spread(messages: DataFrame, settings: MeasureSettings) -> DataFrame:
    return messages if settings.partitions is None else messages.repartition(settings.partitions)


def _counted(log: Checked, settings: MeasureSettings, output: Output) -> Ingested:
    """The messages, counted by a pass of its own."""
    start = time.perf_counter()
    found = log.counted(settings.strict)
    output.note("messages (accepted)", found.n_accepted, time.perf_counter() - start)
    return found


def _from_messages(
    spark: SparkSession,
    log: Checked,
    taken: dict[str, Ingested],
    settings: MeasureSettings,
    output: Output,
    pool: ThreadPoolExecutor,
    small: bool,
) -> dict[str, Any]:
    from narrowcast.profiles import Matcher

    check_key(settings.key, log.columns)
    placed = _has_places(taken, log)
    if not taken["subscriptions"].n_accepted:
        raise _none_left(taken["subscriptions"])
    start = time.perf_counter()
    held = Held.of(taken["subscriptions"])
    matcher = Matcher(held.parsed)
    output.note("matcher", matcher.n_profiles, time.perf_counter() - start)
    output.write("profiles", held.profiles, ("profile",))
    # What a message weighs depends on the newest one: then they are gone through twice.
    ages = settings.decay != Decay()
    if ages:
        taken["messages"] = _counted(log, settings, output)
    times = taken["messages"].times_us if ages else None
    messages = _spread(taken["messages"].rows if ages else log.rows.drop(FILE, ROW, REASON, RAW, BROKEN), settings)
    start = time.perf_counter()
    sums = partials(
        messages,
        matcher,
        key=settings.key or None,
        classes=not settings.key or placed,
        overlap=settings.overlap,
        decay=settings.decay,
        newest_us=None if times is None else times[1],
        room=room(messages),
    )
    if not small or placed:
        sums = sums.persist(StorageLevel.DISK_ONLY)
    try:
        here = gathered(sums)
        if not ages:
            taken["messages"] = log.settled(here.verdicts, here.times_us, settings.strict)
            output.note("messages (accepted)", taken["messages"].n_accepted, time.perf_counter() - start)
        times = taken["messages"].times_us
        seconds = settings.seconds if settings.seconds is not None or times is None else (times[1] - times[0]) / 1e6
        if here.late:  # small inputs whose sums are not are gone through once more
            sums = sums.persist(StorageLevel.DISK_ONLY)
        over = totals_of(here, sums, seconds or None)
        output.note("partials", over.n_partials, time.perf_counter() - start)
        write_statistics(sums, here, held, over, output, pool, key=settings.key, overlap=settings.overlap)
        if placed:
            numbered = spark.createDataFrame(held.profiles.select(["profile", "text"]))
            wanted = wanted_classes(statistics.classes(sums), taken["subscriptions"].rows, numbered)
            output.write("tree_demand", tree_demand(wanted, taken["tree"].rows, over.seconds), ("node",))
    finally:
        sums.unpersist()
    absent = sorted(set(matcher.attributes) - set(log.columns))
    counts, _, _ = over.of_profiles(matcher.n_profiles)
    empty = emptiness(taken["messages"].n_accepted, taken["messages"].n_quarantined, int(counts.sum()))
    said = [*([empty] if empty else ()), *remarks(held.parsed, counts, log.columns, output.folder / "holders.parquet")]
    without = keyless(output.folder / "flows.parquet", settings.key)
    said += [without] if without else []
    if "tree" in taken and "demand" not in taken and not placed:
        said.append("subscriptions have no column node, so what is wanted below the nodes of the tree is not measured")
    elif "demand" in taken and placed:
        said.append("what is wanted below the nodes of the tree is measured from messages, not from the demand table")
    newest = None if times is None else times[1]
    about = {"messages": over.messages, "log_seconds": over.seconds, "newest_us": newest}
    return {**about, "attributes_absent": absent, "remarks": said}


def _none_left(taken: Ingested) -> InputError:
    """No row of a table of profiles can be used: what is wrong with the first."""
    first = taken.quarantine.orderBy("file", "row").limit(1).collect()
    why = f"row {first[0]['row']} of {taken.n_in:,}: {first[0]['reason']}" if first else None
    return InputError(f"{taken.name} must have at least one valid row, got none", name=taken.name, hint=why)


def _audiences(interest: DataFrame, flows: DataFrame, output: Output) -> None:
    of_flow = keep(statistics.audience_of_flow(interest))
    output.write("flow_audience", of_flow.select("flow", "audience"), ("flow",))
    output.write("audiences", statistics.audiences(of_flow, flows), ("audience",))


def _has_places(taken: Mapping[str, Ingested], log: Checked | None) -> bool:
    """Whether messages can show what is wanted below each node of a tree."""
    subscriptions = taken.get("subscriptions")
    return "tree" in taken and log is not None and subscriptions is not None and "node" in subscriptions.columns


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
