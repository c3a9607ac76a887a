"""Any input as Spark rows, each with its file and its number there, and nothing lost on the way.

A row's number counts records from 1, without the header. It does not depend on how Spark cuts the
file: Parquet knows its row numbers; text is numbered within each piece of a file, in file order, and
moved up by the lengths of the pieces before.
"""

from __future__ import annotations

import csv
import os
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from narrowcast.errors import InputError
from narrowcast.model.tables import PACKINGS, ending
from narrowcast.model.text_files import check_text

Kind = Literal["typed", "text", "json"]

FILE, ROW, BROKEN = "_file", "_row", "_broken"
FORMATS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "json", ".json": "json", ".ndjson": "json"}
# Which columns are wanted: asked when those that there are have been found, since others may still be at work on it.
Wanted = Callable[[], Collection[str]]
WIDE = 200
_EMPTY = "\x01empty\x01"
_PIECE = ("_metadata.file_path", "_metadata.file_block_start")


@dataclass(frozen=True)
class Raw:
    """Rows as they stand in the source, with FILE, ROW and BROKEN (the text of a line that is no row).

    `columns` are those that were wanted, of all that are `there`; `kind` says what the cells are: typed (Parquet,
    tables), text (CSV) or json (variants).
    """

    frame: DataFrame
    columns: tuple[str, ...]
    kind: Kind
    source: str
    there: tuple[str, ...]


def read(spark: SparkSession, source: str | Path, name: str, wanted: Wanted | None = None) -> Raw:
    """The table `name` in a Parquet, CSV or JSON-lines file, a folder of such files, or a Spark table.

    Only columns that are `wanted` are read; None wants all. A missing file, a folder without data, an empty file
    and an unknown ending are an InputError.
    """
    text = str(source)
    files = _files(spark, text, name)
    if files is None:
        return _table(spark, text, wanted)
    form = _format(files, text, name)
    try:
        raw = _READERS[form](spark, files, text, wanted)
    except (PySparkException, Py4JJavaError) as error:
        raise InputError(f"{text}: not a readable {form} file: {_first_line(error)}", name=name, got=text) from None
    for column in (FILE, ROW, BROKEN):
        if column in raw.there:
            raise InputError(f"{text}: the column name {column!r} is reserved", name=column, hint="rename it")
    return raw


def _kept(columns: tuple[str, ...], wanted: Wanted | None) -> tuple[str, ...]:
    if wanted is None:
        return columns
    names = frozenset(wanted())
    return tuple(column for column in columns if column in names)


def _first_line(error: Exception) -> str:
    text = str(error.java_exception.getMessage()) if isinstance(error, Py4JJavaError) else str(error)
    return text.strip().splitlines()[0]


def _files(spark: SparkSession, source: str, name: str) -> list[str] | None:
    """The data files below a path, sorted, or None for a name of a Spark table."""
    remote = "://" in source or source.startswith("file:")
    if not remote and not Path(source).exists():
        looks_like_a_file = os.sep in source or bool(ending(source))
        if not looks_like_a_file and _table_exists(spark, source):
            return None
        raise InputError(f"{source}: no such file (the {name} table)", name=name, got=source)
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(source if remote else Path(source).absolute().as_uri())
    system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    if not system.exists(path):
        raise InputError(f"{source}: no such file (the {name} table)", name=name, got=source)
    listing = system.listFiles(path, True)
    found: list[tuple[str, int]] = []
    while listing.hasNext():
        status = listing.next()
        place = status.getPath().toString()
        below = place.removeprefix(path.toString()).strip("/").split("/")
        if below[0] == "_delta_log":
            raise InputError(f"{source}: a Delta table (the {name} table)", name=name, hint="give its name in Spark")
        # As Spark does: names from . or _ are not data, unless they are columns.
        if not any(part.startswith((".", "_")) and "=" not in part for part in below):
            found.append((place, int(status.getLen())))
    if not found:
        raise InputError(f"{source}: a folder without data files (the {name} table)", name=name, got=source)
    full = sorted(place for place, size in found if size > 0)
    if not full:
        raise InputError(f"{source}: the file is empty (the {name} table)", name=name, hint="a header is needed")
    return full


def _table_exists(spark: SparkSession, name: str) -> bool:
    try:
        return bool(spark.catalog.tableExists(name))
    except PySparkException:
        return False


