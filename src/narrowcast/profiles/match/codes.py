"""Columns to codes: exactly, whatever the column's type.

A column's values are never rounded. Instead each threshold is brought to the column's own type as
the greatest value not above it, with a note whether it is equal: 100.5 against whole numbers becomes
"100, and not equal", one microsecond against seconds "0, and not equal". Only nanoseconds lose their
last digits: moments are whole microseconds in this language, as in Spark.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable
from decimal import ROUND_FLOOR, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from narrowcast.profiles.kernels.codes import bins
from narrowcast.profiles.kernels.codes import cells as locate
from narrowcast.profiles.match.cells import NULL_CODE, Cells
from narrowcast.profiles.sql.values import as_decimal

Codes = NDArray[np.int32]
Encoder = Callable[[Any], Codes]  # an Arrow array → a code per value

_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_DAY_US = 86_400_000_000
_ALL_VALID = np.empty(0, np.bool_)


def kind_of(type_: pa.DataType) -> str:
    """The kind of a column's values: number, string, boolean, timestamp, other, or null if it holds nothing."""
    if pa.types.is_dictionary(type_):
        return kind_of(type_.value_type)
    if isinstance(type_, pa.BaseExtensionType):
        return kind_of(type_.storage_type)
    if pa.types.is_null(type_):
        return "null"
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        return "number"
    if pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_):
        return "string"
    if pa.types.is_boolean(type_):
        return "boolean"
    return "timestamp" if pa.types.is_timestamp(type_) or pa.types.is_date(type_) else "other"


def encoder(cells: Cells, type_: pa.DataType) -> Encoder:
    """A function from arrays of this type to codes. Making it is O(constants); using it O(values · log constants)."""
    if pa.types.is_dictionary(type_):
        return _Dictionary(encoder(cells, type_.value_type))
    kind = kind_of(type_)
    if kind == "number":
        return _number_encoder(cells, type_)
    if kind == "timestamp":
        return _timestamp_encoder(cells, type_)
    if kind == "string":
        return _Strings(cells)
    if kind == "boolean":
        return _Booleans(cells.starts["boolean"])
    return _Others(cells.starts["other"])


def _number_encoder(cells: Cells, type_: pa.DataType) -> Encoder:
    start = cells.starts["number"]
    if pa.types.is_floating(type_):
        return _Located(start, 0, *_float_floors(cells.numbers))
    if pa.types.is_integer(type_):
        dtype = np.dtype(np.uint64 if type_ == pa.uint64() else np.int64)
        return _Located(start, *_whole_floors(map(_floor, cells.numbers), dtype))
    with localcontext(prec=1000):
        scaled = [_scaled_floor(value, type_.scale) for value in cells.numbers]
    if type_.bit_width == 128 and type_.precision <= 18:
        return _SmallDecimals(start, *_whole_floors(scaled, np.dtype(np.int64)))
    return _Decimals(start, scaled, type_.scale)


def _timestamp_encoder(cells: Cells, type_: pa.DataType) -> Encoder:
    if pa.types.is_date32(type_):
        floors = [divmod(t, _DAY_US) for t in cells.timestamps]
    elif pa.types.is_date64(type_):
        floors = [divmod(t, 1_000) for t in cells.timestamps]
    else:
        floors = [divmod(t, _MICROSECONDS.get(type_.unit, 1)) for t in cells.timestamps]
    whole = ((floor, rest == 0) for floor, rest in floors)
    return _Located(cells.starts["timestamp"], *_whole_floors(whole, np.dtype(np.int64)))


def _floor(value: int | float) -> tuple[int | float, bool]:
    """The greatest whole number not above a value, and whether it is equal; infinities stay."""
    if isinstance(value, int) or math.isinf(value):
        return value, isinstance(value, int)
    floor = math.floor(value)
    return floor, floor == value


def _scaled_floor(value: int | float, scale: int) -> tuple[int | float, bool]:
    """The same in units of 10^−scale, with floats as the decimals they mean: 100.1 is 1001 tenths."""
    if isinstance(value, float) and math.isinf(value):
        return value, False
    scaled = (as_decimal(value) if isinstance(value, float) else Decimal(value)).scaleb(scale)
    floor = scaled.to_integral_value(ROUND_FLOOR)
    return int(floor), floor == scaled


def _whole_floors(
    floors: Iterable[tuple[int | float, bool]], dtype: np.dtype[Any]
) -> tuple[int, NDArray[Any], NDArray[np.bool_]]:
    """Those that the type can hold, and how many lie below all that it can hold."""
    low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    listed = list(floors)
    below = sum(floor < low for floor, _ in listed)
    inside = [(floor, exact) for floor, exact in listed if low <= floor <= high]
    return below, np.array([f for f, _ in inside], dtype), np.array([e for _, e in inside], np.bool_)


