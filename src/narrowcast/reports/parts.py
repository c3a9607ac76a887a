"""The parts a report is built of: sections, figures with a table beside them, bars, columns, tiles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from narrowcast.reports.text import e


@dataclass(frozen=True)
class Section:
    """A heading with what stands under it; `body` is markup, everything else plain text."""

    id: str
    title: str
    body: str
    lead: str = ""


@dataclass(frozen=True)
class Tile:
    """One figure that matters, large, with what it means under it."""

    label: str
    value: str
    note: str = ""
    good: bool = False


@dataclass(frozen=True)
class Report:
    """All that a page shows of a plan. `data` is what its script reads."""

    title: str
    headline: str
    summary: str
    tiles: tuple[Tile, ...]
    sections: tuple[Section, ...]
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Bar:
    """A row of a bar chart: `share` of the longest, the value as text, and whether it is this plan's."""

    name: str
    share: float
    value: str
    note: str = ""
    ours: bool = False


def table(
    columns: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Sequence[str] = (), stack: bool = False
) -> str:
    """A table of plain text. Where it is too wide it scrolls sideways, or with `stack` its rows become cards."""
    flush = [' class="num"' if column in numbers else "" for column in columns]
    head = "".join(f'<th scope="col"{style}>{e(column)}</th>' for column, style in zip(columns, flush, strict=True))
    labels = [f' data-label="{e(column)}"' if stack else "" for column in columns]
    body = "".join(
        "<tr>" + "".join(f"<td{a}{b}>{e(cell)}</td>" for cell, a, b in zip(row, flush, labels, strict=True)) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="{"scroll stack" if stack else "scroll"}" tabindex="0" role="region" '
        f'aria-label="Table: {e(columns[0])}">'
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def folded(summary: str, body: str) -> str:
    """Something to open on demand."""
    return f"<details><summary>{e(summary)}</summary>{body}</details>"


def bars(label: str, rows: Sequence[Bar]) -> str:
    """Horizontal bars, in the order given. Text and numbers are text, so no other form of it is needed."""
    lines = []
    for row in rows:
        width = f"{100 * min(max(row.share, 0.002), 1.0):.2f}"
        note = f'<span class="note">{e(row.note)}</span>' if row.note else ""
        lines.append(
            f'<li class="{"bar ours" if row.ours else "bar"}"><span class="name">{e(row.name)}</span>'
            f'<svg class="track" aria-hidden="true" viewBox="0 0 100 1" preserveAspectRatio="none">'
            f'<rect class="fill" width="{width}" height="1"/></svg>'
            f'<span class="value">{e(row.value)}{note}</span></li>'
        )
    return f'<ul class="bars" data-plot="bars" aria-label="{e(label)}">{"".join(lines)}</ul>'


def columns_chart(label: str, heights: Sequence[float], titles: Sequence[str], *, under: Sequence[str]) -> str:
    """Upright bars side by side, as many as there are; `under` them a text for each, or one for either end."""
    top = max(heights, default=0.0) or 1.0
    marks = "".join(
        f'<rect x="{at}.1" y="{100 - tall:.2f}" width=".8" height="{tall:.2f}"><title>{e(title)}</title></rect>'
        for at, (height, title) in enumerate(zip(heights, titles, strict=True))
        for tall in (max(100 * height / top, 0.4 if height > 0 else 0),)
    )
    return (
        f'<svg class="columns" data-plot="columns" role="img" aria-label="{e(label)}" '
        f'viewBox="0 0 {max(len(heights), 1)} 100" preserveAspectRatio="none">{marks}</svg>'
        f'<div class="{"ends each" if len(under) == len(heights) else "ends"}" aria-hidden="true">'
        f"{''.join(f'<span>{e(text)}</span>' for text in under)}</div>"
    )


def figure(body: str, caption: str = "", *, wide: bool = False) -> str:
    """A picture with its caption."""
    told = f"<figcaption>{e(caption)}</figcaption>" if caption else ""
    return f"<figure{' class=wide' if wide else ''}>{body}{told}</figure>"


def facts(pairs: Iterable[tuple[str, object]], *, code: bool = False) -> str:
    """Names and values, one under another."""
    rows = "".join(
        f"<div><dt>{e(name)}</dt><dd>{f'<code>{e(value)}</code>' if code else e(value)}</dd></div>"
        for name, value in pairs
    )
    return f'<dl class="facts">{rows}</dl>'


def legend(entries: Iterable[tuple[str, str]]) -> str:
    """What colours mean: (class, text)."""
    items = "".join(
        f'<li><span class="swatch {e(kind)}" aria-hidden="true"></span>{e(text)}</li>' for kind, text in entries
    )
    return f'<ul class="legend">{items}</ul>'
