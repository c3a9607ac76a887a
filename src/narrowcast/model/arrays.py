"""Turning what a caller gives into arrays that cannot change under a frozen noun."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from narrowcast.errors import InputError

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view."""
    view = array.view()
    view.flags.writeable = False
    return view


def distinct(values: Ints) -> Ints:
    """Each value once, ascending. By sorting: np.unique goes by hashing, far slower for millions of numbers."""
    ordered: Ints = np.sort(values)
    new = np.ones(ordered.size, np.bool_)
    new[1:] = ordered[1:] != ordered[:-1]
    return ordered[new]


def indices(name: str, values: ArrayLike, *, low: int = 0, high: int | None = None) -> Ints:
    """A 1-d array of whole numbers in [low, high)."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(f"{name} must be a 1-d array, got {array.ndim}-d", name=name, got=array.shape)
    whole = array.dtype.kind in "iu" or (array.dtype.kind == "f" and np.array_equal(array, np.trunc(array)))
    if array.size and not whole:
        raise InputError(f"{name} must be whole numbers, got {array.dtype}", name=name, got=str(array.dtype))
    result = array.astype(np.int64, copy=False)
    bad = result < low if high is None else (result < low) | (result >= high)
    if bad.any():
        at = int(np.argmax(bad))
        bound = "" if high is None else f" and below {high}"
        raise InputError(
            f"{name}[{at}] must be at least {low}{bound}, got {result[at]}", name=name, got=int(result[at])
        )
    return result


def amounts(name: str, values: ArrayLike, n: int | None = None, *, positive: bool = False) -> Floats:
    """A 1-d array of n finite numbers, none negative; a single number stands for n equal ones."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be numbers: {error}", name=name) from None
    if array.ndim == 0 and n is not None:
        array = np.full(n, float(array))
    if array.ndim != 1 or (n is not None and array.size != n):
        raise InputError(
            f"{name} must have shape ({'n' if n is None else n},), got {array.shape}", name=name, got=array.shape
        )
    bad = ~np.isfinite(array) | (array <= 0 if positive else array < 0)
    if bad.any():
        at = int(np.argmax(bad))
        kind = "positive" if positive else "zero or more"
        raise InputError(f"{name}[{at}] must be finite and {kind}, got {array[at]}", name=name, got=float(array[at]))
    return array
