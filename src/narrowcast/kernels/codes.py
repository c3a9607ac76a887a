"""Values to cells: which threshold a value equals, or which two it lies between.

Thresholds are exact numbers that the column's type may be unable to hold (100.5 against whole
numbers), so each comes as the greatest value of that type not above it, and whether the two are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from narrowcast.kernels._jit import jit

Codes = NDArray[np.int32]


@jit
def cells(values: NDArray[Any], valid: NDArray[np.bool_], floors: NDArray[Any], exact: NDArray[np.bool_]) -> Codes:
    """2k for a value in the gap below threshold k, 2k + 1 for threshold k itself, −1 where not valid.

    `valid` has one entry per value, or none if all are. NaN lies above every number.
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
            # Halving without branches: `at` counts the floors below v.
            at, length = 0, n_floors
            while length > 1:
                half = length >> 1
                at += half if floors[at + half - 1] < v else 0
                length -= half
            if length == 1 and floors[at] < v:
                at += 1
            out[i] = 2 * at + (1 if at < n_floors and exact[at] and floors[at] == v else 0)
    return out
