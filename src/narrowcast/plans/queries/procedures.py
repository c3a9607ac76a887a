"""Merge procedures: which query answers a set of queries (Crespo et al., §5.1, figure 4).

A procedure turns the boxes of a set into its merged query and says what that query sends. `rectangle`
and `polygon` answer with one query on one channel; `exact` with one per combination of queries that
share data, so that a client hears nothing it did not ask for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from narrowcast.errors import InputError
from narrowcast.plans.queries.arrangement import arrangement, combinations
from narrowcast.plans.queries.boxes import Floats, bounding, intersections, is_box, lows_highs, unions
from narrowcast.plans.queries.kernels.polygon import polygon, polygon_sent
from narrowcast.plans.queries.sizes import Given, Sizes

MAX_POLYGON = 8  # inclusion–exclusion over its boxes has 2^8 terms


class Sent(NamedTuple):
    """What a set's answer is made of: channels, objects on them, objects heard by all members together, boxes."""

    channels: int
    size: float
    heard: float
    pieces: int


class MergeProcedure(Protocol):
    """The name, and what the merged query of some boxes is and sends."""

    @property
    def name(self) -> str: ...

    @property
    def heard_by_all(self) -> bool:
        """Whether a set is answered by one query that all its members hear whole."""
        ...

    def pieces(self, boxes: Floats, size: Sizes) -> Floats:
        """Boxes whose union is the merged query, (k, d, 2)."""
        ...

    def sent(self, boxes: Floats, alone: Floats, size: Sizes) -> Sent:
        """What goes out for a set with these boxes, whose own sizes are `alone`."""
        ...

    def side_by_side(self, first: Sent, p: int, second: Sent, r: int) -> Sent | None:
        """What two sets of p and r queries send as one if they share no point; None if that is not so simple."""
        ...


@dataclass(frozen=True, slots=True)
class Rectangle:
    """The bounding box: simplest, and the widest."""

    name: str = "rectangle"
    heard_by_all: bool = True

    def pieces(self, boxes: Floats, size: Sizes) -> Floats:
        return bounding(boxes)[None]

    def sent(self, boxes: Floats, alone: Floats, size: Sizes) -> Sent:
        total = float(size(self.pieces(boxes, size))[0])
        return Sent(1, total, len(boxes) * total, 1)

    def side_by_side(self, first: Sent, p: int, second: Sent, r: int) -> Sent | None:
        return None


@dataclass(frozen=True, slots=True)
class Polygon:
    """One query that is a disjunction of at most `boxes` boxes: never wider than the bounding box.

    While there are too many, the two boxes whose bounding box wastes least become one. O(k²) sizes.
    """

    boxes: int = 4
    name: str = "polygon"
    heard_by_all: bool = True

    def __post_init__(self) -> None:
        if not 1 <= self.boxes <= MAX_POLYGON:
            raise InputError(
                f"polygon must be 1 to {MAX_POLYGON} boxes, got {self.boxes}", name="polygon", got=self.boxes
            )

    def pieces(self, boxes: Floats, size: Sizes) -> Floats:
        if isinstance(size, Given):
            return self.pieces_by_function(boxes, size)
        return np.stack(polygon(*lows_highs(boxes), size.measure(boxes.shape[1]), self.boxes), axis=-1)

    def pieces_by_function(self, boxes: Floats, size: Sizes) -> Floats:
        """The same under sizes of any kind, without a kernel."""
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
        if isinstance(size, Given):
            pieces = self.pieces_by_function(boxes, size)
            count, total = len(pieces), union_size(pieces, size)
        else:
            low, high = boxes[:, :, 0].copy(), boxes[:, :, 1].copy()
            count, total = polygon_sent(low, high, size.measure(boxes.shape[1]), self.boxes)
        return Sent(1, total, len(boxes) * total, count)

    def side_by_side(self, first: Sent, p: int, second: Sent, r: int) -> Sent | None:
        pieces, total = first.pieces + second.pieces, first.size + second.size
        return Sent(1, total, (p + r) * total, pieces) if pieces <= self.boxes else None


@dataclass(frozen=True, slots=True)
class Exact:
    """Disjoint pieces, one channel each, that clients put together: nothing irrelevant is heard.

    A piece is the data that exactly one combination of the set's queries shares; two boxes that only
    touch share their border, which is a piece of its own, since rows may lie on it.
    """

    name: str = "exact"
    heard_by_all: bool = False

    def pieces(self, boxes: Floats, size: Sizes) -> Floats:
        return _outermost(boxes)

    def sent(self, boxes: Floats, alone: Floats, size: Sizes) -> Sent:
        if len(boxes) == 1:
            return Sent(1, float(alone[0]), float(alone[0]), 1)
        channels, total = len(combinations(boxes)), float(arrangement(boxes, size)[0].sum())
        return Sent(channels, total, float(alone.sum()), channels)

    def side_by_side(self, first: Sent, p: int, second: Sent, r: int) -> Sent | None:
        return None


PROCEDURES: dict[str, MergeProcedure] = {"rectangle": Rectangle(), "polygon": Polygon(), "exact": Exact()}


def as_procedure(procedure: str | MergeProcedure) -> MergeProcedure:
    """A procedure by its name, or one of your own."""
    if not isinstance(procedure, str):
        return procedure
    if procedure not in PROCEDURES:
        told = f"procedure must be one of {', '.join(PROCEDURES)}, got {procedure!r}"
        raise InputError(told, name="procedure", allowed=tuple(PROCEDURES), got=procedure)
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


def _inside(boxes: Floats, outer: Floats) -> NDArray[np.bool_]:
    return np.asarray(((boxes[:, :, 0] >= outer[:, 0]) & (boxes[:, :, 1] <= outer[:, 1])).all(axis=1))


def _outermost(boxes: Floats) -> Floats:
    """Without repeated boxes and boxes inside others, in the given order."""
    low, high = boxes[:, :, 0], boxes[:, :, 1]
    inside = ((low[:, None] >= low) & (high[:, None] <= high)).all(axis=2)
    # Of boxes that are the same each lies inside the other: the first stays.
    hidden = inside & (~inside.T | np.tri(len(boxes), k=-1, dtype=np.bool_))
    return boxes[~hidden.any(axis=1)]


def _waste(box: Floats, others: Floats, size: Sizes) -> Floats:
    """What the bounding box of one box with each other would add to the two."""
    shared = intersections(box, others)
    real = is_box(shared)
    overlap = np.zeros(len(others))
    if real.any():
        overlap[real] = size(shared[real])
    waste: Floats = size(unions(box, others)) - size(box[None])[0] - size(others) + overlap
    return waste
