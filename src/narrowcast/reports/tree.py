"""A rooted tree drawn in a circle: the root in the middle, a ring per depth, links as thick as their load."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from narrowcast.model.arrays import Floats, Ints
from narrowcast.reports.overlay import NAMED, SIZE, name_beside
from narrowcast.reports.text import e, number

MOST = 2000


def tree_drawing(parents: Ints, load: Floats, filters: set[int], names: Sequence[str], label: str) -> tuple[str, int]:
    """The drawing, and how many vertices are left out: of large trees the deepest."""
    depth = _depth(parents)
    counts = np.cumsum(np.bincount(depth))
    fits = np.flatnonzero(counts <= MOST)
    deepest = int(fits[-1]) if fits.size else 0
    shown = np.flatnonzero(depth <= deepest)
    angle = _angles(parents, depth, deepest)
    ring = (SIZE / 2 - 14) / max(deepest, 1)
    x = SIZE / 2 + depth * ring * np.cos(angle)
    y = SIZE / 2 + depth * ring * np.sin(angle)
    top = float(np.nanmax(load[shown], initial=0.0)) or 1.0
    crowd = max(0.35, min(1.0, 12 / math.sqrt(shown.size)))
    links, nodes = [], []
    for v in sorted(shown.tolist(), key=lambda v: load[v] if parents[v] >= 0 else -1.0):
        up = int(parents[v])
        if up < 0:
            continue
        thick = 0.5 + 8 * crowd * max(float(load[v]), 0.0) / top
        links.append(
            f'<line class="link" x1="{x[up]:.1f}" y1="{y[up]:.1f}" x2="{x[v]:.1f}" y2="{y[v]:.1f}" '
            f'stroke-width="{thick:.2f}"><title>{e(names[v])}: load {e(number(float(load[v])))}</title></line>'
        )
    for v in sorted(shown.tolist(), key=lambda v: v in filters):
        kind, radius = ("node filter", 6 * max(crowd, 0.6)) if v in filters else ("node", 2.6 * crowd)
        told = f"{e(names[v])}{', a filter' if v in filters else ''}"
        nodes.append(
            f'<circle class="{kind}" cx="{x[v]:.1f}" cy="{y[v]:.1f}" r="{radius:.1f}"><title>{told}</title></circle>'
        )
    few = shown.tolist() if shown.size <= NAMED else []
    words = [name_beside(names[v], float(x[v]), float(y[v]), 6.0) for v in few]
    drawing = (
        f'<svg class="drawing" data-plot="tree" role="img" aria-label="{e(label)}" viewBox="0 0 {SIZE} {SIZE}">'
        f"{''.join(links)}{''.join(nodes)}{''.join(words)}</svg>"
    )
    return drawing, int(parents.size - shown.size)


def _depth(parents: Ints) -> Ints:
    depth = np.where(parents < 0, 0, -1)
    while (depth < 0).any():
        ready = (depth < 0) & (depth[np.maximum(parents, 0)] >= 0)
        if not ready.any():
            return np.maximum(depth, 0)
        depth[ready] = depth[parents[ready]] + 1
    return depth


def _angles(parents: Ints, depth: Ints, deepest: int) -> Floats:
    """Each vertex in the middle of its children; those without any evenly round the circle, in order."""
    shown = depth <= deepest
    children: list[list[int]] = [[] for _ in range(parents.size)]
    for v in np.flatnonzero(shown & (parents >= 0)).tolist():
        children[int(parents[v])].append(v)
    root = int(np.flatnonzero(parents < 0)[0])
    order, stack, ends = [], [root], []
    while stack:
        v = stack.pop()
        order.append(v)
        if children[v]:
            stack += reversed(children[v])
        else:
            ends.append(v)
    angle = np.zeros(parents.size)
    angle[ends] = 2 * math.pi * (np.arange(len(ends)) + 0.5) / max(len(ends), 1) - math.pi / 2
    for v in reversed(order):
        if children[v]:
            angle[v] = (angle[children[v][0]] + angle[children[v][-1]]) / 2
    return angle
