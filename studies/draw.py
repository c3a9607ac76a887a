"""A figure as a PNG (matplotlib) and as an interactive page that works offline (plotly)."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from narrowcast.errors import InputError
from studies.figures import Bars, Figure, Lines, Matrix

COLOURS = ("#1b6ca8", "#d1495b", "#2e8b57", "#e69f00", "#7a5195", "#4d4d4d",
           "#56b4e9", "#a0522d", "#9acd32", "#ff69b4", "#17becf", "#808000")  # fmt: skip
FOOTER_WIDTH = 105  # characters to a figure
MOST_INSIDE = 6  # curves whose legend fits into the picture
PALETTE = 256


def draw_png(figures: Sequence[Figure], path: Path, *, footer: str) -> None:
    """All figures of an experiment side by side, at most three to a row."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Canvas
    except ImportError:
        raise InputError("figures need matplotlib", hint="make setup") from None
    columns = min(3, len(figures))
    rows = -(-len(figures) // columns)
    canvas = Canvas(figsize=(6.4 * columns, 4.4 * rows + 0.3), dpi=100, layout="constrained")
    FigureCanvasAgg(canvas)
    for at, figure in enumerate(figures):
        _axes(canvas.add_subplot(rows, columns, at + 1), figure)
    canvas.supxlabel(fill(footer, FOOTER_WIDTH * columns), fontsize=8, color="0.4")
    _save(canvas, path)


def _save(canvas: Any, path: Path) -> None:
    """With a palette: a third of the size, and nobody sees the difference."""
    from PIL import Image

    drawn = BytesIO()
    canvas.savefig(drawn, format="png")
    drawn.seek(0)
    with Image.open(drawn) as picture:
        picture.convert("RGB").quantize(PALETTE, dither=Image.Dither.NONE).save(path, optimize=True)


def _axes(axes: Any, figure: Figure) -> None:
    axes.set_title(figure.title, fontsize=11)
    if isinstance(figure, Matrix):
        _matrix(axes, figure)
        return
    axes.grid(alpha=0.25)
    axes.set_ylabel(figure.y)
    if isinstance(figure, Bars):
        places = np.arange(len(figure.bars))
        tops = np.array([float(band.mean[0]) for band in figure.bars.values()])
        reach = np.array([float(band.high[0] - band.mean[0]) for band in figure.bars.values()])
        axes.bar(places, tops, yerr=reach, capsize=3, color=[COLOURS[i % len(COLOURS)] for i in places])
        axes.set_xticks(places, list(figure.bars), rotation=30, ha="right")
        return
    for (name, band), colour in zip(figure.curves.items(), COLOURS * 4, strict=False):
        axes.plot(band.x, band.mean, color=colour, marker="o" if band.x.size < 30 else None, ms=3, label=name)
        axes.fill_between(band.x, band.low, band.high, color=colour, alpha=0.18, lw=0)
    axes.set_xlabel(figure.x)
    if figure.log_x:
        axes.set_xscale("log")
        _plain_numbers(axes.xaxis, axes.get_xlim())
    if figure.log_y:
        axes.set_yscale("log")
        _plain_numbers(axes.yaxis, axes.get_ylim())
    if len(figure.curves) > MOST_INSIDE:
        axes.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    elif any(figure.curves):
        axes.legend(fontsize=8, frameon=False)


def _plain_numbers(axis: Any, limits: tuple[float, float]) -> None:
    """300 and not 3·10² on a logarithmic axis, and ticks between the powers of ten where those are few."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    decades = np.log10(limits[1] / limits[0])
    axis.set_major_locator(
        LogLocator(subs=(1.0,) if decades > 3 else (1.0, 2.0, 5.0) if decades > 0.7 else range(1, 10))
    )
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_formatter(NullFormatter())


def _matrix(axes: Any, figure: Matrix) -> None:
    shown = axes.imshow(figure.values, aspect="auto", cmap="viridis", interpolation="nearest")
    axes.set_xlabel(figure.x)
    axes.set_ylabel(figure.y)
    if figure.x_values is not None:
        axes.set_xticks(range(len(figure.x_values)), [str(v) for v in figure.x_values])
    if figure.y_values is not None:
        axes.set_yticks(range(len(figure.y_values)), [str(v) for v in figure.y_values])
    axes.figure.colorbar(shown, ax=axes, label=figure.value)


def draw_page(title: str, figures: Sequence[Figure], path: Path, *, footer: str) -> None:
    """The same figures to hover over and zoom into, in one file that loads nothing."""
    try:
        import plotly.graph_objects as go
    except ImportError:
        raise InputError("interactive figures need plotly", hint="make setup") from None
    parts = []
    for at, figure in enumerate(figures):
        made = go.Figure(_traces(go, figure))
        made.update_layout(title=figure.title, template="plotly_white", height=460, margin={"t": 60, "b": 50})
        made.update_xaxes(title=getattr(figure, "x", None), type="log" if getattr(figure, "log_x", False) else None)
        made.update_yaxes(title=figure.y, type="log" if getattr(figure, "log_y", False) else None)
        parts.append(made.to_html(full_html=False, include_plotlyjs=at == 0))
    body = "\n".join(parts)
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    style = "<style>body{font:16px system-ui;max-width:60rem;margin:2rem auto;padding:0 1rem}</style>"
    path.write_text(
        f"{head}<title>{title}</title>{style}<h1>{title}</h1>\n{body}\n<p>{footer}</p></html>\n", encoding="utf-8"
    )


def _traces(go: Any, figure: Figure) -> list[Any]:
    if isinstance(figure, Matrix):
        across, down = (None if v is None else [str(i) for i in v] for v in (figure.x_values, figure.y_values))
        return [go.Heatmap(z=figure.values, x=across, y=down, colorscale="Viridis", colorbar={"title": figure.value})]
    if isinstance(figure, Bars):
        tops = [float(band.mean[0]) for band in figure.bars.values()]
        reach = [float(band.high[0] - band.mean[0]) for band in figure.bars.values()]
        return [go.Bar(x=list(figure.bars), y=tops, error_y={"type": "data", "array": reach})]
    found = []
    for (name, band), colour in zip(figure.curves.items(), COLOURS * 4, strict=False):
        found.append(go.Scatter(x=band.x, y=band.mean, name=name, mode="lines+markers", line={"color": colour},
                                error_y={"type": "data", "array": band.high - band.mean, "thickness": 1}))  # fmt: skip
    return found


__all__ = ["Bars", "Lines", "Matrix", "draw_page", "draw_png"]
