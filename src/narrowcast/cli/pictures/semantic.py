"""A map of an overlay and its channels: a colour for each of the busiest, the others in grey."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from narrowcast.cli.pictures.page import COLOURS, INK, new_page, save_picture

if TYPE_CHECKING:
    from narrowcast.plans.semantic.result import SemanticPlan

Floats = NDArray[np.float64]

# Lines side by side stay apart up to about so many.
LINE = 1.7
QUIET = "#c9cdd2"


def overlay_picture(made: SemanticPlan, positions: Floats | None, path: Path) -> None:
    """Brokers where they stand (or as far apart as their links are long), links, and channels along them.

    Channels of one link lie side by side. Sources are triangles, gateways dots, a channel's rendezvous a
    diamond of its colour.
    """
    topology = made.system.topology
    at = _layout(made) if positions is None else positions
    width, height = np.maximum(np.ptp(at, axis=0), 1e-9)
    figure, axes = new_page(10.5, float(np.clip(7.3 * height / width, 3.2, 9)) + 0.5)
    axes.set_axis_off()
    axes.set_anchor("NW")
    axes.set_aspect("equal")
    rate = np.array([channel.rate for channel in made.channels], np.float64)
    load = rate * np.array([channel.link_cost for channel in made.channels])
    used = np.flatnonzero(rate > 0)
    busiest = used[np.lexsort((used, -load[used]))][: len(COLOURS)].tolist()
    others = [c for c in used.tolist() if c not in busiest]
    _links(axes, at, topology.edges.tolist(), color="#e6e8eb", linewidth=0.6, zorder=1)
    quiet = {tuple(sorted(edge)) for c in others for edge in made.channels[c].edges.tolist()}
    _links(axes, at, sorted(quiet), color=QUIET, linewidth=1.3, zorder=2)
    _frame(axes, at)
    _channels(figure, axes, at, made, busiest)
    _brokers(axes, at, made)
    for k, c in enumerate(busiest):
        x, y = at[made.channels[c].rendezvous]
        # Of channels that start at one broker each shows around the next.
        before = sum(made.channels[b].rendezvous == made.channels[c].rendezvous for b in busiest[:k])
        size = 15 * (1.55 ** (4 - min(before, 4)))
        axes.scatter([x], [y], s=size, marker="D", color=COLOURS[k], edgecolor="white", linewidth=0.6, zorder=6 + k / 9)
    said = f"{made.n_channels:,} channel{'s' * (made.n_channels != 1)} on {topology.n_brokers:,} brokers"
    axes.set_title(f"{said}: the {len(busiest)} that cost most in colour" if others else said, loc="left", color=INK)
    _legend(axes, made, rate, busiest, len(others))
    save_picture(figure, path)


def _layout(made: SemanticPlan) -> Floats:
    """Places on a plane whose distances are near the overlay's: the first two axes of classical scaling."""
    distance = made.system.paths.distance
    far = np.where(np.isfinite(distance), distance, 1.5 * distance[np.isfinite(distance)].max(initial=1.0))
    squared = far**2
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    places: Floats = vectors[:, -2:][:, ::-1] * np.sqrt(np.maximum(values[-2:][::-1], 1e-12))
    # The sign of an axis is arbitrary: the first broker goes to the upper right.
    return places * np.where(places[0] < 0, -1.0, 1.0)


def _frame(axes: Any, at: Floats) -> None:
    low, high = at.min(axis=0), at.max(axis=0)
    margin = 0.05 * np.maximum(high - low, 1e-9).max()
    axes.set_xlim(low[0] - margin, high[0] + margin)
    axes.set_ylim(low[1] - margin, high[1] + margin)


def _links(axes: Any, at: Floats, edges: list[Any], **style: Any) -> None:
    from matplotlib.collections import LineCollection

    if edges:
        axes.add_collection(LineCollection([at[[u, v]] for u, v in edges], capstyle="round", **style))


def _channels(figure: Any, axes: Any, at: Floats, made: SemanticPlan, busiest: list[int]) -> None:
    """Each channel's tree as lines of its colour, moved aside where a link carries several."""
    from matplotlib.collections import LineCollection

    on: dict[tuple[int, int], list[int]] = {}
    for k, c in enumerate(busiest):
        for u, v in made.channels[c].edges.tolist():
            # Outward, so that a bundle keeps its sides around a bend.
            on.setdefault((v, u) if (v, u) in on else (u, v), []).append(k)
    figure.canvas.draw()  # so that the map's scale is known
    box = axes.get_window_extent()
    width = float(np.diff(axes.get_xlim())[0])
    point = width / (box.width * 72 / figure.dpi)
    lines: dict[int, list[Floats]] = {}
    for (u, v), several in sorted(on.items()):
        along = at[v] - at[u]
        aside = np.array([-along[1], along[0]]) / max(float(np.hypot(*along)), 1e-12)
        for place, k in enumerate(several):
            shift = (place - (len(several) - 1) / 2) * LINE * 1.05 * point
            lines.setdefault(k, []).append(at[[u, v]] + shift * aside)
    for k, segments in lines.items():
        axes.add_collection(
            LineCollection(segments, colors=COLOURS[k], linewidths=LINE, capstyle="round", zorder=4 - k / 20)
        )


def _brokers(axes: Any, at: Floats, made: SemanticPlan) -> None:
    n = made.system.topology.n_brokers
    gateways, sources = made.system.gateways, made.sources
    inside = np.setdiff1d(np.arange(n), np.concatenate((gateways, sources)))
    size = 1.0 if n <= 150 else 0.45
    axes.scatter(*at[inside].T, s=9 * size, color="#aeb4bb", zorder=5, linewidth=0)
    axes.scatter(*at[gateways].T, s=34 * size, color=INK, edgecolor="white", linewidth=0.7, zorder=5.1)
    axes.scatter(*at[sources].T, s=330 * size, marker="^", color="none", edgecolor="white", linewidth=3.4, zorder=7)
    axes.scatter(*at[sources].T, s=330 * size, marker="^", color="none", edgecolor=INK, linewidth=1.4, zorder=7)


def _legend(axes: Any, made: SemanticPlan, rate: Floats, busiest: list[int], n_others: int) -> None:
    from matplotlib.lines import Line2D

    keys = []
    for k, c in enumerate(busiest):
        n = len(made.channels[c].gateways)
        said = f"channel {c}: {rate[c]:,.4g} messages to {n} gateway{'s' * (n != 1)}"
        keys.append(Line2D([], [], color=COLOURS[k], linewidth=LINE, marker="D", markersize=5, label=said))
    if n_others:
        said = f"{n_others:,} other channel{'s' * (n_others != 1)}"
        keys.append(Line2D([], [], color=QUIET, linewidth=1.3, label=said))
    mark: dict[str, Any] = {"linestyle": "none", "color": INK}
    if made.sources.size:
        keys.append(Line2D([], [], marker="^", markerfacecolor="white", markersize=8, label="source", **mark))
    keys.append(Line2D([], [], marker="o", markersize=5, label="gateway", **mark))
    keys.append(Line2D([], [], marker="D", markersize=5, markerfacecolor="none", label="rendezvous", **mark))
    axes.legend(
        handles=keys, frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize=8.5, labelspacing=0.6
    )
