"""A graph of brokers drawn by its distances: near in hops is near on the page, links as thick as their load."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import shortest_path

from narrowcast.model.arrays import Floats
from narrowcast.reports.text import e, number

SIZE = 640
MOST = 400


def overlay_drawing(load: Mapping[tuple[str, str], float], gateways: set[str], rendezvous: set[str], label: str) -> str:
    """The busiest links where there are very many; always the same picture for the same plan."""
    links = sorted(load, key=lambda link: (-load[link], link))
    names: dict[str, int] = {}
    kept = []
    for u, v in links:
        if len(names) + (u not in names) + (v not in names) > MOST:
            continue
        kept.append((names.setdefault(u, len(names)), names.setdefault(v, len(names)), load[u, v]))
    for name in sorted(gateways | rendezvous):
        if len(names) < MOST:
            names.setdefault(name, len(names))
    if not names:
        return "<p>There is nothing to draw.</p>"
    x, y = _places(len(names), [(u, v) for u, v, _ in kept])
    top = max((w for *_, w in kept), default=1.0) or 1.0
    lines = [
        f'<line class="link" x1="{x[u]:.1f}" y1="{y[u]:.1f}" x2="{x[v]:.1f}" y2="{y[v]:.1f}" '
        f'stroke-width="{0.6 + 8 * w / top:.2f}"><title>load {e(number(w))}</title></line>'
        for u, v, w in reversed(kept)
    ]
    radius = 6.5 if len(names) < 120 else 4.0
    dots = []
    for name, i in names.items():
        kind = "rendezvous" if name in rendezvous else "gateway" if name in gateways else ""
        told = f"<title>{e(name)}{f', {kind}' if kind else ''}</title>"
        if kind == "rendezvous":
            corner, side = f'x="{x[i] - radius:.1f}" y="{y[i] - radius:.1f}"', 2 * radius
            dots.append(f'<rect class="node rendezvous" {corner} width="{side}" height="{side}">{told}</rect>')
        else:
            dots.append(f'<circle class="node {kind}" cx="{x[i]:.1f}" cy="{y[i]:.1f}" r="{radius}">{told}</circle>')
    return (
        f'<svg class="drawing" data-plot="overlay" role="img" aria-label="{e(label)}" viewBox="0 0 {SIZE} {SIZE}">'
        f"{''.join(lines)}{''.join(dots)}</svg>"
    )


def _places(n: int, links: list[tuple[int, int]]) -> tuple[Floats, Floats]:
    """Stress majorization (Gansner, Koren, North) on hop counts, from a circle; deterministic. O(n² rounds)."""
    ends = np.array(links, np.int64).reshape(-1, 2)
    graph = sparse.csr_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), (n, n))
    hops = shortest_path(graph, directed=False, unweighted=True)
    far = float(hops[np.isfinite(hops)].max(initial=1.0)) + 1.0
    hops = np.where(np.isfinite(hops), hops, far)
    np.fill_diagonal(hops, 1.0)
    weight = hops**-2.0
    np.fill_diagonal(weight, 0.0)
    turn = 2 * np.pi * np.arange(n) / n
    at = np.stack([np.cos(turn), np.sin(turn)], axis=1) * far / 2
    total = np.maximum(weight.sum(axis=1, keepdims=True), 1e-12)
    for _ in range(120):
        apart = at[:, None] - at[None]
        length = np.maximum(np.sqrt((apart**2).sum(axis=2)), 1e-9)
        pull = weight * hops / length
        at = (weight @ at + (pull[..., None] * apart).sum(axis=1)) / total
    low, high = at.min(axis=0), at.max(axis=0)
    span = float((high - low).max()) or 1.0
    scaled = 20 + (SIZE - 40) * (at - (low + high) / 2 + span / 2) / span
    return scaled[:, 0], scaled[:, 1]
