"""A map of a merge plan: what each query asks for, and the merged queries that answer them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from narrowcast.cli.pictures.page import COLOURS, INK, new_page, save_picture

if TYPE_CHECKING:
    from narrowcast.plans.queries.result import QueriesPlan

Floats = NDArray[np.float64]


def map_picture(plan: QueriesPlan, path: Path) -> None:
    """Queries as thin rectangles, merged queries filled and outlined, along the first two attributes.

    With one attribute queries stand one above another, set by set. A side without an end runs off the map.
    """
    boxes, attributes = plan.demand.boxes, plan.demand.attributes
    figure, axes = new_page(8, 6.6)
    line = len(attributes) == 1
    flat, pieces = _on_a_line(plan, boxes) if line else (boxes[:, :2], [part[:, :2] for part in plan.pieces])
    frame = _frame(flat)
    merged = [at for at, members in enumerate(plan.sets) if len(members) > 1]
    colours = {at: COLOURS[k % len(COLOURS)] for k, at in enumerate(_apart([pieces[at] for at in merged], merged))}
    # Large ones below, so that none hides another.
    for at in sorted(merged, key=lambda at: -float(np.prod(np.ptp(_shown(pieces[at], frame), axis=2), axis=1).sum())):
        _add(axes, _shown(pieces[at], frame), facecolor=colours[at], edgecolor="none", alpha=0.16, zorder=1)
        _add(axes, _shown(pieces[at], frame), facecolor="none", edgecolor=colours[at], linewidth=1.6, zorder=3)
    alone = [members[0] for members in plan.sets if len(members) == 1]
    together = sorted({query for at in merged for query in plan.sets[at]})
    thin = 0.7 if len(boxes) <= 400 else 0.35
    _add(axes, _shown(flat[together], frame), facecolor="none", edgecolor=INK, linewidth=thin, alpha=0.75, zorder=2)
    _add(axes, _shown(flat[alone], frame), facecolor="none", edgecolor="#8d9299", linewidth=thin,
         linestyle=(0, (3, 2)), zorder=2)  # fmt: skip
    axes.set_xlim(*frame[0])
    axes.set_ylim(*frame[1])
    axes.set_xlabel(attributes[0])
    axes.set_ylabel("queries, set by set" if line else attributes[1])
    if line:
        axes.set_yticks([])
    more = f" (of {len(attributes)} attributes, the first two)" if len(attributes) > 2 else ""
    axes.set_title(f"{len(boxes):,} queries answered by {len(plan.sets):,}{more}", loc="left", pad=30)
    _legend(axes, len(together), len(merged), len(alone))
    save_picture(figure, path)


def _on_a_line(plan: QueriesPlan, boxes: Floats) -> tuple[Floats, list[Floats]]:
    """Intervals with a height: each query a row of its own, a set's rows next to one another."""
    rows = np.concatenate([np.asarray(members) for members in plan.sets])
    height = np.empty(len(boxes))
    height[rows] = np.arange(rows.size)
    flat = np.stack([boxes[:, 0], np.stack([height + 0.2, height + 0.8], axis=-1)], axis=1)
    pieces = []
    for members, parts in zip(plan.sets, plan.pieces, strict=True):
        ends = [[height[list(members)].min(), height[list(members)].max() + 1]] * len(parts)
        pieces.append(np.stack([parts[:, 0], np.array(ends)], axis=1))
    return flat, pieces


def _frame(boxes: Floats) -> Floats:
    """What the map shows: all finite ends, and a margin."""
    sides = []
    for ends in (boxes[:, 0].ravel(), boxes[:, 1].ravel()):
        finite = ends[np.isfinite(ends)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        margin = 0.04 * (high - low) or 1.0
        sides.append((low - margin, high + margin))
    return np.array(sides)


def _shown(boxes: Floats, frame: Floats) -> Floats:
    """Boxes with ends that a picture can have: those off the map end well outside it."""
    far = np.ptp(frame, axis=1)
    return np.clip(boxes, (frame[:, 0] - far)[:, None], (frame[:, 1] + far)[:, None])


def _apart(pieces: Sequence[Floats], sets: Sequence[int]) -> list[int]:
    """Sets from left to right, so that neighbours get different colours."""
    return [at for _, at in sorted(zip((float(part[:, 0, 0].min()) for part in pieces), sets, strict=True))]


def _add(axes: Any, boxes: Floats, **style: Any) -> None:
    from matplotlib.collections import PolyCollection

    (x0, x1), (y0, y1) = boxes[:, 0].T, boxes[:, 1].T
    corners = np.stack([np.stack(c, axis=-1) for c in ((x0, y0), (x1, y0), (x1, y1), (x0, y1))], axis=1)
    axes.add_collection(PolyCollection(list(corners), **style))


def _legend(axes: Any, together: int, merged: int, alone: int) -> None:
    from matplotlib.patches import Patch

    keys = []
    if merged:
        said = f"{merged:,} merged quer{'y' if merged == 1 else 'ies'} (a colour per set)"
        fill = (*_rgb(COLOURS[0]), 0.16)
        keys.append(Patch(facecolor=fill, edgecolor=COLOURS[0], linewidth=1.6, label=said))
        keys.append(Patch(facecolor="none", edgecolor=INK, linewidth=0.7, label=f"{together:,} queries in them"))
    if alone:
        keys.append(Patch(facecolor="none", edgecolor="#8d9299", linewidth=0.7, linestyle=(0, (3, 2)),
                          label=f"{alone:,} answered alone"))  # fmt: skip
    axes.legend(handles=keys, frameon=False, loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2)


def _rgb(colour: str) -> tuple[float, float, float]:
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return red, green, blue
