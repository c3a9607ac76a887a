"""A message's value as one of the kinds the language knows, and how it compares with a constant.

Messages come from dicts, NumPy, pandas, Arrow and Spark, so many types stand for the same thing.
None of those packages is imported here.
"""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from narrowcast.profiles.sql.moments import microseconds
from narrowcast.profiles.sql.syntax import Kind, Value

# What comparisons work on: timestamps are whole microseconds since 1970 in UTC.
Plain: TypeAlias = int | float | Decimal | str | bool
AnyKind: TypeAlias = Kind | Literal["null", "other"]

_EXACT_BELOW = 2.0**53


def plain_constant(value: Value) -> Plain:
    """A constant as comparisons want it."""
    return microseconds(value) if isinstance(value, datetime) else value


def classify(value: Any) -> tuple[AnyKind, Any]:
    """The kind of a message's value and the value as comparisons want it.

    >>> classify(True), classify(3), classify("x"), classify(None), classify([1])
    (('boolean', True), ('number', 3), ('string', 'x'), ('null', None), ('other', None))
    """
    kind = type(value)
    if kind is str:
        return "string", value
    if kind is int or kind is float:
        return "number", value
    if kind is bool:
        return "boolean", value
    if value is None:
        return "null", None
    return _classify_rare(value)


def _classify_rare(value: Any) -> tuple[AnyKind, Any]:
    package = type(value).__module__.partition(".")[0]
    if package == "pandas" and type(value).__name__ in ("NaTType", "NAType"):
        return "null", None
    if isinstance(value, datetime):
        return "timestamp", microseconds(value)
    if isinstance(value, date):
        return "timestamp", microseconds(datetime(value.year, value.month, value.day))
    if isinstance(value, Decimal):
        return "number", float("nan") if value.is_nan() else value
    for plain, kind in ((str, "string"), (bool, "boolean"), (int, "number"), (float, "number")):
        if isinstance(value, plain):
            return kind, plain(value)  # type: ignore[return-value]
    if package == "numpy" and hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return _classify_numpy(value)
    if package == "pyarrow" and hasattr(value, "as_py"):
        return classify(value.as_py())
    return "other", None


def _classify_numpy(value: Any) -> tuple[AnyKind, Any]:
    if value.dtype.kind == "M":
        # Through whole microseconds: nanoseconds would come out of item() as a bare integer.
        value = value.astype("datetime64[us]")
        count = int(value.astype("int64"))
        return ("null", None) if count == -(2**63) else ("timestamp", count)
    if value.dtype.kind not in "biufU":
        return "other", None
    item = value.item()
    return classify(item) if type(item) in (bool, int, float, str) else ("other", None)


def is_nan(value: Plain) -> bool:
    """Whether a number is NaN, which stands above every other number."""
    return type(value) is float and math.isnan(value)


def below(value: Plain, constant: Plain) -> bool:
    """Whether a value of the constant's kind is less than the constant."""
    if type(value) is Decimal and type(constant) is float:
        return value < as_decimal(constant)
    return value < constant  # type: ignore[operator]  # False for NaN, as it should be


def same(value: Plain, constant: Plain) -> bool:
    """Whether a value of the constant's kind equals the constant."""
    if type(value) is Decimal and type(constant) is float:
        return value == as_decimal(constant)
    return value == constant


def as_decimal(constant: float) -> Decimal:
    """The decimal that a written number means next to decimals: 100.1 is 100.1 and not 100.099999….

    Shortest text keeps the order of floats, also among integers; from 2^53 on every float is a whole
    number and is taken exactly, so that it keeps its place among whole numbers too.
    """
    return Decimal(repr(constant)) if abs(constant) < _EXACT_BELOW else Decimal(constant)