def _float_floors(values: Iterable[int | float]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The greatest float64 not above each value, and whether it is equal."""
    floors, exact = [], []
    for value in values:
        try:
            near = float(value)
        except OverflowError:
            near = math.inf if value > 0 else -math.inf
        exact.append(near == value)
        floors.append(near if near <= value else math.nextafter(near, -math.inf))
    return np.array(floors, np.float64), np.array(exact, np.bool_)


def _validity(array: pa.Array) -> NDArray[np.bool_]:
    """Which values are not null; empty if all are."""
    return _ALL_VALID if array.null_count == 0 else array.is_valid().to_numpy(zero_copy_only=False)


def _plain(array: pa.Array, type_: pa.DataType) -> NDArray[Any]:
    """The stored numbers, with zero where null."""
    if array.type != type_:
        array = array.cast(type_)
    if array.null_count:
        array = pc.fill_null(array, pa.scalar(0, type_))
    values: NDArray[Any] = array.to_numpy()
    return values


class _Located:
    """Numbers, dates and timestamps, by binary search in thresholds of the column's own type."""

    def __init__(self, start: int, below: int, floors: NDArray[Any], exact: NDArray[np.bool_]) -> None:
        self.shift, self.floors, self.exact = start + 2 * below, floors, exact
        self.bins = bins(floors)

    def values(self, array: pa.Array) -> NDArray[Any]:
        if pa.types.is_date32(array.type):
            array = array.cast(pa.int32())
        values = _plain(array, pa.from_numpy_dtype(self.floors.dtype))
        return values // 1_000 if pa.types.is_timestamp(array.type) and array.type.unit == "ns" else values

    def __call__(self, array: pa.Array) -> Codes:
        valid = _validity(array)
        values = self.values(array)
        values.flags.writeable = False  # as Arrow's own are: one compiled loop serves both
        codes = locate(values, valid, self.floors, self.exact, *self.bins)
        codes += np.int32(self.shift)
        if valid.size:
            codes[~valid] = NULL_CODE
        return codes


class _SmallDecimals(_Located):
    """decimal128 of at most 18 digits: the low 64 bits are the number."""

    def values(self, array: pa.Array) -> NDArray[Any]:
        words = np.frombuffer(array.buffers()[1], np.int64)
        low = words[2 * array.offset : 2 * (array.offset + len(array)) : 2].copy()
        valid = _validity(array)
        if valid.size:
            low[~valid] = 0
        return low


class _Decimals:
    """Other decimals, one by one."""

    def __init__(self, start: int, scaled: list[tuple[int | float, bool]], scale: int) -> None:
        self.start, self.scale = start, scale
        self.floors, self.exact = [floor for floor, _ in scaled], [exact for _, exact in scaled]

    def _code(self, value: Decimal | None) -> int:
        if value is None:
            return NULL_CODE
        with localcontext(prec=1000):
            unscaled = int(value.scaleb(self.scale))
        at = bisect_left(self.floors, unscaled)
        equal = at < len(self.floors) and self.exact[at] and self.floors[at] == unscaled
        return self.start + 2 * at + equal

    def __call__(self, array: pa.Array) -> Codes:
        return np.fromiter(map(self._code, array.to_pylist()), np.int32, len(array))


class _Booleans:
    def __init__(self, start: int) -> None:
        self.start = start

    def __call__(self, array: pa.Array) -> Codes:
        codes = pc.add(array.cast(pa.int32()), pa.scalar(self.start, pa.int32()))
        result: Codes = pc.fill_null(codes, NULL_CODE).to_numpy()
        return result


class _Others:
    """Lists, bytes and whatever else no constant can equal; a column of nothing but nulls too."""

    def __init__(self, code: int) -> None:
        self.code = code

    def __call__(self, array: pa.Array) -> Codes:
        if pa.types.is_null(array.type):
            return np.full(len(array), NULL_CODE, np.int32)
        return np.where(array.is_valid().to_numpy(zero_copy_only=False), self.code, NULL_CODE).astype(np.int32)


class _Dictionary:
    """Dictionary-encoded columns: only the dictionary's values are looked up."""

    def __init__(self, values: Encoder) -> None:
        self.values = values

    def __call__(self, array: pa.Array) -> Codes:
        values, n = array.dictionary, len(array.dictionary)
        place: NDArray[np.int64] = pc.fill_null(array.indices.cast(pa.int64()), n).to_numpy()
        if n > len(array):  # a dictionary for a longer column: only what is used here
            used, place = np.unique(place, return_inverse=True)
            values = values.take(pa.array(used[used < n]))
        table = np.append(self.values(values), np.int32(NULL_CODE)).astype(np.int32)
        return table[place]


class _Strings:
    """Strings: a hash look-up where only equality is asked, else a search per distinct value."""

    def __init__(self, cells: Cells) -> None:
        self.start, self.strings, self.ordered = cells.starts["string"], cells.strings, cells.ordered
        self.place = {value: k for k, value in enumerate(cells.strings)}
        self.constants = pa.array(cells.strings, pa.string())

    def _code(self, value: str | None) -> int:
        if value is None:
            return NULL_CODE
        at = self.place.get(value)
        if at is not None:
            return self.start + 2 * at + 1
        # Where only equality is asked, every gap gives the same answers and the first will do.
        return self.start + 2 * (bisect_left(self.strings, value) if self.ordered else 0)

    def __call__(self, array: pa.Array) -> Codes:
        if self.ordered and len(array) > 64:
            encoded = array.dictionary_encode()
            return _Dictionary(self)(encoded) if len(encoded.dictionary) < len(array) else self._each(array)
        # A hash table over the constants is built on every call: worth it for columns, not for a message or two.
        if self.ordered or 8 * len(array) < len(self.constants):
            return self._each(array)
        place = pc.index_in(array, value_set=self.constants.cast(array.type))
        codes = pc.add(pc.multiply(place, pa.scalar(2, pa.int32())), pa.scalar(self.start + 1, pa.int32()))
        result: Codes = pc.fill_null(codes, self.start).to_numpy().copy()
        if array.null_count:
            result[~_validity(array)] = NULL_CODE
        return result

    def _each(self, array: pa.Array) -> Codes:
        return np.fromiter(map(self._code, array.to_pylist()), np.int32, len(array))
