"""Columns of a plan's tables as arrays; a cell that cannot be what it should be is an InputError that names it."""

from __future__ import annotations

from typing import Any

import numpy as np

from narrowcast.errors import InputError
from narrowcast.model.arrays import Floats, Ints
from narrowcast.model.plan import Tables

LARGEST_NUMBER = 1 << 31


def texts(plan: Tables, table: str, column: str) -> Any:
    """A column of names as an Arrow array of strings, none missing."""
    import pyarrow as pa

    values = plan.tables[table][column]
    _refuse_nulls(values, table, column)
    return values.cast(pa.string()).combine_chunks() if len(values) else pa.array([], pa.string())


def whole(plan: Tables, table: str, column: str) -> Ints:
    """A column of whole numbers, zero or more."""
    import pyarrow as pa

    values = plan.tables[table][column]
    _refuse_nulls(values, table, column)
    if len(values) and not pa.types.is_integer(values.type):
        raise InputError(f"table {table}: {column} must hold whole numbers, got {values.type}", name=column)
    result: Ints = values.to_numpy().astype(np.int64)
    bad = (result < 0) | (result > LARGEST_NUMBER)
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(f"table {table}, row {at}: {column} is out of range, got {result[at]}", name=column)
    return result


def amounts(plan: Tables, table: str, column: str) -> Floats:
    """A column of finite numbers, zero or more."""
    result = numbers(plan, table, column)
    bad = ~np.isfinite(result) | (result < 0)
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(f"table {table}, row {at}: {column} must be zero or more, got {result[at]}", name=column)
    return result


def numbers(plan: Tables, table: str, column: str) -> Floats:
    """A column of numbers; a missing one is NaN."""
    import pyarrow as pa

    values = plan.tables[table][column]
    if len(values) and not (pa.types.is_floating(values.type) or pa.types.is_integer(values.type)):
        raise InputError(f"table {table}: {column} must hold numbers, got {values.type}", name=column)
    result: Floats = values.cast(pa.float64()).fill_null(float("nan")).to_numpy() if len(values) else np.zeros(0)
    return result


def places(values: Any, names: Any) -> Ints:
    """Where each value stands among the names; −1 for one that is not there."""
    import pyarrow.compute as pc

    found: Ints = pc.index_in(values, value_set=names).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def constant(plan: Tables, name: str, default: float) -> float:
    """A number among the plan's parameters, finite and zero or more."""
    value = plan.parameters.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value) or value < 0:
        raise InputError(f"parameter {name} must be a number, zero or more, got {value!r}", name=name)
    return float(value)


def _refuse_nulls(values: Any, table: str, column: str) -> None:
    if values.null_count:
        at = values.is_null().to_pylist().index(True)
        raise InputError(f"table {table}, row {at}: {column} is missing", name=column)
