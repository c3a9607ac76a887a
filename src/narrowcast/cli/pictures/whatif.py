"""The picture of a what-if: a curve, or a map of two settings, with the knee and the present setting marked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from narrowcast.cli.output import text
from narrowcast.cli.pictures.page import ACCENT, INK, new_page, save_picture

if TYPE_CHECKING:
    from narrowcast.evaluate.whatif import Sweep

NOW = "#0072b2"


def whatif_picture(found: Sweep, path: Path) -> None:
    """Draw the sweep."""
    figure, axes = new_page(7.5, 4.8)
    if len(found.names) == 1:
        _curve(found, axes)
    else:
        _map(found, figure, axes)
    axes.set_title(f"{found.measure} as a share of {found.yardstick}", loc="left", fontsize=11)
    save_picture(figure, path)


def _curve(found: Sweep, axes: Any) -> None:
    (name,) = found.names
    x, y = _line(found, name)
    axes.plot(x, y, color=INK, marker="o", markersize=4, zorder=2)
    knee, now = found.knee, found.present.get(name)
    if knee is not None:
        at = knee.settings[name]
        axes.plot([x[0], x[-1]], [y[0], y[-1]], color="#b5b8bd", linestyle=":", linewidth=1, zorder=1)
        axes.scatter([at], [knee.relative], s=130, marker="*", color=ACCENT, zorder=4, label=f"knee: {text(at)}")
    if now is not None:
        axes.axvline(now, color=NOW, linewidth=1, linestyle="--", alpha=0.6, zorder=1)
        label = f"this plan: {text(now)}, {found.present['relative']:.1%}"
        axes.scatter([now], [found.present["relative"]], s=60, marker="D", color=NOW, zorder=3, label=label)
    axes.set_xlabel(_words(name))
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.4g}" if value > 10 else f"{100 * value:.3g}%")
    if min(x) > 0 and max(x) / min(x) >= 50:
        axes.set_xscale("log")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False)


def _line(found: Sweep, name: str) -> tuple[list[float], list[float]]:
    done = sorted((point.settings[name], point.relative) for point in found.done)
    return [x for x, _ in done], [y for _, y in done]


def _map(found: Sweep, figure: Any, axes: Any) -> None:
    """A cell per combination with its figure in it; settings are evenly apart, whatever lies between them."""
    across, up = found.names
    xs, ys = (sorted({point.settings[name] for point in found.points}) for name in found.names)
    cells = np.full((len(ys), len(xs)), np.nan)
    for point in found.done:
        cells[ys.index(point.settings[up]), xs.index(point.settings[across])] = point.relative
    shown = axes.imshow(cells, origin="lower", aspect="auto", cmap="viridis_r")
    middle = (np.nanmin(cells) + np.nanmax(cells)) / 2
    for (j, i), value in np.ndenumerate(cells):
        if np.isfinite(value):
            colour = "white" if value > middle else "black"
            axes.text(i, j, f"{value:.1%}", ha="center", va="center", fontsize=9, color=colour)
    figure.colorbar(shown, ax=axes, format=lambda value, _: f"{100 * value:.3g}%", shrink=0.8)
    axes.set_xticks(range(len(xs)), [text(x) for x in xs])
    axes.set_yticks(range(len(ys)), [text(y) for y in ys])
    axes.set_xlabel(_words(across))
    axes.set_ylabel(_words(up))
    _mark_cells(found, axes, xs, ys)


def _mark_cells(found: Sweep, axes: Any, xs: list[float], ys: list[float]) -> None:
    from matplotlib.patches import Rectangle

    across, up = found.names
    marks = [(found.present, NOW, "this plan")] if across in found.present and up in found.present else []
    if found.knee is not None:
        marks.append((found.knee.settings, ACCENT, "knee"))
    for k, (at, colour, label) in enumerate(marks):
        i, j, room = xs.index(at[across]), ys.index(at[up]), 0.46 - 0.05 * k
        axes.add_patch(
            Rectangle((i - room, j - room), 2 * room, 2 * room, fill=False, edgecolor=colour, linewidth=3, label=label)
        )
    if marks:
        axes.legend(loc="upper left", bbox_to_anchor=(0, -0.12), ncols=2, frameon=False)


def _words(name: str) -> str:
    return {"k": "filters", "cap": "cap on the unicast share"}.get(name, name.replace("_", " "))
