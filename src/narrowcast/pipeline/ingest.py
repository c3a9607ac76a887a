"""Take in the input tables: good rows typed, bad rows set aside with file, row and reason.

Each row has at most one reason, the first that applies in the order of the checks: a line that is no
row, a missing cell, a cell of the wrong type, a value out of bounds, a profile that does not parse, an
unknown name, a key seen before. `rows in = accepted + quarantined` is counted by one aggregation over
the checked rows; Spark's accumulators would count retried tasks twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from narrowcast.errors import InputError
from narrowcast.pipeline import convert
from narrowcast.pipeline.read import BROKEN, FILE, ROW, Raw, read
from narrowcast.pipeline.tables import Column as Described
from narrowcast.pipeline.tables import TableSpec, spec
from narrowcast.profiles.sets import ValueSet

if TYPE_CHECKING:
    import pyarrow as pa

    from narrowcast.profiles import Profile

KIND, REASON, RAW = "_kind", "_reason", "_raw"
QUARANTINE = "table string, file string, row bigint, kind string, reason string, raw string"


@dataclass(frozen=True)
class Ingested:
    """A table taken in: its good rows, its bad rows, and how many there were of each.

    `rows` keep where they stood (`_file`, `_row`); `quarantine` has table, file, row, kind, reason and
    the raw row as JSON. `types` are the attributes' types, as given or found.
    """

    name: str
    rows: DataFrame
    quarantine: DataFrame
    n_in: int
    n_bad: Mapping[str, int]
    types: Mapping[str, str] = field(default_factory=dict)

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
) -> Ingested:
    """The table `name` from a file, a folder of files or a Spark table, its bad rows set aside.

    `known` holds the tables taken in before, against which names are checked; `types` gives Spark
    types for attributes of messages, else Parquet's own or those that nearly all cells of a text
    have. `strict` raises an InputError at the first bad row instead. A missing file or column always
    does.
    """
    described = spec(name)
    raw = read(spark, source, name)
    _check_columns(raw, described)
    checked, found = _typed(raw, described, dict(types or {}))
    checked = _checked(checked, raw, described)
    checked = _profiles_checked(checked, described)
    checked = _names_known(checked, described, known or {})
    checked = _tree_checked(checked) if name == "tree" else checked
    checked = _first_of_key(checked, described)
    if not described.free:
        # Read by several steps; a message log is too large to keep, and cheap to check again.
        checked = checked.persist(StorageLevel.MEMORY_AND_DISK)
    counts = {row[KIND]: row["count"] for row in checked.groupBy(KIND).count().collect()}
    bad = {kind: counts[kind] for kind in sorted(k for k in counts if k is not None)}
    quarantine = _quarantine(checked, name)
    if strict and bad:
        first = quarantine.orderBy("file", "row").first()
        raise InputError(f"{first['file']}, row {first['row']}: {first['reason']}", name=name, hint="without --strict it is set aside")
    rows = checked.where(F.col(KIND).isNull()).drop(KIND, REASON, RAW, BROKEN)
    return Ingested(name, rows, quarantine, sum(counts.values()), bad, found)


def _check_columns(raw: Raw, described: TableSpec) -> None:
    for column in described.columns:
        if column.required and column.name not in raw.columns:
            raise InputError(
                f"{raw.source}: the {described.name} table has no column {column.name!r}; it has {', '.join(raw.columns)}",
                name=column.name,
                allowed=raw.columns,
            )
        if column.name in raw.columns and raw.kind == "typed":
            given = raw.frame.schema[column.name].dataType
            if not convert.is_plain(given):
                raise InputError(
                    f"{raw.source}: column {column.name!r} of the {described.name} table is {given.simpleString()}",
                    name=column.name,
                    hint="it must hold one plain value per row",
                )
    if described.free and not [c for c in raw.columns if c not in {d.name for d in described.columns}]:
        raise InputError(f"{raw.source}: the {described.name} table has no attributes", name=described.name)


def _typed(raw: Raw, described: TableSpec, types: dict[str, str]) -> tuple[DataFrame, dict[str, str]]:
    """Every column as its type, beside what the checks need: `_had_*` tells null from unreadable."""
    mine = {c.name: c for c in described.columns if c.name in raw.columns}
    rest = tuple(c for c in raw.columns if c not in mine)
    if unknown := sorted(set(types) - set(rest)):
        raise InputError(f"{raw.source}: a type is given for {unknown[0]!r}, which is no attribute here", name=unknown[0])
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
    bad = [_verdict(unfit, "wrong type", _says(convert.as_name(raw, name), name, f"not {what}")) for unfit, name, what in wrong]
    whole = F.to_json(F.struct(*(F.col(f"`{c}`") for c in raw.columns)))
    frame = raw.frame.select(
        *cells, FILE, ROW, BROKEN, _first(bad).alias("_wrong"), F.coalesce(F.col(BROKEN), whole).alias(RAW)
    )
    return frame, {name: found[name] for name in rest} if described.free else {}


_WORDS = {"name": "text", "profile": "text", "amount": "a number", "time": "a timestamp"}


def _wrong(raw: Raw, name: str, kind: str, value: Column) -> tuple[Column, str, str]:
    return F.col(f"`{name}`").isNotNull() & value.isNull(), name, _WORDS[kind]


def _kept(raw: Raw, name: str) -> Column:
    """An extra column travels along; of JSON as text."""
    return (convert.as_name(raw, name) if raw.kind == "json" else F.col(f"`{name}`")).alias(name)


def _verdict(bad: Column, kind: str, reason: Column | str) -> Column:
    text = F.lit(reason) if isinstance(reason, str) else reason
    return F.when(F.coalesce(bad, F.lit(False)), F.struct(F.lit(kind).alias("kind"), text.alias("reason")))


def _first(verdicts: list[Column]) -> Column:
    none = F.lit(None).cast("struct<kind:string,reason:string>")
    return F.coalesce(*verdicts, none)


def _says(cell: Column, name: str, what: str) -> Column:
    return F.concat(F.lit(f"{name} is "), F.coalesce(F.substring(cell, 1, 60), F.lit("unreadable")), F.lit(f": {what}"))


def _checked(frame: DataFrame, raw: Raw, described: TableSpec) -> DataFrame:
    verdicts = [_verdict(F.col(BROKEN).isNotNull(), "malformed", "the line is no row of this table")]
    mine = [c for c in described.columns if c.name in raw.columns]
    verdicts.append(F.col("_wrong"))
    for column in mine:
        verdicts += _bounds(column)
    if described.name == "topology":
        verdicts.append(_verdict(F.col("u") == F.col("v"), "self loop", _says(F.col("u"), "u", "the link leads back to it")))
    return _judged(frame, _first(verdicts)).drop("_wrong")


def _bounds(column: Described) -> Iterator[Column]:
    cell = F.col(column.name)
    if not column.may_be_null:
        empty = cell.isNull() | (F.trim(cell.cast("string")) == "")
        yield _verdict(empty, "missing", f"{column.name} is missing")
    if column.type == "amount":
        text = cell.cast("string")
        finite = ~F.isnan(cell) & (F.abs(cell) != F.lit(float("inf")))
        yield _verdict(~finite, "not finite", _says(text, column.name, "not a finite number"))
        if column.least is not None:
            yield _verdict(cell < column.least, "negative", _says(text, column.name, f"less than {column.least:g}"))
        if column.above is not None:
            yield _verdict(cell <= column.above, "negative", _says(text, column.name, f"not above {column.above:g}"))
    if column.one_of is not None:
        yield _verdict(~cell.isin(*column.one_of), "not allowed", _says(cell, column.name, f"not {', '.join(column.one_of)}"))


def _judged(frame: DataFrame, verdict: Column) -> DataFrame:
    """Note the verdict on rows that have none yet."""
    if KIND not in frame.columns:
        return frame.withColumn("_v", verdict).select("*", F.col("_v.kind").alias(KIND), F.col("_v.reason").alias(REASON)).drop("_v")
    new = F.when(F.col(KIND).isNull(), verdict)
    return (
        frame.withColumn("_v", new)
        .withColumn(KIND, F.coalesce(F.col(KIND), F.col("_v.kind")))
        .withColumn(REASON, F.coalesce(F.col(REASON), F.col("_v.reason")))
        .drop("_v")
    )


def _profiles_checked(frame: DataFrame, described: TableSpec) -> DataFrame:
    """Parse every profile once, on the workers."""
    if not any(c.type == "profile" for c in described.columns):
        return frame
    texts = frame.where(F.col(KIND).isNull()).select("profile").distinct()
    spread = texts.repartition(frame.sparkSession.sparkContext.defaultParallelism, "profile")
    ranges = described.name == "queries"
    faults = spread.mapInArrow(lambda batches: _faults(batches, ranges), "profile string, _fault string")
    joined = frame.join(faults, "profile", "left")
    verdict = _verdict(F.col("_fault").isNotNull(), "bad profile", F.concat(F.lit("profile: "), F.col("_fault")))
    return _judged(joined, verdict).drop("_fault")


def _faults(batches: Iterator[pa.RecordBatch], ranges: bool) -> Iterator[pa.RecordBatch]:
    """The profiles that do not parse, with the reason."""
    import pyarrow as pa

    from narrowcast.profiles import Profile

    for batch in batches:
        texts, faults = [], []
        for text in batch.column("profile").to_pylist():
            try:
                profile = Profile.parse(text)
                if ranges:
                    _range(profile)
            except InputError as error:
                texts.append(text)
                faults.append(" ".join(str(error).split()))
        yield pa.RecordBatch.from_pydict(
            {"profile": pa.array(texts, pa.string()), "_fault": pa.array(faults, pa.string())}
        )


def _range(profile: Profile) -> None:
    """A query must be a range: one interval of numbers for each attribute."""
    boxes = profile.boxes
    plain = ValueSet()
    if boxes is None or len(boxes) != 1 or not boxes[0]:
        raise InputError("not a range: it must be one box of intervals")
    for name, values in boxes[0].items():
        if len(values.number) != 1 or replace(values, number=()) != plain:
            raise InputError(f"not a range: {name} must lie in one interval of numbers")


def _names_known(frame: DataFrame, described: TableSpec, known: Mapping[str, Ingested]) -> DataFrame:
    asked: set[str] = set()
    for column, table, other in described.known:
        if column not in frame.columns or table not in known or column in asked:
            continue
        asked.add(column)
        names = known[table].rows.select(F.col(other).alias(column)).distinct().withColumn("_known", F.lit(True))
        joined = frame.join(F.broadcast(names), column, "left")
        absent = F.col(column).isNotNull() & F.col("_known").isNull()
        verdict = _verdict(absent, "unknown name", _says(F.col(column), column, f"not in the {table} table"))
        frame = _judged(joined, verdict).drop("_known")
    if described.name == "demand" and "tree" in known:
        parents = known["tree"].rows.select(F.col("parent").alias("node")).distinct().withColumn("_inner", F.lit(True))
        joined = frame.join(F.broadcast(parents), "node", "left")
        verdict = _verdict(F.col("_inner").isNotNull(), "not a leaf", _says(F.col("node"), "node", "not a leaf of the tree"))
        frame = _judged(joined, verdict).drop("_inner")
    return frame


def _first_of_key(frame: DataFrame, described: TableSpec) -> DataFrame:
    """Of the rows that share a key, the first by file and row stays."""
    if not described.key:
        return frame
    key = [F.col(c) for c in described.key]
    if described.unordered_key:
        key = [F.least(*key).alias("_low"), F.greatest(*key).alias("_high")]
    # Rows that are bad already take part in no comparison: they neither are nor make duplicates.
    order = Window.partitionBy(*key, F.col(KIND).isNull()).orderBy(FILE, ROW)
    ranked = frame.withColumn("_rank", F.row_number().over(order))
    names = F.concat_ws(", ", *(F.col(c).cast("string") for c in described.key))
    reason = F.concat(F.lit(f"{' and '.join(described.key)} seen before: "), F.substring(names, 1, 120))
    return _judged(ranked, _verdict(F.col("_rank") > 1, "duplicate", reason)).drop("_rank")


def _tree_checked(frame: DataFrame) -> DataFrame:
    """The first row without a parent is the root; every other must lead to it."""
    good = frame.where(F.col(KIND).isNull()).orderBy(FILE, ROW).select("node", "parent", FILE, ROW).collect()
    parent_of: dict[str, str | None] = {}
    faults: list[tuple[str, int, str, str]] = []
    root: str | None = None
    for node, parent, file, row in good:
        if node in parent_of:
            continue
        if parent is None or not parent.strip():
            if root is not None:
                faults.append((file, row, "second root", f"node is {node}: the root is {root} already"))
                continue
            root, parent = node, None
        parent_of[node] = parent
    reached = _reach(parent_of, root)
    faults += [
        (file, row, "not in the tree", f"node is {node}: it never reaches the root")
        for node, parent, file, row in good
        if node in parent_of and node not in reached
    ]
    if root is None:
        raise InputError("the tree table has no root: one row must have an empty parent", name="tree")
    if not faults:
        return frame
    table = frame.sparkSession.createDataFrame(faults, f"{FILE} string, {ROW} long, _k string, _r string")
    joined = frame.join(F.broadcast(table), [FILE, ROW], "left")
    verdict = F.when(F.col("_k").isNotNull(), F.struct(F.col("_k").alias("kind"), F.col("_r").alias("reason")))
    return _judged(joined, verdict).drop("_k", "_r")


def _reach(parent_of: Mapping[str, str | None], root: str | None) -> set[str]:
    children: dict[str, list[str]] = {}
    for node, parent in parent_of.items():
        if parent is not None:
            children.setdefault(parent, []).append(node)
    reached, open_nodes = set(), [root] if root is not None else []
    while open_nodes:
        node = open_nodes.pop()
        reached.add(node)
        open_nodes += children.get(node, [])
    return reached


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
    """The bad rows of all tables, in order."""
    frames = [table.quarantine for table in tables.values()]
    empty = spark.createDataFrame([], QUARANTINE)
    everything: Any = reduce(DataFrame.unionByName, frames, empty)
    return everything.orderBy("table", "file", "row")
