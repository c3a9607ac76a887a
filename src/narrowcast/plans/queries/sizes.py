"""How large a query's answer is: by area, by a histogram of the data, by its points, or as you say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike

from narrowcast.errors import InputError
from narrowcast.model.arrays import frozen
from narrowcast.plans.queries.boxes import Floats, lows_highs
from narrowcast.plans.queries.kernels.box_sizes import (
    AREA,
    HISTOGRAM,
    POINT_LEAF,
    POINTS,
    Measure,
    box_sizes,
    node_boxes,
)
from narrowcast.plans.queries.kernels.kd_order import kd_order, node_capacity

SizeFunction = Callable[[Floats], ArrayLike]


def _measure(kind: int, *, whole: Any = (), real: Any = (), rows: Any = ((),)) -> Measure:
    return Measure(kind, np.array(whole, np.int64), np.array(real, np.float64), np.array(rows, np.float64))


_BY_AREA = _measure(AREA)


def _by_kernel(measure: Measure, boxes: Floats) -> Floats:
    return cast(Floats, box_sizes(*lows_highs(np.asarray(boxes, np.float64)), measure))


@dataclass(frozen=True, slots=True)
class Area:
    """One object per unit of area: the density of the paper's study.

    >>> Area()(np.array([[[0.0, 2.0], [0.0, 3.0]]]))
    array([6.])
    """

    name: ClassVar[str] = "area"

    def measure(self, d: int) -> Measure:
        return _BY_AREA

    def __call__(self, boxes: Floats) -> Floats:
        return cast(Floats, np.prod(boxes[:, :, 1] - boxes[:, :, 0], axis=1))


@dataclass(frozen=True, eq=False, init=False)
class GridHistogram:
    """Counts on a grid, spread evenly inside each cell; what lies outside the grid counts as nothing.

    `counts` is d-dimensional and `edges` has one ascending array per axis, one longer than the counts.
    Good when the table is large: the counts are one scan of it. A box takes 4^d lookups of prefix sums,
    whatever its extent; exact for boxes that end on edges.

    >>> grid = GridHistogram([[4, 0], [2, 2]], edges=[[0, 1, 2], [0, 10, 20]])
    >>> grid(np.array([[[0.0, 2.0], [0.0, 10.0]], [[0.5, 1.0], [0.0, 5.0]]]))
    array([6., 1.])
    """

    name: ClassVar[str] = "histogram"
    counts: Floats
    edges: tuple[Floats, ...]
    _measure: Measure = field(repr=False)

    def __init__(self, counts: ArrayLike, edges: Sequence[ArrayLike]) -> None:
        cells = np.array(counts, dtype=np.float64)
        cuts = tuple(np.array(axis, dtype=np.float64) for axis in edges)
        if cells.ndim != len(cuts) or cells.ndim == 0:
            raise InputError(f"edges must have {cells.ndim} entries, got {len(cuts)}", name="edges", got=len(cuts))
        if not (np.isfinite(cells) & (cells >= 0)).all():
            raise InputError("counts must be finite and zero or more", name="counts")
        for axis, cut in enumerate(cuts):
            if cut.shape != (cells.shape[axis] + 1,) or cells.shape[axis] == 0:
                raise InputError(
                    f"edges[{axis}] must have {cells.shape[axis] + 1} entries, one more than cells, got {cut.shape}",
                    name="edges",
                )
            if not (np.isfinite(cut).all() and (np.diff(cut) > 0).all()):
                raise InputError(f"edges[{axis}] must be finite and ascending", name="edges")
        prefix = np.zeros([n + 1 for n in cells.shape])
        prefix[(slice(1, None),) * cells.ndim] = cells
        for axis in range(cells.ndim):
            np.cumsum(prefix, axis=axis, out=prefix)
        begins = np.cumsum([0, *(cut.size for cut in cuts)])
        strides = np.array(prefix.strides) // prefix.itemsize
        measure = _measure(
            HISTOGRAM, whole=np.concatenate([begins, strides]), real=np.concatenate([*cuts, prefix.ravel()])
        )
        for name, value in (("counts", frozen(cells)), ("edges", tuple(map(frozen, cuts))), ("_measure", measure)):
            object.__setattr__(self, name, value)

    @classmethod
    def from_points(cls, points: ArrayLike, bins: int = 64) -> GridHistogram:
        """A grid of equal cells over the points' bounding box; rows with a NaN match no range and are left out."""
        rows = _rows(points)
        low = rows.min(axis=0) if len(rows) else np.zeros(rows.shape[1])
        high = rows.max(axis=0) if len(rows) else np.ones(rows.shape[1])
        high = np.where(high > low, high, low + 1.0)
        counts, edges = np.histogramdd(rows, bins=[np.linspace(a, b, bins + 1) for a, b in zip(low, high, strict=True)])
        return cls(counts, edges)

    def measure(self, d: int) -> Measure:
        _same_dimensions(self.counts.ndim, d)
        return self._measure

    def __call__(self, boxes: Floats) -> Floats:
        return _by_kernel(self.measure(boxes.shape[1]), boxes)


