"""Merge procedures: which query answers a set of queries (Crespo et al., §5.1, figure 4).

A procedure turns the boxes of a set into its merged query and says what that query sends. `rectangle`
and `polygon` answer with one query on one channel; `exact` with one per combination of queries that
share data, so that a client hears nothing it did not ask for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from narrowcast.errors import InputError
from narrowcast.queries.boxes import Floats, bounding, intersections, is_box, unions
from narrowcast.queries.sizes import Sizes

MAX_POLYGON = 8  # inclusion–exclusion over its boxes has 2^8 terms
MAX_CELLS = 4_000_000


class Sent(NamedTuple):
    """What a set's answer is made of: channels, objects on them, and how many each member hears."""

    channels: int
    size: float
    heard: Floats


class Procedure(Protocol):
    """The name, and what the merged query of some boxes is and sends."""

    @property
    def name(self) -> str: ...

    def pieces(self, boxes: Floats, size: Sizes) -> Floats:
        """Boxes whose union is the merged query, (k, d, 2)."""
        ...

    def sent(self, boxes: Floats, alone: Floats, size: Sizes) -> Sent:
        """What goes out for a set with these boxes, whose own sizes are `alone`."""
        ...


@dataclass(frozen=True, slots=True)
class Rectangle:
    """The bounding box: simplest, and the widest."""

    name: str = "rectangle"

    def pieces(self, boxes: Floats, size: Sizes) -> Floats:
        return bounding(boxes)[None]

    def sent(self, boxes: Floats, alone: Floats, size: Sizes) -> Sent:
        total = float(size(self.pieces(boxes, size))[0])
        return Sent(1, total, np.full(len(boxes), total))


@dataclass(frozen=True, slots=True)
class Polygon:
    """One query that is a disjunction of at most `boxes` boxes: never wider than the bounding box.

    While there are too many, the two boxes whose bounding box wastes least become one. O(k²) sizes.
    """

    boxes: int = 4
    name: str = "polygon"

    def __post_init__(self) -> None:
        if not 1 <= self.boxes <= MAX_POLYGON:
            raise InputError(
                f"a polygon of {self.boxes} boxes; allowed: 1 to {MAX_POLYGON}", name="polygon", got=self.boxes
            )

    def pieces(self, boxes: Floats, size: Sizes) -> Floats:
        kept = _outermost(boxes)
        if len(kept) <= self.boxes:
            return kept
        waste = np.stack([_waste(box, kept, size) for box in kept])
        np.fill_diagonal(waste, np.inf)
        while len(kept) > self.boxes:
            i, j = divmod(int(waste.argmin()), len(kept))
            joined = unions(kept[i], kept[j : j + 1])[0]
            stay = ~_inside(kept, joined)
            stay[[i, j]] = False
            kept = np.concatenate([kept[stay], joined[None]])
            waste = np.pad(waste[np.ix_(stay, stay)], (0, 1), constant_values=np.inf)
            waste[-1, :-1] = waste[:-1, -1] = _waste(joined, kept[:-1], size)
        return kept

    def sent(self, boxes: Floats, alone: Floats, size: Sizes) -> Sent:
        total = union_size(self.pieces(boxes, size), size)
        return Sent(1, total, np.full(len(boxes), total))


@dataclass(frozen=True, slots=True)
class Exact:
    """Disjoint pieces, one channel each, that clients put together: nothing irrelevant is heard.

    A piece is the data that exactly one combination of the set's queries shares; two boxes that only
    touch share their border, which is a piece of its own, since rows may lie on it.
    """

    name: str = "exact"

    def pieces(self, boxes: Floats, size: Sizes) -> Floats:
        return _outermost(boxes)

    def sent(self, boxes: Floats, alone: Floats, size: Sizes) -> Sent:
        if len(boxes) == 1:
            return Sent(1, float(alone[0]), alone)
        return Sent(len(combinations(boxes)), float(arrangement(boxes, size)[0].sum()), alone)


PROCEDURES: dict[str, Procedure] = {"rectangle": Rectangle(), "polygon": Polygon(), "exact": Exact()}


def as_procedure(procedure: str | Procedure) -> Procedure:
    """A procedure by its name, or one of your own."""
    if not isinstance(procedure, str):
        return procedure
    if procedure not in PROCEDURES:
        names = ", ".join(PROCEDURES)
        raise InputError(
            f"procedure is {procedure!r}; allowed: {names}", name="procedure", allowed=tuple(PROCEDURES), got=procedure
        )
    return PROCEDURES[procedure]


def union_size(boxes: Floats, size: Sizes) -> float:
    """The size of a union of few boxes, by inclusion and exclusion: right also for points on shared borders."""
    terms, signs = boxes[:1], np.ones(1)
    for box in boxes[1:]:
        shared = intersections(box, terms)
        real = is_box(shared)
        terms = np.concatenate([terms, box[None], shared[real]])
        signs = np.concatenate([signs, np.ones(1), -signs[real]])
    return max(0.0, float(signs @ size(terms)))


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
    members = np.unique(_product(held), axis=0)
    return members[members.any(axis=1)]


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
            hint="use method='cluster' or procedure='polygon'",
        )
    return reduce(lambda a, b: (a[:, None] & b[None]).reshape(-1, k), held)


def _inside(boxes: Floats, outer: Floats) -> NDArray[np.bool_]:
    return np.asarray(((boxes[:, :, 0] >= outer[:, 0]) & (boxes[:, :, 1] <= outer[:, 1])).all(axis=1))


def _outermost(boxes: Floats) -> Floats:
    """Without repeated boxes and boxes inside others, in a fixed order."""
    flat = np.unique(boxes.reshape(len(boxes), -1), axis=0)
    distinct = flat.reshape(-1, *boxes.shape[1:])
    inner = np.zeros(len(distinct), np.bool_)
    for i, box in enumerate(distinct):
        holds = _inside(distinct, box)
        holds[i] = False
        inner |= holds
    return distinct[~inner]


def _waste(box: Floats, others: Floats, size: Sizes) -> Floats:
    """What the bounding box of one box with each other would add to the two."""
    shared = intersections(box, others)
    real = is_box(shared)
    overlap = np.zeros(len(others))
    if real.any():
        overlap[real] = size(shared[real])
    waste: Floats = size(unions(box, others)) - size(box[None])[0] - size(others) + overlap
    return waste
