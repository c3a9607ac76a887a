"""The bounding polygon as described: while there are too many boxes, the two that waste least become one."""

from __future__ import annotations

from itertools import combinations


def polygon(boxes, most, size):
    """At most `most` boxes around all; `boxes` are lists of (low, high)."""
    kept = [
        b
        for i, b in enumerate(boxes)
        if not any(_inside(b, o) and (o != b or j < i) for j, o in enumerate(boxes) if j != i)
    ]
    while len(kept) > most:
        i, j = min(combinations(range(len(kept)), 2), key=lambda two: _waste(kept[two[0]], kept[two[1]], size))
        joined = _hull(kept[i], kept[j])
        kept = [b for at, b in enumerate(kept) if at not in (i, j) and not _inside(b, joined)] + [joined]
    return kept


def _inside(box, outer):
    return all(o[0] <= b[0] and b[1] <= o[1] for b, o in zip(box, outer, strict=True))


def _hull(a, b):
    return [(min(x[0], y[0]), max(x[1], y[1])) for x, y in zip(a, b, strict=True)]


def _waste(a, b, size):
    shared = [(max(x[0], y[0]), min(x[1], y[1])) for x, y in zip(a, b, strict=True)]
    overlap = size(shared) if all(low <= high for low, high in shared) else 0.0
    return size(_hull(a, b)) - size(a) - size(b) + overlap
