"""From what each user chose to who chose each flow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from narrowcast.model.arrays import Ints


def turn(chosen: NDArray[np.int32], n_flows: int) -> tuple[Ints, NDArray[Any]]:
    """(offsets, rows) by flow, rows ascending, of a matrix with one row of distinct flows per user.

    One counting sort: O(pairs), with 32-bit indices while they fit.
    """
    n, m = chosen.shape
    starts: NDArray[Any] = np.arange(n + 1, dtype=np.int64) * m
    if n * m < 2**31:
        starts = starts.astype(np.int32)
    marks = np.ones(n * m, np.int8)
    turned = csr_array((marks, chosen.ravel(), starts), shape=(n, n_flows)).tocsc()
    return turned.indptr.astype(np.int64), turned.indices
