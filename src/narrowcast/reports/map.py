"""Boxes on a map: queries outlined, merged queries filled. With one attribute, intervals one above another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from narrowcast.model.arrays import Floats
from narrowcast.reports.text import e, number, short

SIZE = 640
MOST = 3000
EDGE = 2


def map_drawing(
    queries: Sequence[tuple[Floats, int, str]],
    merged: Sequence[tuple[Floats, Sequence[int], str]],
    dimensions: Sequence[str],
    label: str,
) -> tuple[str, str]:
    """The drawing, and its scale in words.

    `queries` are boxes with their place in the order of sets and their name, `merged` boxes with those of their
    members and what to say of them.
    """
    flat = len(dimensions) == 1
    small = [(_flat(box, [at]) if flat else box[:2], name) for box, at, name in queries[:MOST]]
    large = [(_flat(box, at) if flat else box[:2], name) for box, at, name in merged[:MOST]]
    frame = _frame([box for box, _ in (*small, *large)])
    large.sort(key=lambda each: -_shown_area(each[0], frame))
    shapes = [_rectangle(box, frame, "merged", name) for box, name in large]
    shapes += [_rectangle(box, frame, "query", name) for box, name in small]
    drawing = (
        f'<svg class="drawing" data-plot="map" role="img" aria-label="{e(label)}" viewBox="0 0 {SIZE} {SIZE}">'
        f'<rect x="{EDGE}" y="{EDGE}" width="{SIZE - 2 * EDGE}" height="{SIZE - 2 * EDGE}" fill="none" class="axis"/>'
        f"{''.join(shapes)}</svg>"
    )
    return drawing, _scale(frame, dimensions)


def _scale(frame: Floats, dimensions: Sequence[str]) -> str:
    """What the sides of the map stand for, in words: text in a picture is too small on a phone."""
    across, up = (f"{number(float(low))} to {number(float(high))}" for low, high in frame)
    height = "queries one above another, answer by answer" if len(dimensions) == 1 else f"{short(dimensions[1])} {up}"
    return f"Across: {short(dimensions[0])} {across}. Upwards: {height}."


def _flat(box: Floats, at: Sequence[int]) -> Floats:
    """An interval with a height: its place among the queries."""
    return np.array([box[0], [min(at) + 0.15, max(at) + 0.85]])


def _frame(boxes: Sequence[Floats]) -> Floats:
    """All finite ends, and a margin."""
    sides = []
    for j in range(2):
        ends = np.array([box[j] for box in boxes]).ravel()
        ends = ends[np.isfinite(ends)]
        low, high = (float(ends.min()), float(ends.max())) if ends.size else (0.0, 1.0)
        margin = 0.02 * (high - low) or 1.0
        sides.append((low - margin, high + margin))
    return np.array(sides)


def _pixels(box: Floats, frame: Floats) -> tuple[float, float, float, float]:
    span = SIZE - 2 * EDGE
    share = (np.clip(box, frame[:, :1], frame[:, 1:]) - frame[:, :1]) / (frame[:, 1:] - frame[:, :1])
    share = np.nan_to_num(share, nan=0.0)
    return (
        EDGE + span * float(share[0, 0]),
        SIZE - EDGE - span * float(share[1, 1]),
        span * float(share[0, 1] - share[0, 0]),
        span * float(share[1, 1] - share[1, 0]),
    )


def _shown_area(box: Floats, frame: Floats) -> float:
    return float(np.prod(_pixels(box, frame)[2:]))


def _rectangle(box: Floats, frame: Floats, kind: str, name: str) -> str:
    x, y, width, height = _pixels(box, frame)
    return (
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 1):.1f}" height="{max(height, 1):.1f}">'
        f"<title>{e(short(name))}</title></rect>"
    )
