"""A system from left to right: who sends, what carries it, who receives. Rates are filled in by whoever has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from narrowcast.reports.text import e

ROW, BOX, HEAD = 50, 38, 30
LEAST = 105  # for a column and the room after it
SIZES = ((920, 13, "wide-only"), (340, 12, "narrow"))  # width, size of letters, style


@dataclass(frozen=True, slots=True)
class Station:
    """A box of the map. `key` names it for rates and links; with `asks` it is a link that asks about it."""

    key: str
    label: str
    kind: str
    asks: str = ""


@dataclass(frozen=True, slots=True)
class Leg:
    """A line from one box to another, as thick as the rate of `of`."""

    start: str
    end: str
    of: str


def system_map(columns: Sequence[tuple[str, Sequence[Station]]], legs: Sequence[Leg], label: str) -> str:
    """The drawing, twice: for a desk and for a phone. Rates stand in elements with `data-rate`, lines in `data-leg`.

    Parameters
    ----------
    columns : a heading and the boxes under it, from left to right
    legs : the lines; those whose ends are not drawn are left out
    label : what the picture shows, for who does not see it
    """
    return "".join(_drawn(columns, legs, label, *size) for size in SIZES)


def _drawn(
    columns: Sequence[tuple[str, Sequence[Station]]],
    legs: Sequence[Leg],
    label: str,
    width: int,
    letter: int,
    style: str,
) -> str:
    n = max(len(columns), 1)
    roomy = max(width, LEAST * n)  # wider than the screen if it must be: names that are cut say nothing
    sized = f' width="{roomy}"' if roomy > width else ""
    width = roomy
    gap = 0.42 if style == "wide-only" else 0.3
    pitch = width / (n - gap)
    wide = pitch * (1 - gap)
    height = HEAD + ROW * max((len(boxes) for _, boxes in columns), default=1)
    place: dict[str, tuple[float, float]] = {}
    boxes, heads = [], []
    for at, (heading, stations) in enumerate(columns):
        x = at * pitch
        if wide > 7 * len(heading):
            heads.append(f'<text class="heading" x="{x:.1f}" y="14">{e(heading)}</text>')
        top = HEAD + (height - HEAD - ROW * len(stations)) / 2
        for row, station in enumerate(stations):
            y = top + ROW * row + (ROW - BOX) / 2
            place[station.key] = x, y + BOX / 2
            boxes.append(_box(station, x, y, wide, letter))
    lines = [_leg(leg, place, wide, gap * pitch) for leg in legs if leg.start in place and leg.end in place]
    return (
        f'<svg class="{style}" data-plot="map" role="group" aria-label="{e(label)}"{sized} '
        f'viewBox="0 0 {width} {height:.0f}">'
        f"{''.join(heads)}<g>{''.join(lines)}</g>{''.join(boxes)}</svg>"
    )


def _box(station: Station, x: float, y: float, wide: float, letter: int) -> str:
    letters = max(4, int((wide - 16) / (0.6 * letter)))
    name = station.label if len(station.label) <= letters else f"{station.label[: letters - 1]}…"
    body = (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{BOX}" rx="6"/><title>{e(station.label)}</title>'
        f'<text class="name" x="{x + 8:.1f}" y="{y + 16:.1f}">{e(name)}</text>'
        f'<text class="rate" x="{x + 8:.1f}" y="{y + 31:.1f}" data-rate="{e(station.key)}">–</text>'
    )
    mark = f'class="box {e(station.kind)}" data-box="{e(station.key)}"'
    return f'<a href="#ask={e(station.asks)}" {mark}>{body}</a>' if station.asks else f"<g {mark}>{body}</g>"


def _leg(leg: Leg, place: dict[str, tuple[float, float]], wide: float, gap: float) -> str:
    (x, y), (to_x, to_y) = sorted((place[leg.start], place[leg.end]))  # one that goes back is drawn from its end
    x += wide
    side = to_x < x  # both in one column: out and in on the right
    to_x, bend = (x, gap / 2) if side else (to_x, max(gap / 2, (to_x - x) / 2))
    arrive = to_x + bend if side else to_x - bend
    path = f"M{x:.1f} {y:.1f}C{x + bend:.1f} {y:.1f} {arrive:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
    return f'<path class="leg" d="{path}" stroke-width="1" data-leg="{e(leg.of)}"/>'
