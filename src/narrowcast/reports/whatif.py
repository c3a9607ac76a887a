"""The what-if figure: cost against a budget, a slider that picks a setting, and a sentence for each."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from narrowcast.errors import InputError
from narrowcast.reports.curve import curve
from narrowcast.reports.parts import Section, folded, table
from narrowcast.reports.picture import Picture
from narrowcast.reports.text import e, number, percent

# What is no setting among the keys of a point.
RESULTS = ("cost", "relative")


@dataclass(frozen=True)
class Whatif:
    """Settings tried, and what came of each: `series` holds points along `x`, one series per other setting.

    A point has its settings, its `cost`, and `relative` if there is a yardstick. `present` and `knee` are
    values of `x`.
    """

    x: str
    series: tuple[tuple[str, tuple[Mapping[str, float], ...]], ...]
    present: float | None
    knee: float | None
    how: str = ""


def read_whatif(path: str | Path) -> Whatif:
    """From the file that `narrowcast whatif` writes."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        return parse_whatif(found)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}", name="whatif", got=str(path)) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        told = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(f"{path}: not what `narrowcast whatif` writes: {told}", name="whatif", got=str(path)) from None


def parse_whatif(found: Mapping[str, Any], how: str = "") -> Whatif:
    """Points with several values of another setting for the same x become one series for each of them.

    >>> made = parse_whatif({"x": "groups", "points": [{"groups": 2, "cost": 9.0}, {"groups": 4, "cost": 5.0}]})
    >>> made.series[0][0], len(made.series[0][1]), made.present is None
    ('', 2, True)
    """
    x = str(found["x"])
    points = [{str(k): float(v) for k, v in point.items() if _numeric(v)} for point in found["points"]]
    if not points or not all(math.isfinite(point["cost"]) and math.isfinite(point[x]) for point in points):
        raise ValueError("no points with a cost")
    others = sorted({key for point in points for key in point} - {x, *RESULTS})
    crowded = len({point[x] for point in points}) < len(points)
    apart = [key for key in others if len({point.get(key) for point in points}) > 1] if crowded else []
    series: dict[str, dict[float, Mapping[str, float]]] = {}
    for point in points:
        name = ", ".join(f"{number(point[key])} {words_of(key)}" for key in apart if key in point)
        series.setdefault(name, {})[point[x]] = point
    given = found.get("present")
    here = ", ".join(
        f"{number(float(given[key]))} {words_of(key)}" for key in apart if isinstance(given, Mapping) and key in given
    )
    # The present's own line comes first: it is the one in view.
    names = sorted(series, key=lambda name: name != here)
    ordered = tuple((name, tuple(series[name][at] for at in sorted(series[name]))) for name in names)
    return Whatif(
        x, ordered, _value(found.get("present"), x), _value(found.get("knee"), x), how or str(found.get("how", ""))
    )


def whatif_section(
    whatif: Whatif, *, cost: float, measure: str, unit: str, relative_cost: float | None = None
) -> tuple[Section, list[list[dict[str, str]]]]:
    """The section and what its script reads.

    `cost` and `relative_cost` are this plan's; `measure` names what `relative` is a share of.
    """
    relative = all("relative" in point for _, line in whatif.series for point in line)
    key = "relative" if relative else "cost"
    words = words_of(whatif.x)
    show = percent if relative else number
    at = _start(whatif)
    ours = relative_cost if relative else cost
    own = _own(whatif, key, ours)
    data = [[_told(point, whatif, words, key, ours, measure, unit) for point in line] for _, line in whatif.series]
    label = f"{measure if relative else unit} against {words}"
    plots = "".join(
        curve(
            [[(point[whatif.x], point[key]) for point in line] for _, line in whatif.series],
            label=label,
            x_name=words,
            y_text=show,
            present=whatif.present,
            knee=whatif.knee,
            own=own,
            width=width,
            height=height,
            style=style,
        )
        for width, height, style in ((920, 330, "wide-only"), (340, 260, "narrow"))
    )
    columns = (*([whatif.x] if len(whatif.series) == 1 else ["", whatif.x]), *RESULTS[: 1 + relative])
    rows = [
        (*([] if len(whatif.series) == 1 else [name]), number(point[whatif.x]), number(point["cost"]),
         *([percent(point["relative"])] if relative else []))
        for name, line in whatif.series for point in line
    ]  # fmt: skip
    body = (
        f"{_controls(whatif, words, at)}"
        f'<output id="whatif-answer" for="whatif-setting">{e(data[0][at]["says"])}</output>'
        f"<figure>{plots}</figure>"
        + folded("As a table", table([words_of(c) for c in columns], rows, numbers=[words_of(c) for c in columns]))
    )
    lead = f"Move the slider to ask what another number of {words} would give. {whatif.how}".strip()
    return Section("what-if", "What if", body, lead), data


