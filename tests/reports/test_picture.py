"""A plan as one drawing: the report shows it, and a file holds it by itself, as SVG or as pixels."""

from __future__ import annotations

import builtins
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import narrowcast as nc
from narrowcast.errors import InputError, UnsupportedError
from narrowcast.plans.kinds import KINDS, kind_of
from narrowcast.plans.verbs import report_page
from narrowcast.reports.overlay import COLOURED, NAMED, SIZE, DrawnTree, overlay_drawing
from narrowcast.reports.picture import standalone
from reports.pages import PLANS

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("kind", PLANS)
def test_every_kind_draws_itself_once_for_page_and_file(kind: str, tmp_path: Path) -> None:
    plan = PLANS[kind]()
    drawn = kind_of(plan.kind).report.picture(plan)
    svg = plan.picture(tmp_path / "plan.svg").read_text(encoding="utf-8")
    assert svg == standalone(drawn)
    root = ElementTree.fromstring(svg)  # names that would do harm are text
    assert not [el for el in root.iter() if el.tag in (f"{SVG}script", f"{SVG}foreignObject")]
    assert "var(" not in svg
    wide, tall = (float(root.get(side, "0")) for side in ("width", "height"))
    texts = list(root.iter(f"{SVG}text"))
    assert all(0 <= float(el.get("x", "0")) <= wide and float(el.get("y", "0")) <= tall for el in texts)
    marks = re.findall(r"<(?:line|circle|rect|image|path) [^>]*>", drawn.drawing)
    page = report_page(plan)
    sources = re.findall(r'href="(data:image/png[^"]*)"', drawn.drawing) or marks
    assert all(source in page for source in sources)
    pixels = plan.picture(tmp_path / "plan.png").read_bytes()
    assert pixels.startswith(b"\x89PNG")


def test_the_picture_has_colours_and_letters(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    nc.plan(nc.workloads.market(symbols=200, users=20, seed=1), groups=4, sessions=9).picture(tmp_path / "plan.png")
    with image.open(tmp_path / "plan.png") as opened:
        pixels = np.asarray(opened.convert("RGB")).astype(int)
    assert (np.abs(pixels - (52, 132, 232)).sum(axis=2) < 30).mean() > 0.01  # what is wanted
    assert (pixels.sum(axis=2) == 3 * 255).mean() > 0.05  # the page
    assert (pixels[:110].max(axis=2) < 90).sum() > 200  # the title


@pytest.mark.parametrize("name", ["plan.bmp", "plan.pdf", "plan", "nowhere/plan.svg"])
def test_a_file_that_cannot_be_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"must end in \.png or \.svg|no such folder"):
        PLANS["queries"]().picture(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_pixels_without_their_package_name_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def absent(name: str, *arguments: Any, **more: Any) -> Any:
        if name == "resvg_py":
            raise ImportError(name)
        return usual(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", absent)
    with pytest.raises(UnsupportedError, match=r"narrowcast\[plots\]"):
        PLANS["queries"]().picture(tmp_path / "plan.png")
    PLANS["queries"]().picture(tmp_path / "plan.svg")


def test_a_plan_for_nobody_is_drawn_too(tmp_path: Path) -> None:
    nobody = nc.Interest.from_pairs([], [], [5.0, 2.0], n_users=3)
    plan = nc.channels.plan(nobody, groups=2, sessions=2, method="gf")
    assert plan.picture(tmp_path / "plan.png").stat().st_size > 0
    assert "Who gets what" in report_page(plan)


def test_every_kind_has_a_picture() -> None:
    assert all(hasattr(kind.report, "picture") for kind in KINDS.values())


def test_trees_lie_side_by_side_and_the_many_are_hidden() -> None:
    load = {("a", "b"): 2.0, ("b", "c"): 1.0}
    trees = [DrawnTree(f"channel {k}", [("a", "b")] if k % 2 else [("b", "a"), ("b", "c")], "a") for k in range(12)]
    drawn = overlay_drawing(load, {"c"}, {"a"}, "", trees, {"a": (0, 0), "b": (10, 0), "c": (20, 0)})
    paths = re.findall(r'<path class="tree t(\d)" data-tree="(\d+)"( hidden="")? d="([^"]*)"', drawn)
    assert [int(number) for _, number, _, _ in paths] == list(range(12))
    assert [bool(hidden) for _, _, hidden, _ in paths] == [k >= COLOURED for k in range(12)]
    starts = [float(re.match(r"M[\d.]+ ([\d.]+)L", way).group(1)) for *_, way in paths[:COLOURED]]  # type: ignore[union-attr]
    assert len(set(starts)) == COLOURED  # none hides another


def test_a_few_have_their_names_beside_them_and_many_on_hover() -> None:
    chain = {(f"b{k}", f"b{k + 1}"): 1.0 for k in range(NAMED + 3)}
    few = overlay_drawing(chain, {"b0", "<b>"}, {"b3"}, "")
    assert re.findall(r"<text[^>]*>([^<]*)</text>", few) == ["&lt;b&gt;", "b0", "b3"]
    many = overlay_drawing(chain, {f"b{k}" for k in range(NAMED + 1)}, set(), "")
    assert "<text" not in many


def test_parts_without_a_link_between_them_stand_side_by_side() -> None:
    """A part far away would make the rest small."""
    load = {(f"a{i}", f"a{j}"): 1.0 for i in range(40) for j in (i // 2, i // 3) if i != j} | {("x", "y"): 1.0}
    drawn = overlay_drawing(load, set(), set(), "")
    places = {name: (float(x), float(y)) for x, y, name in
              re.findall(r'cx="([\d.]+)" cy="([\d.]+)"[^>]*><title>(\w+)', drawn)}  # fmt: skip
    main = np.array([at for name, at in places.items() if name.startswith("a")])
    assert np.ptp(main, axis=0).max() > 0.75 * (SIZE - 40)


def test_two_brokers_at_one_place_are_drawn_apart() -> None:
    drawn = overlay_drawing({("a", "b"): 1.0}, {"a", "b"}, set(), "two", places={"a": (0.0, 0.0), "b": (0.0, 0.0)})
    first, second = re.findall(r'<circle[^>]* cx="([\d.]+)" cy="([\d.]+)"', drawn)
    assert first != second
