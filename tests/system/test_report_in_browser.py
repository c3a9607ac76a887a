"""The report in a real browser: nothing fails, nothing is asked of the network, everything is drawn and reachable."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import narrowcast as nc
from narrowcast.plans.verbs import quick_whatif, report_page
from narrowcast.reports.whatif import parse_whatif
from reports.pages import PLANS

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (in the dev group)")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("needs Chromium", allow_module_level=True)

pytestmark = pytest.mark.xdist_group("browser")
ARTIFACTS = Path(__file__).parents[2] / "artifacts"
SIZES = {"phone": (390, 844), "desk": (1280, 900)}

# Text against what is behind it, as WCAG 2 has it: 4.5 to 1, or 3 to 1 where it is large.
CONTRAST = """() => {
  const light = c => { const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b; };
  const parse = s => s.match(/[\\d.]+/g).map(Number);
  const behind = el => { for (; el; el = el.parentElement) { const c = parse(getComputedStyle(el).backgroundColor);
    if (c.length < 4 || c[3] > .99) return c.slice(0, 3); } return [255, 255, 255]; };
  const poor = [];
  for (const el of document.querySelectorAll('body *')) {
    const own = [...el.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    const box = el.getBoundingClientRect();
    if (!own || !box.width || !box.height || el.closest('script, style, .skip')) continue;
    const style = getComputedStyle(el), ink = parse(el instanceof SVGElement ? style.fill : style.color).slice(0, 3);
    const [a, b] = [light(ink), light(behind(el))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.6 && style.fontWeight >= 600);
    const told = `${el.tagName}.${el.getAttribute('class')} ${ratio.toFixed(2)} ${el.textContent.slice(0, 30)}`;
    if (ratio < (large ? 3 : 4.5)) poor.push(told);
  }
  return poor;
}"""

# What a screen reader or a keyboard needs, in the manner of axe.
REACHABLE = """() => {
  const wrong = [], all = s => [...document.querySelectorAll(s)];
  const check = (selector, good, says) => all(selector).forEach(el => good(el) || wrong.push(`${says}: ${el.id}`));
  check('input, select', el => el.labels.length && el.labels[0].textContent.trim(), 'a control without a label');
  check('img', el => el.alt, 'an image without a text');
  check('[role=img]', el => el.getAttribute('aria-label'), 'a picture without a label');
  check('section', el => el.hasAttribute('aria-labelledby'), 'a section without a name');
  check('nav, [role=region]', el => el.hasAttribute('aria-label'), 'a region without a name');
  check('.scroll', el => el.tabIndex === 0, 'a scrolling part out of reach of the keyboard');
  check('table', el => el.querySelector('th[scope=col]'), 'a table without headings');
  check('[tabindex]', el => el.tabIndex <= 0, 'a tab order of its own');
  if (all('h1').length !== 1 || all('main').length !== 1) wrong.push('not one main heading and part');
  const levels = all('h1, h2, h3, h4').map(el => +el.tagName[1]);
  levels.forEach((n, i) => n > (levels[i - 1] ?? 0) + 1 && wrong.push(`headings skip to ${n}`));
  if (!document.documentElement.lang || !document.title) wrong.push('no language or title');
  return wrong;
}"""

# Every plot in view has a size and something in it; pictures were decoded.
DRAWN = """() => {
  const seen = el => { const b = el.getBoundingClientRect(); return b.width + b.height > 0; };
  const marks = el => el.tagName === 'IMG' ? el.naturalWidth * el.naturalHeight
    : [...el.querySelectorAll('circle, line, polyline, rect, i, .fill')].filter(seen).length;
  return [...document.querySelectorAll('[data-plot]')].filter(seen).map(el => {
    const {width, height} = el.getBoundingClientRect();
    return {plot: el.dataset.plot, width, height, marks: marks(el)};
  });
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        arguments = ["--no-sandbox", "--disable-background-networking"]
        chromium = running.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


class Visit:
    """A page opened in a window of a size and a theme, with all that it logged and asked for."""

    def __init__(self, browser: Any, path: Path, size: str, theme: str, *, motion: str = "no-preference") -> None:
        width, height = SIZES[size]
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, reduced_motion=motion
        )
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())

    def close(self) -> None:
        self.context.close()


EXPECTED = {
    "channels": {"bars", "whatif", "matrix", "columns"},
    "hybrid": {"bars", "whatif", "matrix", "columns"},
    "filters": {"bars", "whatif", "tree", "columns"},
    "queries": {"bars", "map", "columns"},
    "semantic": {"bars", "overlay", "columns"},
    "network": {"bars", "overlay", "columns"},
}


@pytest.mark.long
@pytest.mark.parametrize("kind", PLANS)
def test_every_plot_is_drawn_and_nothing_leaves_the_file(kind: str, browser: Any, tmp_path: Path) -> None:
    plan = PLANS[kind]()
    path = tmp_path / f"{kind}.html"
    path.write_text(report_page(plan, quick_whatif(plan)), encoding="utf-8")
    ARTIFACTS.mkdir(exist_ok=True)
    for size, theme in (("phone", "light"), ("phone", "dark"), ("desk", "light"), ("desk", "dark")):
        visit = Visit(browser, path, size, theme)
        assert visit.said == []
        assert [url for url in visit.asked if not url.startswith("data:")] == [path.as_uri()]
        assert "owned" not in visit.page.title()
        drawn = visit.page.evaluate(DRAWN)
        assert {plot["plot"] for plot in drawn} == EXPECTED[kind]
        for plot in drawn:
            assert plot["marks"] > 0, plot
            assert plot["width"] > 250, plot
            assert plot["height"] > 40, plot
        assert visit.page.evaluate(CONTRAST) == []
        assert visit.page.evaluate(REACHABLE) == []
        overflow = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert visit.page.evaluate(overflow) == 0, f"{kind} runs off a {size}"
        visit.page.screenshot(path=str(ARTIFACTS / f"report-{kind}-{size}-{theme}.png"), full_page=True)
        visit.close()