def _format(files: list[str], source: str, name: str) -> str:
    formats = {FORMATS.get(_unpacked(ending(file))) for file in files}
    if None in formats:
        file = next(f for f in files if not ending(f))
        raise InputError(
            f"{source}: cannot tell the format of {os.path.basename(file)} (the {name} table)",
            name=name,
            allowed=tuple(FORMATS),
            hint=f"name it {', '.join(list(FORMATS)[:3])}, text also {' or '.join(f'.csv{p}' for p in PACKINGS)}",
        )
    if len(formats) > 1:
        raise InputError(f"{source}: files of several formats in one folder (the {name} table)", name=name)
    return str(formats.pop())


def _unpacked(known: str) -> str:
    return os.path.splitext(known)[0] if known.endswith(PACKINGS) else known


def _table(spark: SparkSession, source: str, wanted: Wanted | None) -> Raw:
    frame = spark.table(source)
    there = tuple(frame.columns)
    columns = _kept(there, wanted)
    try:
        # A table kept in Parquet files still knows its rows.
        place = frame.select("_metadata.file_path", "_metadata.row_index").columns
        at = [F.col(f"_metadata.{place[0]}").alias(FILE), (F.col("_metadata.row_index") + 1).alias(ROW)]
        frame = frame.select(*_cells(columns), *at)
    except PySparkException:
        number = F.monotonically_increasing_id() + 1
        frame = frame.select(*_cells(columns), F.lit(source).alias(FILE), number.alias(ROW))
    frame = frame.withColumn(BROKEN, F.lit(None).cast("string"))
    return Raw(_apart(frame) if len(there) > WIDE else frame, columns, "typed", source, there)


def _cells(columns: tuple[str, ...]) -> list[Column]:
    return [F.col(f"`{column}`") for column in columns]


def _parquet(spark: SparkSession, files: list[str], source: str, wanted: Wanted | None) -> Raw:
    # The folder, not its files: Spark then sees columns kept in folder names (key=value).
    whole = source if "://" in source else Path(source).absolute().as_uri()
    schema = _plain_schema(source) or spark.read.parquet(whole).schema
    there = tuple(schema.names)
    columns = _kept(there, wanted)
    # Spark then never hears of the others: every later step would look through them again.
    only = StructType([field for field in schema.fields if field.name in columns])
    frame = spark.read.schema(only).parquet(whole)
    frame = frame.select(
        *_cells(columns),
        F.col("_metadata.file_path").alias(FILE),
        (F.col("_metadata.row_index") + 1).alias(ROW),
        F.lit(None).cast("string").alias(BROKEN),
    )
    return Raw(frame, columns, "typed", source, there)


