"""Where more of a budget stops paying: the knee of a curve or surface."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# A bend of less than this share of the whole fall is no knee.
FLAT = 0.02
DEFINITION = "the point farthest below the straight line from the least to the largest budget, both scaled to 1"


def knee(budgets: Sequence[Sequence[float]], costs: Sequence[float]) -> int | None:
    """The index of the knee, or None where the fall is as good as straight or there is none.

    The definition of Kneedle (Satopää et al. 2011) without smoothing: budgets and costs are scaled to [0, 1] and the
    point farthest below the line from (0, 1) to (1, 0) is taken. Of several budgets the mean of the shares counts:
    a point is good where it has much of the fall for little of all budgets.

    >>> knee([[1], [2], [3], [10]], [100.0, 40.0, 30.0, 20.0])
    2
    >>> knee([[1], [2], [3]], [30.0, 20.0, 10.0]) is None
    True
    """
    x, y = np.array(budgets, np.float64), np.array(costs, np.float64)
    if len(x) < 3 or y.max() <= y.min() or (np.ptp(x, axis=0) == 0).any():
        return None
    below = 1 - _scaled(x).mean(axis=1) - _scaled(y[:, None])[:, 0]
    at = int(np.argmax(below))
    return at if below[at] > FLAT else None


def knee_of(line: Sequence[tuple[float, float]]) -> float | None:
    """The budget at the knee of a curve of (budget, cost) points; None where there is none.

    >>> knee_of([(1, 100.0), (2, 40.0), (3, 30.0), (10, 20.0)])
    3
    """
    at = knee([[budget] for budget, _ in line], [cost for _, cost in line])
    return None if at is None else line[at][0]


def _scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    low = values.min(axis=0)
    scaled: NDArray[np.float64] = (values - low) / (values.max(axis=0) - low)
    return scaled
