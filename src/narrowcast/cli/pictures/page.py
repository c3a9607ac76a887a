"""The page that every picture is drawn on, and the file it goes to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from narrowcast.errors import InputError, UnsupportedError

ENDINGS = (".png", ".svg", ".pdf")
INK, ACCENT = "#33363b", "#c8402f"
# Told apart also by people who see few colours; neighbours differ in lightness.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#8a6d00", "#5b4b9a")


def new_page(width: float, height: float) -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        told = "pictures need matplotlib, which is not installed: pip install 'narrowcast[plots]'"
        raise UnsupportedError(told, works=("--json",)) from None
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def save_picture(figure: Any, path: Path) -> None:
    if path.suffix not in ENDINGS:
        raise InputError(
            f"{path}: the name of a picture must end in {', '.join(ENDINGS)}", name="picture", got=path.suffix
        )
    if not path.parent.is_dir():
        raise InputError(f"{path.parent}: no such folder", name="picture", got=str(path))
    figure.savefig(path, dpi=150)
