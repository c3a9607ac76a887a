"""The timeline of adapting in the report: round hours on its axis, a mark for each re-plan."""

import re

import pytest

from narrowcast.reports.timeline import timeline_section


def _rows(first_s: float, last_s: float, looks: int = 49) -> list[dict[str, float]]:
    step = (last_s - first_s) / (looks - 1)
    same = {"now": 9.0, "moves": 3, "joins": 1}
    return [same | {"time": first_s + k * step, "first": 10.0 + k, "replanned": int(k % 10 == 9)} for k in range(looks)]


@pytest.mark.parametrize(
    ("first_s", "last_s", "hours"),
    [
        (900, 86400 + 900, ["4", "8", "12", "16", "20", "24"]),
        (22_320, 32_760, ["6.5", "7", "7.5", "8", "8.5", "9"]),
        (0, 90, ["0", "0.01", "0.02"]),
        (1.8e9, 1.8e9 + 3600, ["0", "0.25", "0.5", "0.75", "1"]),
        (0, 200 * 3600, ["0", "48", "96", "144", "192"]),
    ],
)
def test_hours_are_round(first_s: float, last_s: float, hours: list[str]) -> None:
    wide, narrow = re.findall(r"<svg.*?</svg>", timeline_section(_rows(first_s, last_s)).body)
    for drawn in (wide, narrow):
        shown = re.findall(r'text-anchor="middle">([\d.]+)</text>', drawn)
        assert shown == hours
        assert drawn.count("<circle") == 4


def test_one_look_alone_has_its_mark() -> None:
    assert "<polyline" in timeline_section(_rows(0, 0, looks=2)[:1]).body
