"""A graph of brokers drawn by its distances: near in hops is near on the page, links as thick as their load."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import shortest_path

from narrowcast.model.arrays import Floats
from narrowcast.reports.text import e, number, short

SIZE = 640
MOST = 400
COLOURED = 8  # trees that are seen at once, each in a colour of its own
MOST_TREES, MOST_STRETCHES = 200, 20_000
APART = 2.1  # between two trees along one link
NAMED = 12  # gateways and rendezvous that have their names beside them; of more, on hover


@dataclass(frozen=True, slots=True)
class DrawnTree:
    """A channel along links of the graph: what to call it, its links, and where it begins."""

    name: str
    links: Sequence[tuple[str, str]]
    root: str = ""


def overlay_drawing(
    load: Mapping[tuple[str, str], float],
    gateways: set[str],
    rendezvous: set[str],
    label: str,
    trees: Sequence[DrawnTree] = (),
    places: Mapping[str, tuple[float, float]] | None = None,
) -> str:
    """The busiest links where there are very many; always the same picture for the same plan.

    The first `trees` are seen, side by side; the others are there to be shown one at a time. `places` says where
    brokers stand.
    """
    links = sorted(load, key=lambda link: (-load[link], link))
    names: dict[str, int] = {}
    kept = []
    for u, v in links:
        if len(names) + (u not in names) + (v not in names) > MOST:
            continue
        kept.append((names.setdefault(u, len(names)), names.setdefault(v, len(names)), load[u, v], f"{u} – {v}"))
    for name in sorted(gateways | rendezvous):
        if len(names) < MOST:
            names.setdefault(name, len(names))
    if not names:
        return "<p>There is nothing to draw.</p>"
    given = None if places is None else [places.get(name) for name in names]
    known = given is not None and all(given) and len(set(given)) == len(given)  # else some would hide others
    x, y, tall = _fitted(np.array(given, np.float64) * [1, -1] if known else _places(len(names), [k[:2] for k in kept]))
    top = max((w for _, _, w, _ in kept), default=1.0) or 1.0
    thick = 3.0 if trees else 8.0
    lines = [
        f'<line class="link" x1="{x[u]:.1f}" y1="{y[u]:.1f}" x2="{x[v]:.1f}" y2="{y[v]:.1f}" '
        f'stroke-width="{0.6 + thick * w / top:.2f}"><title>{e(ends)}: load {e(number(w))}</title></line>'
        for u, v, w, ends in reversed(kept)
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
            small = radius if kind else 0.6 * radius
            dots.append(f'<circle class="node {kind}" cx="{x[i]:.1f}" cy="{y[i]:.1f}" r="{small:.1f}">{told}</circle>')
    at = {name: (float(x[i]), float(y[i])) for name, i in names.items()}
    marked = sorted((gateways | rendezvous) & at.keys())
    words = [name_beside(name, *at[name], radius) for name in marked] if len(marked) <= NAMED else []
    return (
        f'<svg class="drawing" data-plot="overlay" role="img" aria-label="{e(label)}" viewBox="0 0 {SIZE} {tall:.0f}">'
        f"{''.join(lines)}{''.join(_trees(trees, at))}{''.join(dots)}{''.join(words)}</svg>"
    )


def name_beside(name: str, x: float, y: float, away: float) -> str:
    """A name beside its mark, on the side where the drawing has more room."""
    side, anchor = (1, "start") if x < SIZE / 2 else (-1, "end")
    return (
        f'<text class="name-of" x="{x + side * (away + 5):.1f}" y="{y - away:.1f}" text-anchor="{anchor}">'
        f"{e(short(name, 24))}</text>"
    )


def _trees(trees: Sequence[DrawnTree], at: Mapping[str, tuple[float, float]]) -> Iterator[str]:
    """A path for each tree; along one link those that are seen lie side by side."""
    on: dict[tuple[str, str], list[int]] = {}
    for k, tree in enumerate(trees[:COLOURED]):
        for link in {(min(link), max(link)) for link in tree.links}:
            on.setdefault(link, []).append(k)
    left = MOST_STRETCHES
    for k, tree in enumerate(trees[:MOST_TREES]):
        stretches = []
        for u, v in sorted({(min(link), max(link)) for link in tree.links}):
            if u not in at or v not in at:
                continue
            (ux, uy), (vx, vy) = at[u], at[v]
            several = on.get((u, v), []) if k < COLOURED else []
            shift = APART * (several.index(k) - (len(several) - 1) / 2) if several else 0.0
            long = math.hypot(vx - ux, vy - uy) or 1.0
            dx, dy = -shift * (vy - uy) / long, shift * (vx - ux) / long
            stretches.append(f"M{ux + dx:.1f} {uy + dy:.1f}L{vx + dx:.1f} {vy + dy:.1f}")
        left -= len(stretches)
        if left < 0:
            return
        if tree.root in at:
            x, y = at[tree.root]
            stretches.append(f"M{x - 9:.1f} {y:.1f}L{x:.1f} {y - 9:.1f}L{x + 9:.1f} {y:.1f}L{x:.1f} {y + 9:.1f}Z")
        hidden = "" if k < COLOURED else ' hidden=""'
        yield (
            f'<path class="tree t{k % COLOURED}" data-tree="{k}"{hidden} d="{"".join(stretches)}">'
            f"<title>{e(tree.name)}</title></path>"
        )


def tree_choice(trees: Sequence[DrawnTree]) -> str:
    """What picks one tree of the drawing under it, by itself."""
    if len(trees) < 2:
        return ""
    shown = "the busiest" if len(trees) > COLOURED else "all"
    options = "".join(f'<option value="{k}">{e(tree.name)}</option>' for k, tree in enumerate(trees[:MOST_TREES]))
    return (
        '<div class="controls"><label for="tree-choice">Show</label><select id="tree-choice" data-trees>'
        f'<option value="">{shown}</option>{options}</select></div>'
    )


def tree_keys(trees: Sequence[DrawnTree]) -> list[tuple[str, str]]:
    """What the colours of the trees mean."""
    return [(f"t{k}", tree.name) for k, tree in enumerate(trees[:COLOURED])]


def _fitted(at: Floats) -> tuple[Floats, Floats, float]:
    """As wide as the drawing, and as tall as that makes it."""
    low, high = at.min(axis=0), at.max(axis=0)
    wide, tall = np.maximum(high - low, 1e-9)
    scale = (SIZE - 40) / max(float(wide), float(tall))
    margin = 20 + (SIZE - 40 - scale * wide) / 2
    return margin + scale * (at[:, 0] - low[0]), 20 + scale * (at[:, 1] - low[1]), max(scale * tall + 40, 80.0)


def _places(n: int, links: list[tuple[int, int]]) -> Floats:
    """Stress majorization (Gansner, Koren, North) on hop counts, from a circle; deterministic. O(n² rounds)."""
    ends = np.array(links, np.int64).reshape(-1, 2)
    graph = sparse.csr_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), (n, n))
    hops = shortest_path(graph, directed=False, unweighted=True)
    far = float(hops[np.isfinite(hops)].max(initial=1.0)) + 1.0
    hops = np.where(np.isfinite(hops), hops, far / 2)  # parts without a link between them: side by side
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
        at = (
            at + (weight @ at + (pull[..., None] * apart).sum(axis=1)) / total
        ) / 2  # half way: two would swap or meet
    return at
