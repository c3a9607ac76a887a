"""The cells that the sides of boxes cut space into, and which combinations of boxes share data."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from narrowcast.errors import InputError
from narrowcast.plans.queries.boxes import Floats
from narrowcast.plans.queries.sizes import Sizes

MAX_CELLS = 4_000_000


def arrangement(boxes: Floats, size: Sizes) -> tuple[Floats, NDArray[np.bool_]]:
    """The cells that all box sides cut space into: their sizes, and which boxes hold each (cells, boxes).

    Per axis the cells are the coordinates themselves and the open gaps between them, alternating, so that
    every point lies in exactly one. Cells that no box holds are left out.
    """
    d = boxes.shape[1]
    hulls = [_hulls(np.unique(boxes[:, j])) for j in range(d)]
    held = [_holds(hulls[j], boxes[:, j]) for j in range(d)]
    members = _product(held)
    shape = [len(hull) for hull in hulls]
    grid = np.stack([hull[at] for hull, at in zip(hulls, np.indices(shape).reshape(d, -1), strict=True)], axis=1)
    sizes = size(grid).reshape(shape)
    for axis in range(d):  # open gap = closed hull − its two ends
        sizes = np.moveaxis(sizes, axis, 0).copy()
        sizes[1::2] -= sizes[:-1:2] + sizes[2::2]
        sizes = np.moveaxis(sizes, 0, axis)
    some = members.any(axis=1)
    return np.maximum(sizes.ravel()[some], 0.0), members[some]


def combinations(boxes: Floats) -> NDArray[np.bool_]:
    """Every combination of boxes that a row can lie in, each once: (combinations, boxes).

    A null lies only where nothing is asked of its attribute, a NaN where there is no upper bound
    (Spark holds it greater than every number): each is a place of its own on an axis.
    """
    held = []
    for j in range(boxes.shape[1]):
        low, high = boxes[:, j, 0], boxes[:, j, 1]
        nan = np.isposinf(high)
        held.append(
            np.concatenate([_holds(_hulls(np.unique(boxes[:, j])), boxes[:, j]), [nan & np.isneginf(low)], [nan]])
        )
    return distinct_rows(_product(held))


def too_many_cells(boxes: Floats) -> bool:
    """Whether the sides of these boxes cut space into more cells than an exact cover is worked out for.

    >>> too_many_cells(np.array([[[0.0, 1.0], [0.0, 1.0]]]))
    False
    """
    sides = [2 * np.unique(boxes[:, j]).size + 1 for j in range(boxes.shape[1])]
    return float(np.prod(sides, dtype=float)) * len(boxes) > MAX_CELLS


def _hulls(cuts: Floats) -> Floats:
    """The closed hulls of an axis's cells: coordinate, gap, coordinate, …"""
    at = np.arange(2 * cuts.size - 1)
    return np.stack([cuts[at // 2], cuts[(at + 1) // 2]], axis=-1)


def _holds(hulls: Floats, sides: Floats) -> NDArray[np.bool_]:
    """Which boxes, by their sides on this axis, hold which cells of it: (cells, boxes)."""
    return np.asarray((hulls[:, None, 0] >= sides[:, 0]) & (hulls[:, None, 1] <= sides[:, 1]))


def _product(held: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Which boxes hold each cell of the whole grid, the last axis fastest."""
    k = held[0].shape[1]
    if float(np.prod([len(axis) for axis in held], dtype=float)) * k > MAX_CELLS:
        raise InputError(
            f"the exact cover of {k} queries in {len(held)} dimensions has too many cells",
            name="procedure",
            got="exact",
            hint="use procedure 'polygon', or method 'pair', which leaves sets apart that would be too large",
        )
    return reduce(lambda a, b: (a[:, None] & b[None]).reshape(-1, k), held)


def distinct_rows(members: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The rows that hold anything, each once, in a fixed order."""
    bits = np.packbits(members, axis=1)
    codes = np.ascontiguousarray(bits).view(np.dtype((np.void, bits.shape[1]))).ravel()
    _, first = np.unique(codes, return_index=True)
    rows = members[first]
    return np.asarray(rows[rows.any(axis=1)])