def _plain_schema(source: str) -> StructType | None:
    """What Spark would find in one local file of plain columns, without the job it needs to find out; else None."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(source)
    if not path.is_file():
        return None
    try:
        schema = pq.read_schema(path)
    except (OSError, ValueError, NotImplementedError):  # Spark says what is wrong
        return None
    if any(name.startswith(b"org.apache.spark") for name in schema.metadata or {}):
        return None  # Spark has written down its own types there
    kinds = {
        **dict.fromkeys((pa.string(), pa.large_string()), StringType()),
        pa.int64(): LongType(),
        pa.int32(): IntegerType(),
        pa.float64(): DoubleType(),
        pa.bool_(): BooleanType(),
        **dict.fromkeys((pa.timestamp("us", "UTC"), pa.timestamp("ms", "UTC")), TimestampType()),
    }
    found = [kinds.get(field.type) for field in schema]
    if None in found or len({*schema.names}) < len(schema.names):
        return None
    return StructType([StructField(name, kind) for name, kind in zip(schema.names, found, strict=True) if kind])


def _csv(spark: SparkSession, files: list[str], source: str, wanted: Wanted | None) -> Raw:
    if "://" not in source:
        check_text(Path(source), Path(source).name.partition(".")[0])
    there = _header(spark, files[0])
    for file in files[1:]:
        if _header(spark, file) != there:
            raise InputError(f"{file}: its header differs from that of {files[0]}", name="header", got=source)
    schema = StructType([StructField(c, StringType()) for c in (*there, BROKEN)])
    frame = spark.read.csv(
        files,
        schema=schema,
        header=True,
        multiLine=True,
        escape='"',
        mode="PERMISSIVE",
        columnNameOfCorruptRecord=BROKEN,
        emptyValue=_EMPTY,
        maxCharsPerColumn=-1,
    )
    shift = _shift(frame.select(*_PIECE))
    columns = _kept(there, wanted)
    frame = frame.select(*_cells((*columns, BROKEN)), *_PIECE)
    # An empty cell is null, but '' in quotes is an empty string, which Spark alone would not tell apart.
    cells = [F.when(F.col(f"`{c}`") == _EMPTY, "").otherwise(F.col(f"`{c}`")).alias(c) for c in columns]
    rows = _numbered(frame, shift).select(*cells, FILE, ROW, BROKEN)
    return Raw(_apart(rows) if len(there) > WIDE else rows, columns, "text", source, there)


def _apart(frame: DataFrame) -> DataFrame:
    """The same rows without how they are made, so that no later step looks through thousands of columns again.

    It costs a copy of each row: nothing against parsing so many cells.
    """
    session = frame.sparkSession
    inside: Any = session._jsparkSession
    made: Any = frame._jdf
    return DataFrame(inside.createDataFrame(made.rdd(), made.schema()), session)


def _header(spark: SparkSession, file: str) -> tuple[str, ...]:
    line = spark.read.text(file).first()
    names = next(csv.reader([line["value"].lstrip("\ufeff")]), []) if line else []
    if not names or any(not n.strip() or "`" in n for n in names):
        raise InputError(f"{file}: the first line must name every column", name="header", got=names)
    if twice := [name for name, n in Counter(names).items() if n > 1]:
        raise InputError(f"{file}: column {twice[0]!r} appears more than once", name=twice[0])
    return tuple(names)


def _json(spark: SparkSession, files: list[str], source: str, wanted: Wanted | None) -> Raw:
    lines = _numbered(spark.read.text(files).where(F.trim("value") != "").select("value", *_PIECE))
    parsed = lines.withColumn("_row_json", F.try_parse_json("value"))
    keys = F.explode(F.map_keys(F.from_json("value", "map<string,string>")))
    found = parsed.where(F.col("_row_json").isNotNull()).select(keys.alias("key")).distinct().collect()
    there = tuple(sorted(row["key"] for row in found))
    columns = _kept(there, wanted)
    is_object = F.schema_of_variant("_row_json").startswith("OBJECT")
    cells = [_json_cell(column).alias(column) for column in columns]
    frame = parsed.select(*cells, FILE, ROW, F.when(is_object, None).otherwise(F.col("value")).alias(BROKEN))
    return Raw(frame, columns, "json", source, there)


def _json_cell(column: str) -> Column:
    quote = '"' if "'" in column else "'"
    if quote in column:
        raise InputError(f"the column name {column} has both kinds of quotes", name=column, hint="rename it")
    cell = F.try_variant_get("_row_json", f"$[{quote}{column}{quote}]", "variant")
    return F.when(F.is_variant_null(cell), None).otherwise(cell)


def _numbered(frame: DataFrame, shift: DataFrame | None = None) -> DataFrame:
    """Rows of text files with FILE and ROW in place of the piece of file that each came from."""
    numbered = _pieces(frame).join(F.broadcast(_shift(frame) if shift is None else shift), [FILE, "_start"])
    return numbered.withColumn(ROW, F.col("_at") - F.col("_shift")).drop("_at", "_shift", "_start")


def _shift(frame: DataFrame) -> DataFrame:
    """How far the numbers of each piece's rows are from their places in the file: one pass over the pieces."""
    sums = [F.min("_at").alias("_first"), F.count("*").alias("_n")]
    found = _pieces(frame).groupBy(FILE, "_start").agg(*sums).collect()
    before: dict[str, int] = {}
    shifts = []
    for piece in sorted(found, key=lambda r: (r[FILE], r["_start"])):
        done = before.get(piece[FILE], 0)
        shifts.append((piece[FILE], piece["_start"], piece["_first"] - done - 1))
        before[piece[FILE]] = done + piece["_n"]
    return frame.sparkSession.createDataFrame(shifts, f"{FILE} string, _start long, _shift long")


def _pieces(frame: DataFrame) -> DataFrame:
    numbered = frame.withColumn("_at", F.monotonically_increasing_id())
    return numbered.withColumnsRenamed({"file_path": FILE, "file_block_start": "_start"})


_READERS = {"parquet": _parquet, "csv": _csv, "json": _json}
