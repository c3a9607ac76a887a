"""Take in the input tables: good rows typed, bad rows set aside with file, row and reason.

Each row has at most one reason, the first that applies in the order of the checks: a line that is no
row, a cell of the wrong type, a missing cell or a value out of bounds, a profile that does not parse, an
unknown name, a key seen before. `rows in = accepted + quarantined` is counted by one aggregation over
the checked rows; Spark's accumulators would count retried tasks twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property, reduce
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import TimestampType

from narrowcast.data.ingest import convert
from narrowcast.data.ingest.check_names import first_of_key, names_known
from narrowcast.data.ingest.check_profiles import USES, profiles_checked
from narrowcast.data.ingest.check_tree import tree_checked
from narrowcast.data.ingest.here import CleanTable, clean_tables
from narrowcast.data.ingest.key import check_names
from narrowcast.data.ingest.read import BROKEN, FILE, ROW, Raw, Wanted, read
from narrowcast.data.ingest.tables import SPECS, TableSpec, spec
from narrowcast.data.ingest.tables import Column as Described
from narrowcast.data.ingest.verdicts import KIND, REASON, fault_if, first, judged, says
from narrowcast.data.spark.home import job_named, keep
from narrowcast.data.spark.sizing import at_once, sized
from narrowcast.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

RAW = "_raw"
QUARANTINE = "table string, file string, row bigint, kind string, reason string, raw string"


@dataclass(frozen=True)
class Ingested:
    """A table taken in: its good rows, its bad rows, and how many there were of each.

    `rows` keep where they stood (`_file`, `_row`); `quarantine` has table, file, row, kind, reason and
    the raw row as JSON, of the columns that were read; `checked` are all rows, with verdicts. `types` are the
    attributes' types, as given or found; `columns` all that the source has, read or not; `times_us` the first and
    last time of good messages, in microseconds since 1970; `uses` the attributes that good profiles name, each with
    the kind it is compared with, or "". `here` is the table where the driver took it in by itself: Spark then
    learns of it only if asked for `rows` or `checked`.
    """

    name: str
    n_in: int
    n_bad: Mapping[str, int]
    make_checked: Callable[[], DataFrame] = field(repr=False, compare=False)
    columns: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    times_us: tuple[int, int] | None = None
    uses: frozenset[tuple[str, str]] = frozenset()
    here: CleanTable | None = field(default=None, repr=False, compare=False)
    make_rows: Callable[[], DataFrame] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def checked(self) -> DataFrame:
        return self.make_checked()

    @cached_property
    def rows(self) -> DataFrame:
        return good_rows(self.checked) if self.make_rows is None else self.make_rows()

    @cached_property
    def quarantine(self) -> DataFrame:
        return _quarantine(self.checked, self.name)

    @property
    def n_accepted(self) -> int:
        return self.n_in - self.n_quarantined

    @property
    def n_quarantined(self) -> int:
        return sum(self.n_bad.values())


def ingest(
    spark: SparkSession,
    source: str | Path,
    name: str,
    *,
    known: Mapping[str, Ingested] | None = None,
    types: Mapping[str, str] | None = None,
    strict: bool = False,
    wanted: Wanted | None = None,
) -> Ingested:
    """The table `name` from a file, a folder of files or a Spark table, its bad rows set aside.

    `known` holds the tables taken in before, against which names are checked; `types` gives Spark
    types for attributes of messages, else Parquet's own or those that nearly all cells of a text
    have. `strict` raises an InputError at the first bad row instead. A missing file or column always
    does. Of messages only the attributes that are `wanted` are read; None reads all.
    """
    with sized(spark, [source]) as own, job_named(own, f"taking in {name}"):
        return _check(own, source, spec(name), known or {}, types or {}, wanted).counted(strict)


def ingest_all(
    spark: SparkSession,
    sources: Mapping[str, str | Path],
    *,
    types: Mapping[str, str] | None = None,
    strict: bool = False,
    named: Collection[str] | None = None,
    clean: Mapping[str, CleanTable] | None = None,
    done: Callable[[Ingested, float], None] | None = None,
) -> tuple[dict[str, Ingested], Checked | None]:
    """`ingest` for several tables, each checked against those before it; and the messages, not counted yet.

    Tables that are `clean` (None: find out) need no Spark; other small ones are taken in at the same time. Of
    messages only the attributes are read that the profiles of the other tables name, and those of `named`; None
    reads all. `done` is told each table and its seconds as it is taken in.
    """
    if unknown := [name for name in sources if name not in SPECS]:
        raise InputError(f"table must be one of {', '.join(SPECS)}, got {unknown[0]!r}", name="inputs")
    clean = clean_tables(sources) if clean is None else clean
    taken: dict[str, Future[Ingested]] = {}

    def wanted() -> set[str]:
        asking = [taken[name].result() for name in ("subscriptions", "queries") if name in taken]
        return {*(named or ()), *(attribute for table in asking for attribute, _ in table.uses)}

    def known(name: str) -> dict[str, Ingested]:
        listed = {table for _, table, _ in SPECS[name].known if table in taken}
        return {table: taken[table].result() for table in SPECS if table in listed}

    def take_in(name: str) -> Ingested:
        start = time.perf_counter()

        def by_spark() -> Checked:
            return _check(own, sources[name], SPECS[name], known(name), {}, None)

        with job_named(own, f"taking in {name}"):
            found = _taken_here(own, name, clean[name], by_spark) if name in clean else by_spark().counted(strict)
        if done is not None:
            done(found, time.perf_counter() - start)
        return found

    with sized(spark, sources.values()) as own, at_once(own, sources.values()) as pool:
        for name in SPECS:  # in an order in which names are known before they are used
            if name in sources and not SPECS[name].free:
                taken[name] = pool.submit(take_in, name)
        log: Checked | None = None
        if "messages" in sources:
            only = None if named is None else wanted
            with job_named(own, "finding out about messages"):
                log = _check(own, sources["messages"], SPECS["messages"], known("messages"), types or {}, only)
        return {name: found.result() for name, found in taken.items()}, log


def _taken_here(spark: SparkSession, name: str, clean: CleanTable, by_spark: Callable[[], Checked]) -> Ingested:
    def rows() -> DataFrame:
        return spark.createDataFrame(clean.numbered())

    n = clean.table.num_rows
    return Ingested(name, n, {}, lambda: by_spark().rows, clean.columns, {}, None, clean.uses, clean, rows)


def _check(
    spark: SparkSession,
    source: str | Path,
    described: TableSpec,
    known: Mapping[str, Ingested],
    types: Mapping[str, str],
    wanted: Wanted | None,
) -> Checked:
    name = described.name
    raw = read(spark, source, name, _with_own(wanted, described) if described.free else None)
    _check_columns(raw, described)
    checked, found = _typed(raw, described, dict(types))
    checked = _checked(checked, raw, described)
    checked = profiles_checked(checked, described)
    checked = names_known(checked, described, known)
    checked = tree_checked(checked) if name == "tree" else checked
    checked = first_of_key(checked, described)
    if not described.free:
        # Read by several steps; a message log is too large to keep, and cheap to check again.
        checked = keep(checked, StorageLevel.MEMORY_AND_DISK)
    return Checked(name, checked, raw.there, found)


def _with_own(wanted: Wanted | None, described: TableSpec) -> Wanted | None:
    return None if wanted is None else lambda: {*wanted(), *(column.name for column in described.columns)}


@dataclass(frozen=True)
class Checked:
    """A table whose rows have their verdicts, not counted yet: whoever goes through them all may do that."""

    name: str
    rows: DataFrame
    columns: tuple[str, ...]
    types: Mapping[str, str]

    def counted(self, strict: bool) -> Ingested:
        """The table, counted by a job of its own."""
        with job_named(self.rows.sparkSession, f"taking in {self.name}"):
            found = _counted(self.rows)
        counts = {kind: int(row["n"]) for kind, row in found.items()}
        return self.settled(counts, _times(found.get(None)), strict, _uses(found.get(None)))

    def settled(
        self,
        counts: Mapping[str | None, int],
        times: tuple[int, int] | None,
        strict: bool,
        uses: frozenset[tuple[str, str]] = frozenset(),
    ) -> Ingested:
        """The table with its rows counted by verdict (None: good); with `strict` an InputError if any is bad."""
        bad = {kind: counts[kind] for kind in sorted(k for k in counts if k is not None)}
        if strict and bad:
            _refuse_worst(self.rows, self.name)
        n_in = sum(counts.values())
        return Ingested(self.name, n_in, bad, lambda: self.rows, self.columns, self.types, times, uses)


def _refuse_worst(checked: DataFrame, name: str) -> None:
    worst = _quarantine(checked, name).orderBy("file", "row").collect()[0]
    raise InputError(
        f"{worst['file']}, row {worst['row']}: {worst['reason']}", name=name, hint="without --strict it is set aside"
    )


def good_rows(checked: DataFrame) -> DataFrame:
    """Rows without a fault, as they are used."""
    return checked.where(F.col(KIND).isNull()).drop(KIND, REASON, RAW, BROKEN, USES)


def _counted(checked: DataFrame) -> dict[str | None, Row]:
    """Rows by kind of fault (None: good), the first and last time, and what profiles ask, in one pass."""
    at = F.unix_micros("ts") if "ts" in checked.columns and _is_time(checked) else F.lit(None).cast("long")
    sums = [F.count("*").alias("n"), F.min(at).alias("first"), F.max(at).alias("last")]
    if USES in checked.columns:
        sums.append(F.array_distinct(F.flatten(F.collect_set(USES))).alias(USES))
    return {row[KIND]: row for row in checked.groupBy(KIND).agg(*sums).collect()}


def _times(good: Row | None) -> tuple[int, int] | None:
    return None if good is None or good["first"] is None else (int(good["first"]), int(good["last"]))


def _uses(good: Row | None) -> frozenset[tuple[str, str]]:
    if good is None or USES not in good:
        return frozenset()
    pairs = (use.partition(" ") for use in good[USES])
    return frozenset((name, kind) for kind, _, name in pairs)


def _is_time(frame: DataFrame) -> bool:
    return isinstance(frame.schema["ts"].dataType, TimestampType)


def _check_columns(raw: Raw, described: TableSpec) -> None:
    for column in described.columns:
        if column.required and column.name not in raw.columns:
            there = ", ".join(raw.columns)
            raise InputError(
                f"{raw.source}: the {described.name} table has no column {column.name!r}; it has {there}",
                name=column.name,
                allowed=raw.columns,
            )
        if column.name in raw.columns and raw.kind == "typed":
            given = raw.frame.schema[column.name].dataType
            if not convert.is_plain(given):
                raise InputError(
                    f"{raw.source}: column {column.name!r} of the {described.name} table must hold plain values, "
                    f"got {given.simpleString()}",
                    name=column.name,
                )
    if described.free and not [c for c in raw.there if c not in {d.name for d in described.columns}]:
        raise InputError(f"{raw.source}: the {described.name} table has no attributes", name=described.name)


def _typed(raw: Raw, described: TableSpec, types: dict[str, str]) -> tuple[DataFrame, dict[str, str]]:
    """Every column as its type, beside what the checks need: `_had_*` tells null from unreadable."""
    mine = {c.name: c for c in described.columns if c.name in raw.columns}
    rest = tuple(c for c in raw.columns if c not in mine)
    if types:
        check_names(types, [c for c in raw.there if c not in {d.name for d in described.columns}], "types")
    types = {name: kind for name, kind in types.items() if name in rest}
    found = convert.infer(raw, tuple(c for c in rest if c not in types)) | types if described.free else {}
    makers = {"name": convert.as_name, "profile": convert.as_name, "amount": convert.as_amount, "time": convert.as_time}
    cells = [makers[column.type](raw, name).alias(name) for name, column in mine.items()]
    wrong = [_wrong(raw, name, column.type, makers[column.type](raw, name)) for name, column in mine.items()]
    for name in rest:
        if not described.free:
            cells.append(_kept(raw, name))
            continue
        value, unfit = convert.attribute(raw, name, found[name])
        cells.append(value.alias(name))
        wrong.append((unfit, name, found[name]))
    bad = [
        fault_if(unfit, "wrong type", says(convert.as_name(raw, name), name, f"not {what}"))
        for unfit, name, what in wrong
    ]
    whole = F.to_json(F.struct(*(F.col(f"`{c}`") for c in raw.columns)))
    frame = raw.frame.select(
        *cells, FILE, ROW, BROKEN, first(bad).alias("_wrong"), F.coalesce(F.col(BROKEN), whole).alias(RAW)
    )
    return frame, {name: found[name] for name in rest} if described.free else {}


_WORDS = {"name": "text", "profile": "text", "amount": "a number", "time": "a timestamp"}


def _wrong(raw: Raw, name: str, kind: str, value: Column) -> tuple[Column, str, str]:
    cell = convert.cell_of(raw, name, "string" if kind in ("name", "profile") else kind)
    return cell.isNotNull() & value.isNull(), name, _WORDS[kind]


def _kept(raw: Raw, name: str) -> Column:
    """An extra column travels along; of JSON as text."""
    return (convert.as_name(raw, name) if raw.kind == "json" else F.col(f"`{name}`")).alias(name)


def _checked(frame: DataFrame, raw: Raw, described: TableSpec) -> DataFrame:
    verdicts = [fault_if(F.col(BROKEN).isNotNull(), "malformed", "the line is not a row of this table")]
    mine = [c for c in described.columns if c.name in raw.columns]
    verdicts.append(F.col("_wrong"))
    for column in mine:
        verdicts += _bounds(column)
    if described.name == "topology":
        verdicts.append(
            fault_if(F.col("u") == F.col("v"), "self loop", says(F.col("u"), "u", "the link leads back to it"))
        )
    return judged(frame, first(verdicts)).drop("_wrong")


def _bounds(column: Described) -> Iterator[Column]:
    cell = F.col(column.name)
    if not column.may_be_null:
        empty = cell.isNull() | (F.trim(cell.cast("string")) == "")
        yield fault_if(empty, "missing", f"{column.name} is missing")
    if column.type == "amount":
        text = cell.cast("string")
        finite = ~F.isnan(cell) & (F.abs(cell) != F.lit(float("inf")))
        yield fault_if(~finite, "not finite", says(text, column.name, "not a finite number"))
        if column.least is not None:
            yield fault_if(cell < column.least, "negative", says(text, column.name, f"less than {column.least:g}"))
        if column.above is not None:
            yield fault_if(cell <= column.above, "negative", says(text, column.name, f"not above {column.above:g}"))
    if column.one_of is not None:
        yield fault_if(
            ~cell.isin(*column.one_of), "not allowed", says(cell, column.name, f"not {', '.join(column.one_of)}")
        )


def _quarantine(checked: DataFrame, name: str) -> DataFrame:
    bad = checked.where(F.col(KIND).isNotNull())
    return bad.select(
        F.lit(name).alias("table"),
        F.col(FILE).alias("file"),
        F.col(ROW).alias("row"),
        F.col(KIND).alias("kind"),
        F.col(REASON).alias("reason"),
        F.col(RAW).alias("raw"),
    )


def quarantined(tables: Mapping[str, Ingested], spark: SparkSession) -> DataFrame:
    """The bad rows of all tables, in order; a table without any is not looked through again."""
    frames = [table.quarantine for table in tables.values() if table.n_quarantined]
    if not frames:
        return spark.createDataFrame(nothing_quarantined(), QUARANTINE)
    return reduce(DataFrame.unionByName, frames).orderBy("table", "file", "row")


def nothing_quarantined() -> pa.Table:
    """The quarantine of tables without a bad row."""
    import pyarrow as pa

    kinds = {"string": pa.string(), "bigint": pa.int64()}
    fields = [(name, kinds[kind]) for name, kind in (column.split() for column in QUARANTINE.split(", "))]
    return pa.schema(fields).empty_table()
