"""Values to cells: which threshold a value equals, or which two it lies between.

Thresholds are exact numbers that the column's type may be unable to hold (100.5 against whole
numbers), so each comes as the greatest value of that type not above it, and whether the two are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrowcast.jit import jit

Codes = NDArray[np.int32]


@jit
def _bin(value: float, low: float, scale: float, n_bins: int) -> int:
    """Which of the equally wide bins a value is in. Never falls as the value rises, whatever is rounded."""
    return int(min(max((value - low) * scale, 0.0), n_bins - 1.0))


@jit
def bins(floors: NDArray[Any]) -> tuple[float, float, NDArray[np.int64]]:
    """Where to start looking: equally wide bins over the floors, as (low, scale, first floor of each bin)."""
    low, high, n_finite = 0.0, 0.0, 0
    for k in range(floors.size):
        x = float(floors[k])
        if np.isfinite(x):
            low, high = (x if n_finite == 0 else low), x
            n_finite += 1
    n_bins = min(2 * n_finite, 65_536)
    scale = n_bins / (high - low) if high > low else 0.0
    if scale == 0.0 or not np.isfinite(scale):  # one value, or further apart than a float can say
        return 0.0, 0.0, np.array([0, floors.size])
    start = np.zeros(n_bins + 1, np.int64)
    for k in range(floors.size):
        start[_bin(float(floors[k]), low, scale, n_bins) + 1] += 1
    return low, scale, np.cumsum(start)


@jit
def cells(
    values: NDArray[Any],
    valid: NDArray[np.bool_],
    floors: NDArray[Any],
    exact: NDArray[np.bool_],
    low: float,
    scale: float,
    start: NDArray[np.int64],
) -> Codes:
    """2k for a value in the gap below threshold k, 2k + 1 for threshold k itself, −1 where not valid.

    `valid` has one entry per value, or none if all are; low, scale and start are those of `bins`. NaN
    lies above every number. O(1) for evenly spread thresholds, O(log n) at worst.
    """
    n, n_floors = values.size, floors.size
    out = np.empty(n, np.int32)
    for i in range(n):
        v = values[i]
        if valid.size and not valid[i]:
            out[i] = -1
        elif v != v:
            out[i] = 2 * n_floors
        else:
            b = _bin(float(v), low, scale, start.size - 1) if start.size > 2 else 0
            at, length = start[b], start[b + 1] - start[b]
            # Halving without branches: `at` counts the floors below v.
            while length > 1:
                half = length >> 1
                at += half if floors[at + half - 1] < v else 0
                length -= half
            if length == 1 and floors[at] < v:
                at += 1
            out[i] = 2 * at + (1 if at < n_floors and exact[at] and floors[at] == v else 0)
    return out
