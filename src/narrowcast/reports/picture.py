"""A plan as one drawing: the same on a page and, by itself, in a file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from narrowcast.errors import InputError, UnsupportedError
from narrowcast.reports.parts import figure, legend
from narrowcast.reports.text import e

ENDINGS = (".png", ".svg")
MARGIN, LINE, LETTER = 24, 22, 6.9
ZOOM = 2  # pixels of a PNG for each of the drawing


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG drawing with what it shows, what its colours mean, and a line under it."""

    title: str
    drawing: str
    keys: tuple[tuple[str, str], ...] = ()
    caption: str = ""

    @property
    def markup(self) -> str:
        """As a piece of a page."""
        return (legend(self.keys) if self.keys else "") + figure(self.drawing, self.caption)


def save_picture(picture: Picture, path: str | Path) -> Path:
    """Write a picture to a .svg file, or as pixels to a .png file.

    Raises
    ------
    InputError : the name ends otherwise, or the file cannot be written
    UnsupportedError : PNG without resvg-py
    """
    place = Path(path)
    if place.suffix not in ENDINGS:
        told = f"{place}: the name of a picture must end in {' or '.join(ENDINGS)}"
        raise InputError(told, name="picture", got=place.suffix)
    if not place.parent.is_dir():
        raise InputError(f"{place.parent}: no such folder", name="picture", got=str(place))
    svg = standalone(picture)
    try:
        place.write_bytes(svg.encode() if place.suffix == ".svg" else _pixels(svg))
    except OSError as error:
        raise InputError(f"{place}: cannot be written: {error.strerror}", name="picture", got=str(place)) from None
    return place


def standalone(picture: Picture) -> str:
    """The whole file: title, keys, drawing and caption, with the page's own style."""
    drawing = re.sub(r'(<svg[^>]*) class="[^"]*"', r"\1", picture.drawing, count=1)
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', drawing)
    wide, tall = (float(side) for side in size.groups()) if size else (640.0, 40.0)
    inner = max(wide, 640.0)
    keys, rows = _keys(picture.keys, inner)
    lines = _wrapped(picture.caption, int(inner / LETTER))
    top = 58 + LINE * rows
    height = top + tall + (LINE * len(lines) + 10 if lines else 0) + MARGIN
    placed = drawing.replace("<svg", f'<svg x="{MARGIN + (inner - wide) / 2:.1f}" y="{top}" width="{wide}" '
                             f'height="{tall}"', 1)  # fmt: skip
    under = "".join(
        f'<text x="{MARGIN}" y="{top + tall + 22 + LINE * k:.1f}">{e(line)}</text>' for k, line in enumerate(lines)
    )
    across = inner + 2 * MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across:.0f} {height:.0f}" width="{across:.0f}" '
        f'height="{height:.0f}" font-family="system-ui, \'DejaVu Sans\', sans-serif"><style>{_style()}</style>'
        f'<rect width="100%" height="100%" fill="#ffffff"/>'
        f'<text class="said" x="{MARGIN}" y="36" font-size="17">{e(picture.title)}</text>{keys}{placed}{under}</svg>\n'
    )


def _keys(keys: tuple[tuple[str, str], ...], width: float) -> tuple[str, int]:
    """What the colours mean, in rows, and how many."""
    x, row, parts = 0.0, 0, list[str]()
    for kind, text in keys:
        takes = 42 + LETTER * len(text)
        if x and x + takes > width:
            x, row = 0.0, row + 1
        at, y = MARGIN + x, 64 + LINE * row
        parts.append(f'<rect class="swatch {e(kind)}" x="{at:.1f}" y="{y - 11}" width="12" height="12" rx="2"/>')
        parts.append(f'<text x="{at + 19:.1f}" y="{y}">{e(text)}</text>')
        x += takes
    return "".join(parts), row + 1 if keys else 0


def _wrapped(text: str, letters: int) -> list[str]:
    import textwrap

    return textwrap.wrap(text, letters)


def _style() -> str:
    """The rules of the page's style that drawings use, in its light colours: not every program knows variables."""
    sheet = files("narrowcast.reports").joinpath("report.css").read_text(encoding="utf-8")
    colours = dict(re.findall(r"(--[a-z-]+): ([^;]+);", sheet.split("@media")[0]))
    rules = re.findall(r"(?m)(?:^|(?<=\} ))((?:svg [.gt]|\.swatch)[^{}]*)\{([^{}]*)\}", sheet)
    text = "".join(f"{head.strip()}{{{body.strip()}}}" for head, body in rules)
    text = text.replace("background:", "fill:").replace("border: 1px solid", "stroke:")
    text = re.sub(r"var\((--[a-z-]+)\)", lambda found: colours[found.group(1)], text)
    return re.sub(r"font-size: 13px", "font-size: 12.5px", " ".join(text.split()))


def _pixels(svg: str) -> bytes:
    try:
        from resvg_py import svg_to_bytes
    except ImportError:
        told = "PNG pictures need resvg-py, which is not installed: pip install 'narrowcast[plots]'"
        raise UnsupportedError(told, works=(".svg",)) from None
    return bytes(svg_to_bytes(svg_string=svg, zoom=ZOOM))
