"""The console in a real browser, beside real systems: what it shows is so, and what is clicked happens."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from console.systems import HOSTILE, KINDS, OTHERS, Running, running_console
from narrowcast.deliver.processes.supervise import state_of

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright (in the dev group)")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
if CHROMIUM is None:
    pytest.skip("needs Chromium", allow_module_level=True)

pytestmark = [pytest.mark.engines, pytest.mark.xdist_group("browser")]
AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")
ARTIFACTS = Path(__file__).parents[2] / "artifacts"
SIZES = {390: 844, 1280: 900, 1920: 1080}


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        arguments = ["--no-sandbox", "--disable-background-networking"]
        chromium = running.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


class Visit:
    """A console opened in a window, with all that it logged and asked for."""

    def __init__(self, browser: Any, url: str, width: int = 1280, theme: str = "light") -> None:
        size = {"width": width, "height": SIZES[width]}
        self.context = browser.new_context(viewport=size, color_scheme=theme)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(url)
        self.until("document.querySelector('#map-drawing svg') !== null")

    def until(self, expression: str, seconds: float = 60.0) -> float:
        """Wait until a page's expression is true; how long that took."""
        begin = time.monotonic()
        while not self.page.evaluate(expression):
            assert time.monotonic() < begin + seconds, f"not true after {seconds:g} s: {expression}"
            time.sleep(0.05)
        return time.monotonic() - begin

    def text(self, name: str) -> str:
        return str(self.page.evaluate(f"document.getElementById('{name}').textContent"))

    def faults(self) -> list[str]:
        """What axe-core calls serious or critical."""
        self.page.evaluate(AXE)
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        bad = [v for v in found["violations"] if v["impact"] in ("serious", "critical")]
        return [f"{v['id']}: {[n['html'][:120] for n in v['nodes'][:3]]}" for v in bad]

    def close(self) -> None:
        assert self.said == [], self.said
        own = "/".join(self.page.url.split("/")[:3])
        assert all(url.startswith((own, "data:")) for url in self.asked), "something else was asked for"
        self.context.close()


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Channels, with a console that may change plans."""
    with running_console(tmp_path_factory.mktemp("market") / "data", KINDS["channels"](), 121, "--allow-changes") as it:
        yield it


def looked_at(visit: Visit, name: str) -> None:
    """The page as it is on every screen, light and dark, kept for people to look at; nothing may run off it."""
    ARTIFACTS.mkdir(exist_ok=True)
    for width, height in SIZES.items():
        visit.page.set_viewport_size({"width": width, "height": height})
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width, f"{name} is too wide for {width}"
        for theme in ("light", "dark"):
            visit.page.emulate_media(color_scheme=theme)
            visit.page.screenshot(path=str(ARTIFACTS / f"console-{name}-{width}-{theme}.png"), full_page=True)


def settled(visit: Visit) -> None:
    visit.until(
        "Number(document.body.dataset.refreshed) >= 3 && document.getElementById('t-messages_s').textContent > '0'"
    )


def test_the_page_says_what_the_registry_says(browser: Any, market: Running) -> None:
    visit = Visit(browser, market.url)
    settled(visit)
    epoch, names = market.registry()
    visit.until(f"document.getElementById('t-epoch').textContent === '{epoch['current']}'", 5)
    visit.until(f"document.getElementById('t-subscriptions').textContent === '{len(names)} subscriptions'", 5)
    shown = visit.page.evaluate("[...document.querySelectorAll('#edges tr td:first-child a')].map(a => a.textContent)")
    assert sorted(shown) == names
    assert HOSTILE in shown
    assert visit.page.title() == "narrowcast console", "a name was taken for markup"
    unasked = visit.page.evaluate(
        "[...document.querySelectorAll('#edges tr td:nth-child(4)')].map(a => +a.textContent)"
    )
    assert unasked == sorted(unasked, reverse=True), "the worst first"
    visit.close()


@pytest.mark.long
def test_a_subscriber_that_leaves_is_gone_from_the_page(browser: Any, tmp_path: Path) -> None:
    with running_console(tmp_path / "data", KINDS["filters"](), 122) as it:
        visit = Visit(browser, it.url)
        settled(visit)
        visit.until("document.getElementById('t-subscriptions').textContent === '3 subscriptions'", 10)
        boxes = visit.page.evaluate(
            "[...document.querySelectorAll('svg.wide-only [data-box]')].map(b => b.dataset.box)"
        )
        assert {"broker:hub", "broker:west", "broker:e-1"} <= set(boxes)
        it.unsubscribe("dear")
        visit.until("document.getElementById('t-subscriptions').textContent === '2 subscriptions'", 5)
        assert it.registry()[1] == ["cheap", "ibm"]
        assert visit.page.is_visible("#read-only")
        assert not visit.page.is_visible("#changes"), "a console that only shows offers no change"
        assert visit.faults() == []
        visit.page.click("#read-report")
        visit.until("document.getElementById('plan-now') !== null", 60)
        looked_at(visit, "filters")
        visit.close()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["semantic", "queries", "network"])
def test_every_kind_has_a_page(kind: str, browser: Any, tmp_path: Path) -> None:
    with running_console(tmp_path / "data", KINDS[kind](), 123) as it:
        visit = Visit(browser, it.url)
        settled(visit)
        visit.until(f"document.getElementById('t-subscribers').textContent === '{len(KINDS[kind]().wishes)}'", 10)
        assert visit.page.evaluate("document.querySelectorAll('svg.wide-only [data-box]').length") >= 4
        bars = "[...document.querySelectorAll('#edges .pair-bars')].map(b => b.getAttribute('aria-label'))"
        known = [" – predicted" not in told for told in visit.page.evaluate(bars)]
        assert all(known) if kind != "queries" else not any(known), "predictions where the plan has them"
        visit.page.focus("#edges a")
        visit.page.keyboard.press("Enter")
        visit.until("document.getElementById('panel-body').textContent.includes('In the plan')")
        visit.page.keyboard.press("Escape")
        visit.page.click("#read-report")
        visit.until("document.getElementById('plan-now') !== null", 60)
        visit.page.fill("#find-name", {"semantic": "left", "queries": "low", "network": "Paris-1"}[kind])
        assert visit.page.locator("#find-results li").count() >= 1
        looked_at(visit, kind)
        visit.close()


@pytest.mark.nightly
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_moved_by_clicking_and_seen_to_fail_and_recover(kind: str, browser: Any, tmp_path: Path) -> None:
    OTHERS[kind]().plan.save(tmp_path / "other")
    options = ("--allow-changes", "--propose", str(tmp_path / "other"))
    with running_console(tmp_path / "data", KINDS[kind](), 124, *options) as it:
        visit = Visit(browser, it.url)
        settled(visit)
        epoch, names = it.registry()
        visit.until(f"document.getElementById('t-epoch').textContent === '{epoch['current']}'", 5)
        visit.until(f"document.getElementById('t-subscriptions').textContent === '{len(names)} subscriptions'", 5)
        for theme in ("light", "dark"):
            visit.page.emulate_media(color_scheme=theme)
            assert visit.faults() == []
        visit.page.click("#propose button")
        visit.until("document.getElementById('proposal-says').textContent.startsWith('Made anew')", 120)
        visit.page.click("#others button")
        visit.until("document.getElementById('install') !== null", 60)
        assert "would go" in visit.text("proposal-says")
        visit.page.click("#install")
        visit.page.click("#confirm-yes")
        visit.until("document.getElementById('proposal-says').textContent.startsWith('In force')", 60)
        after = it.registry()[0]
        assert kind == "filters" or after["current"] > epoch["current"], "filters move without an epoch"
        visit.until(f"document.getElementById('t-epoch').textContent === '{after['current']}'", 5)
        if kind == "filters":
            visit.until("document.querySelector('svg.wide-only .filter[data-box=\"broker:east\"]') !== null", 5)
        source = state_of(it.folder)["processes"]["source-0"]  # type: ignore[index]
        os.kill(source, signal.SIGSTOP)
        try:
            assert visit.until("document.getElementById('health').dataset.level === 'bad'", 10) < 2.0
            visit.until("document.querySelector('.absent[data-box=\"source:source-0\"]') !== null", 2)
        finally:
            os.kill(source, signal.SIGKILL)
        visit.until("document.getElementById('health').dataset.level === 'ok'", 30)
        visit.until("parseFloat(document.getElementById('t-messages_s').textContent) > 0", 30)
        visit.page.click("#read-report")
        visit.until("document.getElementById('plan-now') !== null", 60)
        looked_at(visit, f"{kind}-moved")
        visit.close()


def test_anything_can_be_asked_about_by_keyboard_alone(browser: Any, market: Running) -> None:
    visit = Visit(browser, market.url)
    settled(visit)
    visit.page.focus("svg.wide-only a[data-box='group:0']")
    visit.page.keyboard.press("Enter")
    visit.until("document.getElementById('panel-body').textContent.includes('In the plan')")
    assert "share of all traffic, measured / predicted" in visit.text("panel-body")
    assert visit.faults() == []
    visit.page.keyboard.press("Escape")
    assert not visit.page.evaluate("document.getElementById('panel').open")
    visit.page.focus("#q")
    visit.page.keyboard.type("intc")
    visit.until("document.querySelectorAll('#found a').length === 1")
    visit.page.keyboard.press("Tab")
    visit.page.keyboard.press("Enter")
    visit.until("document.getElementById('panel-body').textContent.includes('may want it')")
    assert visit.text("panel-title") == "flow INTC"
    visit.page.keyboard.press("Escape")
    visit.close()


@pytest.mark.long
def test_a_plan_is_proposed_reviewed_and_installed_by_clicking(browser: Any, market: Running) -> None:
    visit = Visit(browser, market.url)
    settled(visit)
    before = market.registry()[0]
    visit.page.fill("#more", "3")
    visit.page.click("#ask-more button")
    visit.until("document.getElementById('whatif-says').textContent.startsWith('With 3 more groups (2 → 5)')", 120)
    assert visit.page.is_visible("#whatif-drawing svg.wide-only")
    visit.page.fill("#budget", "4")
    visit.page.click("#propose button")
    visit.until("document.getElementById('install') !== null", 120)
    assert "would go another way" in visit.text("proposal-says")
    visit.page.click("#install")
    visit.page.click("#confirm button[value=no]")
    time.sleep(0.5)
    assert market.registry()[0]["current"] == before["current"], "nothing happens without a yes"
    visit.page.click("#install")
    visit.page.click("#confirm-yes")
    visit.until("document.getElementById('proposal-says').textContent.startsWith('In force')", 60)
    after = market.registry()[0]
    assert after["current"] > before["current"]
    assert after["offer"]["folder"].startswith(str(market.folder.resolve()))
    visit.until(f"document.getElementById('t-epoch').textContent === '{after['current']}'", 5)
    visit.until("document.querySelectorAll('svg.wide-only .box.group').length >= 4", 5)
    assert f"epoch {after['current']} in force: plan" in visit.text("events")
    visit.page.click("#read-report")
    visit.until("document.querySelectorAll('#report-body section').length >= 4", 60)
    assert "Now, beside the plan" in visit.text("report-body")
    visit.page.fill("#find-name", "desk-3")
    assert "subscriber desk-3" in visit.text("find-results")
    looked_at(visit, "channels")
    assert visit.faults() == []
    visit.close()


def test_a_killed_source_is_seen_within_two_seconds_and_seen_to_recover(browser: Any, market: Running) -> None:
    visit = Visit(browser, market.url)
    settled(visit)
    before = visit.text("events").count("was started again")
    state: Any = state_of(market.folder)
    os.kill(state["processes"]["source-0"], signal.SIGSTOP)  # it stays away until we say so
    try:
        seen = visit.until("document.getElementById('health').dataset.level === 'bad'", 10)
        assert seen < 2.0, f"seen after {seen:.2f} s"
        assert "source-0 says nothing" in visit.text("says")
        visit.until("document.querySelector('.absent[data-box=\"source:source-0\"]') !== null", 2)
    finally:
        os.kill(state["processes"]["source-0"], signal.SIGKILL)
    visit.until(f"document.getElementById('events').textContent.split('was started again').length > {before + 1}", 30)
    visit.until("document.getElementById('health').dataset.level === 'ok'", 30)
    visit.until("parseFloat(document.getElementById('t-messages_s').textContent) > 0", 30)
    visit.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_fits_and_is_reachable_on_every_screen(theme: str, browser: Any, market: Running) -> None:
    visit = Visit(browser, market.url, theme=theme)
    settled(visit)
    for width, height in SIZES.items():
        visit.page.set_viewport_size({"width": width, "height": height})
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width, "something is too wide"
        assert visit.faults() == [], f"at {width}"
    visit.close()


def test_without_the_token_nothing_is_shown(browser: Any, market: Running) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(market.url.split("#")[0])
    assert page.is_visible("#enter")
    assert not page.is_visible("#live")
    page.fill("#token", "wrong")
    page.click("#enter button")
    page.wait_for_timeout(500)
    assert not page.is_visible("#live")
    page.fill("#token", market.url.split("token=")[1])
    page.click("#enter button")
    page.wait_for_selector("#map-drawing svg", state="attached")
    assert "token" not in page.url
    context.close()
