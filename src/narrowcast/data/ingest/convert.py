"""One cell as the type its column has: the value, and whether it could not be had.

Parquet cells have a type, CSV cells are text, JSON cells are variants that know whether they are a
number or a string. Text that reads as a number will do for a number, but not the other way round in
an attribute: the kind of a message's attribute decides what its comparisons mean.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType, DataType, NumericType, StringType, TimestampNTZType, TimestampType

from narrowcast.data.ingest.read import Raw

NUMBER = r"^\s*[+-]?((\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[iI]nf(inity)?|NaN|nan)\s*$"
WHOLE = r"^\s*[+-]?\d{1,18}\s*$"
TIME = r"^\s*\d{4}-\d{1,2}-\d{1,2}([T ]\d{1,2}:\d{1,2}(:\d{1,2}(\.\d+)?)?\s*(Z|UTC|[+-]\d{1,2}(:?\d{2})?)?)?\s*$"
TRUTH = r"^(?i)\s*(true|false)\s*$"
_LOOKS = {"bigint": WHOLE, "double": NUMBER, "boolean": TRUTH, "timestamp": TIME, "date": TIME}

# A column of text is taken for numbers, times or truth values if at least this share of its cells are;
# the rest are then bad rows. See docs/decisions/0061.
SURE = 0.98


def as_name(raw: Raw, column: str) -> Column:
    """Any plain cell as text."""
    cell = F.col(f"`{column}`")
    return F.try_variant_get(cell, "$", "string") if raw.kind == "json" else cell.cast("string")


def as_amount(raw: Raw, column: str) -> Column:
    """A number, or null where the cell is none."""
    cell = F.col(f"`{column}`")
    if raw.kind == "json":
        text = F.try_variant_get(cell, "$", "string")
        return F.when(text.rlike(NUMBER), text.try_cast("double"))
    if raw.kind == "text" or isinstance(_type(raw, column), StringType):
        return F.when(cell.rlike(NUMBER), F.trim(cell).try_cast("double"))
    return cell.cast("double") if isinstance(_type(raw, column), NumericType) else F.lit(None).cast("double")


def as_time(raw: Raw, column: str) -> Column:
    """A timestamp, from one, from its text, or from seconds since 1970 in UTC."""
    cell = F.col(f"`{column}`")
    given = _type(raw, column)
    if raw.kind == "typed" and isinstance(given, TimestampType):
        return cell
    if raw.kind == "typed" and not isinstance(given, (StringType, NumericType, TimestampNTZType)):
        return cell.cast("timestamp") if given.typeName() == "date" else F.lit(None).cast("timestamp")
    text = as_name(raw, column)
    seconds = F.when(text.rlike(NUMBER), text.try_cast("double"))
    # Beyond the year 9999 a number is milliseconds or nonsense: not guessed at.
    from_number = F.when(F.abs(seconds) < 253402300800, F.timestamp_micros((seconds * 1_000_000).cast("long")))
    return F.coalesce(F.when(text.rlike(TIME), text.try_cast("timestamp")), from_number)


def _type(raw: Raw, column: str) -> DataType:
    return raw.frame.schema[column].dataType


def cell_of(raw: Raw, column: str, wanted: str) -> Column:
    """A cell; of text that is to be anything but text, an empty one is null, in quotes too."""
    cell = F.col(f"`{column}`")
    return F.when(F.trim(cell) != "", cell) if raw.kind == "text" and wanted != "string" else cell


def attribute(raw: Raw, column: str, wanted: str) -> tuple[Column, Column]:
    """A message's attribute as the Spark type `wanted`, and whether the cell is no such thing."""
    if wanted == "void":
        return F.lit(None), F.lit(False)
    cell = cell_of(raw, column, wanted)
    if raw.kind == "typed":
        value = cell if _type(raw, column).simpleString() == wanted else cell.try_cast(wanted)
        return value, cell.isNotNull() & value.isNull()
    text = as_name(raw, column)
    fits = text.rlike(_LOOKS.get(wanted, "(?s).*"))
    if raw.kind == "json":
        kind = F.schema_of_variant(cell)
        fits = fits & _json_kind(kind, wanted)
    value = F.when(fits, F.trim(text).try_cast(wanted)) if wanted != "string" else F.when(fits, text)
    return value, cell.isNotNull() & value.isNull()


def _json_kind(kind: Column, wanted: str) -> Column:
    if wanted in ("bigint", "double"):
        return kind.isin("BIGINT", "DOUBLE") | kind.startswith("DECIMAL")
    return kind == ("BOOLEAN" if wanted == "boolean" else "STRING")


def infer(raw: Raw, columns: tuple[str, ...]) -> dict[str, str]:
    """The Spark type of each attribute: of Parquet as it stands, of text by what nearly all cells are."""
    if raw.kind == "typed" or not columns:
        return {c: _type(raw, c).simpleString() for c in columns}
    counts = _counts(raw, columns).collect()[0]
    return {c: _decide(*(counts[f"{i}_{what}"] for what in _COUNTED)) for i, c in enumerate(columns)}


_COUNTED = ("cells", "bigint", "double", "boolean", "timestamp")


def _counts(raw: Raw, columns: tuple[str, ...]) -> DataFrame:
    found = []
    for i, column in enumerate(columns):
        found.append(F.count(cell_of(raw, column, "any")).alias(f"{i}_cells"))
        for what in _COUNTED[1:]:
            value, _ = attribute(raw, column, what)
            found.append(F.count(value).alias(f"{i}_{what}"))
    return raw.frame.agg(*found)


def _decide(cells: int, bigint: int, double: int, boolean: int, timestamp: int) -> str:
    if not cells:
        return "void"  # whatever profiles compare it with, it is null
    sure = SURE * cells
    if double >= sure:
        return "bigint" if bigint == double else "double"
    if boolean >= sure:
        return "boolean"
    return "timestamp" if timestamp >= sure else "string"


def is_plain(data: DataType) -> bool:
    """Whether a cell of this type can be a name: not a list, a map or bytes."""
    return isinstance(data, (StringType, NumericType, BooleanType, TimestampType, TimestampNTZType)) or (
        data.typeName() == "date"
    )


def kind_of(data: DataType) -> str:
    """What profiles may compare a column of this type with: number, string, boolean, timestamp; other, or null."""
    kinds = {"boolean": "boolean", "timestamp": "timestamp", "timestamp_ntz": "timestamp", "date": "timestamp"}
    if isinstance(data, NumericType):
        return "number"
    return "string" if isinstance(data, StringType) else (kinds | {"void": "null"}).get(data.typeName(), "other")
