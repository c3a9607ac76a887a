"""Range queries as closed boxes: an (n, d, 2) array of lows and highs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from numpy.typing import ArrayLike, NDArray

from narrowcast.errors import InputError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def as_boxes(values: ArrayLike, *, finite: bool = True) -> Floats:
    """A checked copy that nobody can change. Every low is at most its high; no NaN."""
    try:
        boxes = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"boxes must be numbers of shape (n, d, 2): {error}", name="boxes") from None
    if boxes.size == 0 and boxes.ndim < 3:
        boxes = boxes.reshape(0, 1, 2)
    if boxes.ndim != 3 or boxes.shape[2] != 2 or boxes.shape[1] == 0:
        raise InputError(
            f"boxes must have shape (n, d, 2), got {boxes.shape}",
            name="boxes",
            got=boxes.shape,
            hint="one row per query, one (low, high) per dimension",
        )
    bad = ~(boxes[:, :, 0] <= boxes[:, :, 1])
    if finite:
        bad |= ~np.isfinite(boxes).all(axis=2)
    if bad.any():
        q, j = (int(x) for x in np.argwhere(bad)[0])
        low, high = boxes[q, j]
        need = "(low, high) with low <= high, both finite" if finite else "(low, high) with low <= high"
        raise InputError(f"boxes[{q}, {j}] must be {need}, got ({low}, {high})", name="boxes", got=(low, high))
    boxes.flags.writeable = False
    return boxes


def bounding(boxes: Floats) -> Floats:
    """The smallest box around (k, d, 2) boxes, as (d, 2)."""
    return np.stack([boxes[:, :, 0].min(axis=0), boxes[:, :, 1].max(axis=0)], axis=-1)


def bounding_each(boxes: Floats, sets: Sequence[Sequence[int]]) -> Floats:
    """The bounding box of each set of rows, (sets, d, 2), without a loop over sets."""
    if not sets:
        return np.zeros((0, *boxes.shape[1:]))
    rows, starts = flat(sets)
    low = np.minimum.reduceat(boxes[rows, :, 0], starts, axis=0)
    high = np.maximum.reduceat(boxes[rows, :, 1], starts, axis=0)
    return np.stack([low, high], axis=-1)


def flat(sets: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """All members end to end, and where each set starts. No set is empty."""
    lengths = np.fromiter(map(len, sets), np.int64, len(sets))
    rows = np.fromiter(chain.from_iterable(sets), np.int64, int(lengths.sum()))
    return rows, np.cumsum(lengths) - lengths


def unions(box: Floats, others: Floats) -> Floats:
    """The bounding box of one (d, 2) box with each of (m, d, 2) others."""
    return np.stack([np.minimum(box[:, 0], others[:, :, 0]), np.maximum(box[:, 1], others[:, :, 1])], axis=-1)


def intersections(box: Floats, others: Floats) -> Floats:
    """What one box shares with each of the others; low > high where it is nothing."""
    return np.stack([np.maximum(box[:, 0], others[:, :, 0]), np.minimum(box[:, 1], others[:, :, 1])], axis=-1)


def is_box(boxes: Floats) -> NDArray[np.bool_]:
    """Which of (m, d, 2) hold a point at all."""
    return np.asarray((boxes[:, :, 0] <= boxes[:, :, 1]).all(axis=1))


def lows_highs(boxes: Floats) -> tuple[Floats, Floats]:
    """The two (n, d) arrays that kernels read: fresh copies, since a read-only view would compile them twice."""
    return boxes[:, :, 0].copy(order="C"), boxes[:, :, 1].copy(order="C")