@dataclass(frozen=True, eq=False, init=False)
class PointCounts:
    """Exact counts of the points inside a closed box, borders and duplicates included.

    Good while the points fit in memory; a box takes O(n^(1 − 1/d)) by a k-d tree.

    >>> PointCounts([[0, 0], [1, 1], [1, 1], [2, 5]])(np.array([[[0.0, 1.0], [1.0, 9.0]]]))
    array([2.])
    """

    name: ClassVar[str] = "counts"
    points: Floats
    _measure: Measure = field(repr=False)

    def __init__(self, points: ArrayLike) -> None:
        rows = _rows(points)
        rows = np.ascontiguousarray(rows[kd_order(rows, POINT_LEAF)])
        low, high = node_boxes(rows, node_capacity(len(rows), POINT_LEAF))
        measure = _measure(POINTS, whole=(len(rows), len(low)), rows=np.concatenate([rows, low, high]))
        object.__setattr__(self, "points", frozen(rows))
        object.__setattr__(self, "_measure", measure)

    def measure(self, d: int) -> Measure:
        _same_dimensions(self.points.shape[1], d)
        return self._measure

    def __call__(self, boxes: Floats) -> Floats:
        return _by_kernel(self.measure(boxes.shape[1]), boxes)


@dataclass(frozen=True, slots=True)
class Given:
    """Sizes by a function of the caller's on (m, d, 2) arrays; checked, never assumed monotone."""

    name: ClassVar[str] = "function"
    function: SizeFunction

    def __call__(self, boxes: Floats) -> Floats:
        sizes = np.asarray(self.function(boxes), dtype=np.float64)
        if sizes.shape != (len(boxes),):
            raise InputError(f"size must have shape ({len(boxes)},), got {sizes.shape}", name="size", got=sizes.shape)
        if not (np.isfinite(sizes) & (sizes >= 0)).all():
            raise InputError("size must return finite numbers, zero or more", name="size")
        return sizes


Sizes = Area | GridHistogram | PointCounts | Given


def as_sizes(size: object) -> Sizes:
    """None is the area; our own sizes stay; any other callable is trusted to give sizes."""
    if size is None:
        return Area()
    if isinstance(size, Area | GridHistogram | PointCounts | Given):
        return size
    if callable(size):
        return Given(size)
    raise InputError(
        f"size must be None, a GridHistogram, a PointCounts or a function of boxes, got {type(size).__name__}",
        name="size",
        got=type(size).__name__,
    )


def _rows(points: ArrayLike) -> Floats:
    rows = np.array(points, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise InputError(f"points must have shape (rows, d), got {rows.shape}", name="points", got=rows.shape)
    return rows[~np.isnan(rows).any(axis=1)]


def _same_dimensions(have: int, d: int) -> None:
    if have != d:
        raise InputError(f"size must have {d} dimensions, as boxes, got {have}", name="size", got=have, allowed=d)