@pytest.mark.parametrize("size", SIZES)
def test_the_slider_answers_by_keyboard_and_by_hand(size: str, browser: Any, tmp_path: Path) -> None:
    points = [
        {"groups": g, "sessions": s, "cost": 100 / g + 50 / s, "relative": 1 / g + 0.1 / s}
        for g in (2, 4, 8, 16)
        for s in (10, 20)
    ]
    asked = parse_whatif({"x": "groups", "points": points, "present": 4, "knee": 8})
    path = tmp_path / "report.html"
    path.write_text(report_page(PLANS["channels"](), asked), encoding="utf-8")
    visit = Visit(browser, path, size, "light", motion="reduce")
    page = visit.page
    answer, slider = page.locator("#whatif-answer"), page.locator("#whatif-setting")
    assert answer.inner_text().startswith("With 4 groups and 10 sessions")
    marker = page.locator("svg[data-plot=whatif]:visible .marker")
    first = marker.get_attribute("cx")
    for _ in range(60):  # the keyboard alone must get there
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "whatif-setting":
            break
    assert page.evaluate("document.activeElement.id") == "whatif-setting"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.keyboard.press("ArrowRight")
    assert answer.inner_text().startswith("With 8 groups and 10 sessions: 13.5")
    assert slider.get_attribute("aria-valuetext") == "8 groups and 10 sessions"
    assert marker.get_attribute("cx") != first
    shown = "svg[data-plot=whatif]:visible g.dots:visible circle"
    assert page.locator(shown).count() == 4  # the dots of the line in view, and of no other
    page.select_option("#whatif-series", label="20 sessions")
    assert page.locator(shown).count() == 4
    assert answer.inner_text().startswith("With 8 groups and 20 sessions")
    slider.fill("0")
    assert answer.inner_text().startswith("With 2 groups and 20 sessions")
    said = {answer.inner_text()}
    for at in range(4):
        slider.fill(str(at))
        said.add(answer.inner_text())
    assert len(said) == 4
    assert visit.said == []
    visit.close()


def test_one_channel_is_shown_by_itself(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(report_page(PLANS["semantic"]()), encoding="utf-8")
    visit = Visit(browser, path, "phone", "light")
    shown = "[...document.querySelectorAll('[data-tree]')].filter(t => getComputedStyle(t).display !== 'none').length"
    every = visit.page.evaluate(shown)
    assert every > 1
    visit.page.focus("#tree-choice")
    visit.page.keyboard.press("ArrowDown")
    assert visit.page.evaluate(shown) == 1
    visit.page.select_option("#tree-choice", "")
    assert visit.page.evaluate(shown) == every
    assert visit.said == []
    visit.close()


def test_a_trading_floor_looks_right(browser: Any, tmp_path: Path) -> None:
    """A plan of some size with plain names, for the pictures people look at; kept under artifacts/."""
    symbols, desks = 3000, 200
    wants = nc.workloads.market(symbols=symbols, users=desks, seed=0)
    named = nc.Interest(
        wants.offsets, wants.users, wants.rates, wants.n_users,
        tuple(f"SYM{i:04d}" for i in range(wants.n_flows)), tuple(f"desk-{i}" for i in range(wants.n_users)),
    )  # fmt: skip
    plan = nc.channels.plan(named, groups=30, sessions=120, method="gf")
    path = tmp_path / "floor.html"
    path.write_text(report_page(plan, quick_whatif(plan)), encoding="utf-8")
    assert path.stat().st_size < 5_000_000
    ARTIFACTS.mkdir(exist_ok=True)
    for size, theme in (("phone", "dark"), ("desk", "light")):
        visit = Visit(browser, path, size, theme)
        assert visit.said == []
        assert visit.page.locator("h1").inner_text().startswith(("1", "2", "3", "4", "5", "6", "7", "8", "9"))
        details = visit.page.locator("#groups details")
        details.locator("summary").press("Enter")
        assert details.locator("tbody tr").count() == len({g for g in plan.group_of_flow.tolist() if g >= 0})
        visit.page.screenshot(path=str(ARTIFACTS / f"floor-{size}-{theme}.png"), full_page=True)
        # One's own, by a part of its name; an exact name comes first.
        visit.page.fill("#find-name", "DESK-7")
        first = visit.page.locator("#find-results li").first.inner_text()
        assert first.startswith("subscriber desk-7\n")
        assert f"groups joined\n{int((plan.joins[0] == 7).sum())}" in first
        assert visit.page.locator("#find-results li").count() == 1 + 10  # desk-70 to desk-79
        visit.page.fill("#find-name", "sym")
        assert visit.page.inner_text("#find-says") == f"The first 25 of {symbols:,}: type more of the name."
        visit.page.fill("#find-name", "nobody")
        assert visit.page.inner_text("#find-says") == "Nothing in this plan has that in its name."
        if size == "desk":
            visit.page.hover("img.matrix >> nth=1", position={"x": 5, "y": 20})
            assert re.fullmatch(r"subscriber desk-\d+, flow SYM\d+", visit.page.inner_text("#hover-says"))
        visit.close()
    assert os.listdir(ARTIFACTS)
