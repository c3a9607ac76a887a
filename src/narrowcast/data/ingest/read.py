"""Any input as Spark rows, each with its file and its number there, and nothing lost on the way.

A row's number counts records from 1, without the header. It does not depend on how Spark cuts the
file: Parquet knows its row numbers; text is numbered within each piece of a file, in file order, and
moved up by the lengths of the pieces before.
"""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from pyspark.errors import AnalysisException, PySparkException
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

from narrowcast.data.ingest.kafka import is_topic, read_topic, records
from narrowcast.data.ingest.nested import OBJECT, json_cell, json_paths, leaves, struct_cells, top_level
from narrowcast.data.spark.home import is_connect, is_local
from narrowcast.data.spark.sizing import ViewName
from narrowcast.errors import InputError
from narrowcast.model.stores import as_url, is_url
from narrowcast.model.tables import PACKINGS, ending, local_path
from narrowcast.model.text_files import check_text

try:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
except ImportError:  # a client of Spark Connect has no JVM to hear of

    class Py4JJavaError(Exception):  # type: ignore[no-redef]
        """Never raised."""


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

    Only columns that are `wanted` are read, fields of structs by names with dots (`payload.price`); None wants all
    as they stand. A frame of Kafka's connector, and `kafka://host:port/topic`, are JSON objects. A missing file, a
    folder without data, an empty file and an unknown ending are an InputError.
    """
    if isinstance(source, ViewName):
        return _table(spark, source, wanted)
    text = _url(str(source))
    if text.startswith("kafka://"):
        return _objects(records(read_topic(spark, text, name), FILE, ROW), text, wanted)
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


def _url(text: str) -> str:
    """A URL as it was given: a Path has made one slash of two. One of this machine as the path that it names."""
    if text.startswith("file:"):
        return str(local_path(text, "table"))
    return as_url(text) if is_url(text) else text


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
    remote = "://" in source
    if not remote and not Path(source).exists():
        looks_like_a_file = os.sep in source or bool(ending(source))
        if not looks_like_a_file and _table_exists(spark, source):
            return None
        what = "no such file" if looks_like_a_file else "no such file, and no table of Spark's catalog"
        raise InputError(f"{source}: {what} (the {name} table)", name=name, got=source)
    whole = source if remote else f"file://{Path(source).absolute()}"  # Hadoop reads no %20
    try:
        listed = _listed(spark, whole)
    except (PySparkException, Py4JJavaError) as error:
        raise InputError(f"{source}: cannot be read: {_why(error)} (the {name} table)", name=name, got=source) from None
    if listed is None:
        raise InputError(f"{source}: no such file (the {name} table)", name=name, got=source)
    found: list[tuple[str, int]] = []
    for place, below, size in listed:
        if below[0] == "_delta_log":
            raise InputError(f"{source}: a Delta table (the {name} table)", name=name, hint="give its name in Spark")
        # As Spark does: names from . or _ are not data, unless they are columns.
        if not any(part.startswith((".", "_")) and "=" not in part for part in below):
            found.append((place, size))
    if not found:
        raise InputError(f"{source}: a folder without data files (the {name} table)", name=name, got=source)
    full = sorted(place for place, size in found if size > 0)
    if not full:
        raise InputError(f"{source}: the file is empty (the {name} table)", name=name, hint="a header is needed")
    return full


def _listed(spark: SparkSession, place: str) -> list[tuple[str, list[str], int]] | None:
    """All files at or below a URL: where each is, the names on the way to it, and its size; None if nothing is there.

    By Hadoop's file systems, as Spark reads them. Over Connect the server lists what it sees.
    """
    if is_connect(spark):
        return _listed_by_server(spark, place)
    jvm: Any = spark._jvm
    path = jvm.org.apache.hadoop.fs.Path(place)
    system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    if not system.exists(path):
        return None
    listing = system.listFiles(path, True)
    found = []
    while listing.hasNext():
        status = listing.next()
        file = status.getPath().toString()
        found.append((file, file.removeprefix(path.toString()).strip("/").split("/"), int(status.getLen())))
    return found


def _listed_by_server(spark: SparkSession, place: str) -> list[tuple[str, list[str], int]] | None:
    files = spark.read.format("binaryFile").option("recursiveFileLookup", True).load(place).select("path", "length")
    try:
        rows = files.collect()
    except PySparkException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return None
        raise
    top = urlsplit(place).path.rstrip("/")
    return [
        (row["path"], urlsplit(row["path"]).path.removeprefix(top).strip("/").split("/"), row["length"]) for row in rows
    ]


def _why(error: Exception) -> str:
    """The first line of what Spark says; of a file system that it does not have, what would bring it."""
    line = _first_line(error)
    scheme = re.search(r'No FileSystem for scheme "?([A-Za-z0-9+.-]+)', line)
    missing = re.search(r"Class (org\.apache\.hadoop\.fs\.\S+) not found", line)
    if scheme is None and missing is None:
        return line
    return (
        f"this Spark has no file system for it ({line}); give it the package, such as "
        "--conf spark.jars.packages=org.apache.hadoop:hadoop-aws:3.4.1 for s3a"
    )


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
    if is_topic(frame):
        return _objects(records(frame, FILE, ROW), source, wanted)
    paths = {} if wanted is None else leaves(frame.schema)
    there = tuple(paths or frame.columns)
    columns = _kept(there, wanted)
    if not is_local(spark) and (alike := _alike(spark, there, columns)):
        raise InputError(
            f"{source}: the columns {' and '.join(alike)} differ in case alone",
            name=alike[0],
            hint="rename one, or set spark.sql.caseSensitive=true in this session",
        )
    try:
        if isinstance(source, ViewName):
            raise AnalysisException("a view has no files")
        # A table kept in Parquet files still knows its rows.
        place = frame.select("_metadata.file_path", "_metadata.row_index").columns
        at = [F.col(f"_metadata.{place[0]}").alias(FILE), (F.col("_metadata.row_index") + 1).alias(ROW)]
        frame = frame.select(*struct_cells(columns, paths), *at)
    except PySparkException:
        number = F.monotonically_increasing_id() + 1
        frame = frame.select(*struct_cells(columns, paths), F.lit(source).alias(FILE), number.alias(ROW))
    frame = frame.withColumn(BROKEN, F.lit(None).cast("string"))
    return Raw(_apart(frame) if len(there) > WIDE else frame, columns, "typed", source, there)


def _alike(spark: SparkSession, there: tuple[str, ...], columns: tuple[str, ...]) -> tuple[str, ...]:
    """Columns that this session could not tell apart, where one of them is wanted. A copy of a session always can."""
    if str(spark.conf.get("spark.sql.caseSensitive")).lower() == "true":
        return ()
    for column in columns:
        same = tuple(other for other in there if other.casefold() == column.casefold())
        if len(same) > 1:
            return same
    return ()


def _cells(columns: tuple[str, ...]) -> list[Column]:
    return [F.col(f"`{column}`") for column in columns]


def _parquet(spark: SparkSession, files: list[str], source: str, wanted: Wanted | None) -> Raw:
    # The folder, not its files: Spark then sees columns kept in folder names (key=value).
    whole = source if "://" in source else f"file://{Path(source).absolute()}"
    schema = _plain_schema(source) or spark.read.parquet(whole).schema
    paths = {} if wanted is None else leaves(schema)
    there = tuple(paths or schema.names)
    columns = _kept(there, wanted)
    # Spark then never hears of the others: every later step would look through them again.
    held = top_level(columns, paths)
    only = StructType([field for field in schema.fields if field.name in held])
    frame = spark.read.schema(only).parquet(whole)
    frame = frame.select(
        *struct_cells(columns, paths),
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
    # Spark refuses to read lines that are no rows by themselves, as where all that is wanted is empty.
    broken = F.coalesce(F.col(BROKEN), *(F.when(F.length(f"`{c}`") < 0, "") for c in columns[:1])).alias(BROKEN)
    rows = _numbered(frame, shift).select(*cells, FILE, ROW, broken)
    return Raw(_apart(rows) if len(there) > WIDE else rows, columns, "text", source, there)


def _apart(frame: DataFrame) -> DataFrame:
    """The same rows without how they are made, so that no later step looks through thousands of columns again.

    It costs a copy of each row: nothing against parsing so many cells.
    """
    session = frame.sparkSession
    if is_connect(session):
        return frame
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
    arrays = [file for file in files if _is_array(spark, file)]
    if arrays and len(arrays) < len(files):
        raise InputError(f"{source}: JSON lines and JSON arrays in one folder", name="messages", got=source)
    if arrays:  # each file as one text, its elements as rows
        texts = spark.read.text(files, wholetext=True).select("value", F.col("_metadata.file_path").alias(FILE))
        rows = texts.select(
            FILE, F.posexplode_outer(F.from_json("value", "array<string>")).alias("_at", "_element"), "value"
        )
        lines = rows.select(
            F.coalesce("_element", "value").alias("value"),
            FILE,
            F.coalesce(F.col("_at") + 1, F.lit(1)).cast("long").alias(ROW),
        )
    else:
        lines = _numbered(spark.read.text(files).where(F.trim("value") != "").select("value", *_PIECE))
    return _objects(lines, source, wanted)


def _objects(lines: DataFrame, source: str, wanted: Wanted | None) -> Raw:
    """Rows of JSON objects: each line in `value`, with FILE and ROW."""
    parsed = lines.withColumn(OBJECT, F.try_parse_json("value"))
    paths = json_paths(parsed.where(F.col(OBJECT).isNotNull()))
    there = tuple(paths)
    columns = _kept(there, wanted)
    is_object = F.schema_of_variant(OBJECT).startswith("OBJECT")
    cells = [json_cell(paths[column]).alias(column) for column in columns]
    frame = parsed.select(*cells, FILE, ROW, F.when(is_object, None).otherwise(F.col("value")).alias(BROKEN))
    return Raw(frame, columns, "json", source, there)


def _is_array(spark: SparkSession, file: str) -> bool:
    """Whether a file of JSON is one array of objects, and not a line for each."""
    if not _unpacked(ending(file)).endswith(".json"):
        return False
    first = spark.read.text(file).where(F.trim("value") != "").first()
    return first is not None and str(first["value"]).lstrip().startswith("[")


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
