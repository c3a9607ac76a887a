"""How adapting went: the cost of the plan in force beside that of the first one, and every re-plan, over time."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from narrowcast.reports.curve import steps_to
from narrowcast.reports.parts import Section, figure, folded, legend, table
from narrowcast.reports.text import e, number, percent, plural

COLUMNS = ("hours", "cost kept", "cost now", "moves", "joins")
MOST_ROWS = 500
STEPS = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 4, 6, 12, 24)  # hours


def timeline_section(rows: Sequence[Mapping[str, Any]]) -> Section:
    """The section for the rows of a timeline, of which there is at least one."""
    moved = [row for row in rows if row["replanned"]]
    kept, now = (sum(row[name] for row in rows) for name in ("first", "now"))
    saved = percent(1 - now / kept) if kept > 0 else percent(0.0)
    lead = (
        f"{plural(len(rows), 'look')} at the demand, {plural(len(moved), 're-plan')}, "
        f"{plural(sum(row['moves'] for row in moved), 'move')}: {saved} below keeping the first plan."
    )
    drawn = "".join(_plot(rows, *size) for size in ((920, 300, "wide-only"), (340, 240, "narrow")))
    told = [
        (f"{_hours(rows, row):.2f}", *(number(row[c]) for c in ("first", "now", "moves", "joins"))) for row in moved
    ]
    words = legend(
        (("other", "cost of keeping the first plan"), ("ours", "cost of the plan in force; a mark where it moved"))
    )
    body = figure(drawn + words) + (
        folded("As a table", table(COLUMNS, told[:MOST_ROWS], numbers=COLUMNS)) if told else ""
    )
    return Section("timeline", "Over time", body, lead)


def _hours(rows: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> float:
    """Hours since midnight before the first look, or since it, where times are those of a clock."""
    begin = rows[0]["time"]
    return float(row["time"] - (begin if begin > 10 * 86400 else 0.0)) / 3600


def _marks(first: float, last: float) -> list[float]:
    """Round hours from first to last, at most seven: a step that people count in, from 36 seconds to days."""
    step = next((s for s in STEPS if (last - first) / s <= 6), 24 * math.ceil((last - first) / 144))
    return [k * step for k in range(math.ceil(first / step - 1e-9), math.floor(last / step + 1e-9) + 1)]


def _plot(rows: Sequence[Mapping[str, Any]], width: int, height: int, style: str) -> str:
    steps = steps_to(max(max(row["first"], row["now"]) for row in rows))
    left, right, top, bottom = 18 + 7.4 * max(len(number(s)) for s in steps), width - 18, 14, height - 46
    hours = [_hours(rows, row) for row in rows]
    span = (hours[-1] - hours[0]) or 1.0

    def x(hour: float) -> float:
        return left + (right - left) * (hour - hours[0]) / span

    def y(value: float) -> float:
        return bottom - (bottom - top) * value / (steps[-1] or 1.0)

    parts = [
        f'<line class="axis" x1="{left:.1f}" x2="{right}" y1="{y(s):.1f}" y2="{y(s):.1f}"/>'
        f'<text x="{left - 8:.1f}" y="{y(s) + 4:.1f}" text-anchor="end">{e(number(s))}</text>'
        for s in steps
    ]
    parts += [
        f'<text x="{x(hour):.1f}" y="{bottom + 19}" text-anchor="middle">{round(hour, 3):g}</text>'
        for hour in _marks(hours[0], hours[-1])
    ]
    parts.append(f'<text x="{(left + right) / 2:.1f}" y="{height - 6}" text-anchor="middle">hours</text>')
    for name, look in (("first", "line"), ("now", "line on")):
        path = " ".join(f"{x(hour):.1f},{y(row[name]):.1f}" for hour, row in zip(hours, rows, strict=True))
        parts.append(f'<polyline class="{look}" points="{path}"/>')
    parts += [
        f'<circle class="dot" cx="{x(hour):.1f}" cy="{y(row["now"]):.1f}" r="4">'
        f"<title>{hour:.2f} h: {row['moves']} moves, {row['joins']} joins</title></circle>"
        for hour, row in zip(hours, rows, strict=True)
        if row["replanned"]
    ]
    label = f"Cost of the plan in force and of the first plan, over {span:.1f} hours"
    return (
        f'<svg class="{style}" role="img" aria-label="{e(label)}" viewBox="0 0 {width} {height}">{"".join(parts)}</svg>'
    )