def whatif_picture(whatif: Whatif, title: str, ours: float) -> Picture:
    """The figure by itself: a line for each series, the first in view; `ours` is this plan's share."""
    lines = [[(point[whatif.x], point["relative"]) for point in line] for _, line in whatif.series]
    drawing = curve(
        lines, label=title, x_name=words_of(whatif.x), y_text=percent, present=whatif.present, knee=whatif.knee,
        own=_own(whatif, "relative", ours), width=720, height=400, style="", marker=False,
    )  # fmt: skip
    first, *others = [name for name, _ in whatif.series]
    keys = (("ours", first), ("other", "; ".join(others))) if others else ()
    return Picture(title, drawing, keys, whatif.how)


def _own(whatif: Whatif, key: str, value: float | None) -> tuple[float, float] | None:
    """This plan as a point of its own, where the curve does not go through it."""
    if whatif.present is None or value is None:
        return None
    near = [point[key] for _, line in whatif.series for point in line if point[whatif.x] == whatif.present]
    return None if any(abs(y - value) <= 5e-3 * max(abs(y), abs(value)) for y in near) else (whatif.present, value)


def _controls(whatif: Whatif, words: str, at: int) -> str:
    lines = whatif.series
    pick = ""
    if len(lines) > 1:
        options = "".join(f'<option value="{i}">{e(name)}</option>' for i, (name, _) in enumerate(lines))
        pick = f'<label for="whatif-series">With</label><select id="whatif-series">{options}</select>'
    return (
        f'<div class="controls"><label for="whatif-setting">{e(words.capitalize())}</label>'
        f'<input type="range" id="whatif-setting" min="0" max="{len(lines[0][1]) - 1}" step="1" value="{at}">'
        f"{pick}</div>"
    )


def _told(
    point: Mapping[str, float], whatif: Whatif, words: str, key: str, ours: float | None, measure: str, unit: str
) -> dict[str, str]:
    """The sentence for a setting, and the setting alone for who hears the slider instead of seeing it."""
    others = [f"{number(v)} {words_of(k)}" for k, v in point.items() if k not in (whatif.x, *RESULTS)]
    setting = f"{number(point[whatif.x])} {words}" + (f" and {', '.join(others)}" if others else "")
    result = f"{unit} {number(point['cost'])}"
    if "relative" in point:
        result = f"{percent(point['relative'])} of {measure} ({result})"
    return {"setting": setting, "says": f"With {setting}: {result}{_against(point[key], ours)}."}


def _against(value: float, ours: float | None) -> str:
    if not ours:
        return ""
    change = value / ours - 1
    if abs(change) < 5e-4:
        return ", the same as this plan"
    return f", {percent(abs(change))} {'less' if change < 0 else 'more'} than this plan"


def _start(whatif: Whatif) -> int:
    """Where the slider stands at first: at the present setting, else at the knee."""
    values = [point[whatif.x] for point in whatif.series[0][1]]
    aim = whatif.present if whatif.present is not None else whatif.knee
    return 0 if aim is None else min(range(len(values)), key=lambda i: abs(values[i] - aim))


def _value(given: Any, x: str) -> float | None:
    """A setting given as a number, or as a point."""
    if isinstance(given, Mapping):
        given = given.get(x)
    return float(given) if _numeric(given) else None


def _numeric(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def words_of(key: str) -> str:
    """What people call a setting."""
    return key.removeprefix("max_").replace("_", " ") if key != "k" else "filters"
