"""Sums of sparse rows by group and by pairs of columns, as they are defined: dictionaries and loops."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

Found = dict[tuple[int, int], tuple[int, ...]]


def _added(found: Found, key: tuple[int, int], values: Sequence[int]) -> None:
    found[key] = tuple(a + b for a, b in zip(found.get(key, (0,) * len(values)), values, strict=True))


def by_group(rows: Iterable[tuple[int, Sequence[int], Sequence[int]]]) -> Found:
    """(group, column) → sums, from rows of (group, columns, values); a row of zeros adds nothing."""
    found: Found = {}
    for group, cols, values in rows:
        for col in cols if np.any(values) else ():
            _added(found, (group, col), values)
    return found


def by_pair(rows: Iterable[tuple[int, Sequence[int], Sequence[int]]]) -> Found:
    """(column, later column) → sums of the rows that have both."""
    found: Found = {}
    for _, cols, values in rows:
        for i, col in enumerate(cols if np.any(values) else ()):
            for other in cols[i + 1 :]:
                _added(found, (col, other), values)
    return found
