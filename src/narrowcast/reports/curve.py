"""A line chart as SVG, drawn at the size it will be seen at: text is never scaled."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from narrowcast.reports.text import THIN, e, number

Points = Sequence[tuple[float, float]]


def curve(
    series: Sequence[Points],
    *,
    label: str,
    x_name: str,
    y_text: Callable[[float], str],
    present: float | None,
    knee: float | None,
    own: tuple[float, float] | None,
    width: int,
    height: int,
    style: str,
    marker: bool = True,
) -> str:
    """Lines through the points of each series; the first is the one in view. Wide ranges of x are drawn by ratio.

    `own` is a point off the lines: this plan, where the lines were worked out otherwise. `marker` is what a slider
    moves.
    """
    extra = [] if own is None else [own]
    xs = sorted({x for line in (*series, extra) for x, _ in line} | ({present} if present is not None else set()))
    steps = steps_to(max((y for line in (*series, extra) for _, y in line), default=0.0))
    texts = [y_text(s).replace(f".0{THIN}", THIN) for s in steps]
    left, right, top, bottom = 12 + 7.4 * max(map(len, texts)), width - 18, 26, height - 46
    place_x = _scale(xs, left + 10, right)

    def place_y(y: float) -> float:
        return bottom - (bottom - top) * y / (steps[-1] or 1.0)

    parts = [
        f'<line class="axis" x1="{left:.1f}" x2="{right}" y1="{place_y(s):.1f}" y2="{place_y(s):.1f}"/>'
        f'<text x="{left - 8:.1f}" y="{place_y(s) + 4:.1f}" text-anchor="end">{e(text)}</text>'
        for s, text in zip(steps, texts, strict=True)
    ]
    parts += _ticks(xs, place_x, bottom, width)
    parts.append(f'<text x="{(left + right) / 2:.1f}" y="{height - 6}" text-anchor="middle">{e(x_name)}</text>')
    if present is not None:
        at = place_x(present)
        parts.append(f'<line class="here" x1="{at:.1f}" x2="{at:.1f}" y1="{top - 6}" y2="{bottom}"/>')
        parts.append(_word("now", at, top - 11, left, right))
    for i, line in enumerate(series):
        path = " ".join(f"{place_x(x):.1f},{place_y(y):.1f}" for x, y in line)
        parts.append(f'<polyline class="line{" on" if i == 0 else ""}" points="{path}"/>')
    if knee is not None:
        near = min(series[0], key=lambda point: abs(point[0] - knee))
        x, y = place_x(near[0]), place_y(near[1])
        parts.append(f'<circle class="knee" cx="{x:.1f}" cy="{y:.1f}" r="9" opacity=".45"/>')
        parts.append(_word("knee", x + 14, y - 12, left, right, anchor="start"))
    if own is not None:
        x, y = place_x(own[0]), place_y(own[1])
        corners = f"{x:.1f},{y - 8:.1f} {x + 8:.1f},{y:.1f} {x:.1f},{y + 8:.1f} {x - 8:.1f},{y:.1f}"
        told = f"<title>this plan: {e(y_text(own[1]))}</title>"
        parts.append(f'<polygon class="own" points="{corners}">{told}</polygon>')
        parts.append(_word("this plan", x - 13, y + 20, left, right, anchor="end"))
    for i, line in enumerate(series):
        dots = "".join(
            f'<circle class="dot" cx="{place_x(x):.1f}" cy="{place_y(y):.1f}" r="3.4">'
            f"<title>{e(number(x))} {e(x_name)}: {e(y_text(y))}</title></circle>"
            for x, y in line
        )
        hidden = "" if i == 0 else ' hidden=""'
        parts.append(f'<g class="dots"{hidden}>{dots}</g>')
    if marker:
        first = series[0][0]
        parts.append(f'<circle class="marker" cx="{place_x(first[0]):.1f}" cy="{place_y(first[1]):.1f}" r="7.5"/>')
    return (
        f'<svg class="{style}" data-plot="whatif" role="img" aria-label="{e(label)}" viewBox="0 0 {width} {height}">'
        f"{''.join(parts)}</svg>"
    )


def _word(text: str, x: float, y: float, left: float, right: float, anchor: str = "middle") -> str:
    """A word near a place, kept inside the picture."""
    if x > right - 40:
        anchor, x = "end", min(x, right)
    elif anchor == "middle" and x < left + 20:
        anchor = "start"
    return f'<text class="said" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{e(text)}</text>'


def _ticks(xs: Sequence[float], place: Callable[[float], float], bottom: float, width: int) -> list[str]:
    """The values of x under the axis, as many as do not touch."""
    found, last = [], -math.inf
    for x in xs:
        half = 4.2 * len(number(x))
        if place(x) - half > last + 9 and place(x) + half < width + 4:
            found.append(f'<text x="{place(x):.1f}" y="{bottom + 19:.1f}" text-anchor="middle">{e(number(x))}</text>')
            last = place(x) + half
    return found


def steps_to(top: float) -> list[float]:
    """Round values from 0 to at least the top."""
    if not top > 0:
        return [0.0, 1.0]
    rough = top / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= rough * (1 - 1e-9))
    return [i * step for i in range(math.ceil(top / step - 1e-9) + 1)]


def _scale(xs: Sequence[float], left: float, right: float) -> Callable[[float], float]:
    low, high = min(xs), max(xs)
    ratio = low > 0 and high / low > 6
    start, end = (math.log(low), math.log(high)) if ratio else (low, high)
    span = (end - start) or 1.0

    def place(x: float) -> float:
        return left + (right - left) * ((math.log(x) if ratio else x) - start) / span

    return place
