"""Numbers of groups, sessions and sets mean nothing: before plans are compared they are made to agree."""

from __future__ import annotations

import numpy as np

from narrowcast.model.arrays import Ints


def agreed(new: Ints, old: Ints, n: int) -> Ints:
    """A number below n for each of n labels of `new`, all different, so that as many things as possible keep theirs.

    `new` and `old` are the labels of the same things; −1 is none.

    >>> agreed(np.array([0, 0, 1, 2]), np.array([2, 2, 0, -1]), 3).tolist()
    [2, 0, 1]
    """
    from scipy.optimize import linear_sum_assignment

    both = (new >= 0) & (old >= 0)
    shared = np.bincount(new[both] * n + old[both], minlength=n * n).reshape(n, n)
    found: Ints = linear_sum_assignment(shared, maximize=True)[1].astype(np.int64)
    return found
