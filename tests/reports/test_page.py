"""The page as text: whole, small, safe whatever the names, and honest about what is wrong."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import narrowcast as nc
from narrowcast import cli
from narrowcast.model.folder import write_tables
from narrowcast.plans.kinds import KINDS
from narrowcast.plans.queries.result import QueryDemand
from narrowcast.plans.verbs import quick_whatif, report_page
from narrowcast.reports.whatif import parse_whatif
from reports.pages import HOSTILE, PLANS, channels, filters, semantic

WHATIF = {
    "x": "groups",
    "points": [
        {"groups": g, "sessions": s, "cost": 90 / g + s, "relative": 0.9 / g} for g in (2, 4, 8) for s in (7, 14)
    ],
    "present": 4,
    "knee": 4,
}


class Markup(HTMLParser):
    """Every element with its attributes, and the text outside script and style."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.inside = tag

    def handle_data(self, data: str) -> None:
        if self.inside not in ("script", "style"):
            self.text += data

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""


def test_every_kind_of_plan_has_a_report() -> None:
    assert {PLANS[name]().kind for name in PLANS} == set(KINDS)


@pytest.mark.parametrize("kind", PLANS)
def test_names_are_text_and_nothing_else(kind: str) -> None:
    plan = PLANS[kind]()
    page = report_page(plan, quick_whatif(plan))
    found = Markup(page)
    assert [tag for tag, _ in found.elements].count("script") == 2
    assert {tag for tag, _ in found.elements}.isdisjoint({"iframe", "object", "embed", "form", "b", "base"})
    for tag, attributes in found.elements:
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        for name in ("src", "href"):
            assert re.match(r"(data:|#)", attributes.get(name) or "#"), (tag, attributes)
    assert "url(" not in page
    assert "@import" not in page
    said = found.text + " ".join(v or "" for _, attributes in found.elements for v in attributes.values())
    assert any(name in said for name in HOSTILE[:3]), "the names must be there for this to mean anything"
    assert "\u202e" not in page, "a name must not turn the text after it round"


@pytest.mark.parametrize("kind", PLANS)
def test_ids_are_unique_and_links_lead_somewhere(kind: str) -> None:
    plan = PLANS[kind]()
    found = Markup(report_page(plan, quick_whatif(plan)))
    ids = [attributes["id"] for _, attributes in found.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in found.elements:
        if (attributes.get("href") or "").startswith("#"):
            assert attributes["href"][1:] in ids
        for name in ("for", "aria-labelledby"):
            assert name not in attributes or attributes[name] in ids


def test_the_same_plan_gives_the_same_page() -> None:
    assert report_page(channels(), None) == report_page(channels(), None)


def test_the_headline_says_waste_bound_and_relief() -> None:
    wants = nc.Interest.from_pairs([0, 0, 1, 2], [0, 1, 1, 2], [3.0, 2.0, 1.0])
    page = report_page(nc.channels.plan(wants, groups=3, sessions=3, method="gf"))
    headline = re.search(r"<h1>(.*?)</h1>", page).group(1)
    assert (
        headline.replace("\u202f", " ")
        == "0 % of flooding’s waste, the least possible, 3 of 3 subscribers now filter nothing"
    )


def test_an_unsound_plan_is_called_unsound() -> None:
    plan = channels()
    tables = plan.to_tables()
    fewer = {**tables.tables, "subscriber_group": tables.tables["subscriber_group"].slice(1)}
    page = report_page(replace(plan, written=replace(tables, tables=fewer)))
    assert "Unsound: do not install this plan" in page
    assert "does not get it" in page


def test_what_was_not_set_is_none_and_terms_are_words() -> None:
    text = Markup(report_page(semantic())).text
    assert "None" not in text
    assert "latency boundnone" in text
    assert "excess: c1 + c2 beyond what is wanted" in Markup(report_page(channels())).text


def test_every_baseline_has_its_bar() -> None:
    plan = channels()
    page = report_page(plan)
    shown = re.findall(r'<span class="name">(.*?)</span>', page)
    assert sorted(shown) == sorted([*plan.baselines, "this plan"])


def test_the_worst_served_come_first() -> None:
    from narrowcast.plans.channels.report.served import served

    plan = channels()
    read = served(plan)
    page = report_page(plan)
    worst = page[page.index('id="worst"') :]
    share = re.findall(r'<td class="num" data-label="gets">(.*?)</td>', worst)
    order = np.argsort(-read.excess, kind="stable")[:10]
    assert len(share) == int((read.excess[order] > 0).sum())


def test_amounts_are_those_of_the_definition() -> None:
    """Every copy counted by hand: who is sent what, and who gets what."""
    from narrowcast.plans.channels.report import amounts
    from narrowcast.reports.amounts import bits_s, cores

    for plan in (channels(), PLANS["hybrid"]()):
        n, group, alone = plan.interest, plan.group_of_flow, plan.by_unicast
        sent = arrives = 0.0
        for k, rate in enumerate(n.rates.tolist()):
            pairs = range(n.offsets[k], n.offsets[k + 1])
            apart = sum(bool(alone[p]) for p in pairs)
            by_group = apart < len(pairs)
            sent += rate * (apart + by_group)
            arrives += rate * (apart + (int((plan.joins[1] == group[k]).sum()) if group[k] >= 0 else 0))
        found = {each.what: each.rates for each in amounts(plan)}
        assert found["sent by the sources"]["this plan"] == pytest.approx(sent)
        assert found["arrives at all subscribers"]["this plan"] == pytest.approx(arrives)
        page = report_page(plan, message_bytes=200, filter_us=10)
        assert f">{bits_s(200 * arrives)}</td>" in page
        assert f">{cores(1e-5 * arrives)}</td>" in page
    with pytest.raises(nc.errors.UnsupportedError, match="hold no rates"):
        report_page(filters(), message_bytes=200)


@pytest.mark.parametrize("kind", PLANS)
def test_everything_with_a_name_can_be_found(kind: str) -> None:
    plan = PLANS[kind]()
    data = json.loads(re.search(r'id="data">(.*?)</script>', report_page(plan), re.S).group(1))["find"]
    sizes = {each["what"]: len(each["rows"]) for each in data}
    if kind in ("channels", "hybrid", "network"):
        wants = plan.interest if kind != "network" else plan.demand.interest
        assert sizes["subscriber"] == wants.n_users
        assert sizes["flow"] == wants.n_flows
    elif kind == "queries":
        assert sizes == {"query": len(plan.demand.boxes)}
    elif kind == "filters":
        assert sizes == {"node": plan.tree.n}
    else:
        assert sizes == {"gateway": 6, "channel": plan.n_channels}
    assert all(len(row) == 1 + len(each["told"]) for each in data for row in each["rows"])


def test_pages_of_large_plans_stay_small() -> None:
    """The pictures are the largest part, and noise is what packs worst."""
    rng = np.random.default_rng(0)
    flow, user = np.nonzero(rng.random((1500, 400)) < 0.2)
    wants = nc.Interest.from_pairs(flow, user, rng.random(1500))
    plan = nc.channels.plan(wants, groups=60, sessions=60, method="random")
    assert len(report_page(plan).encode()) < 3_000_000


def test_plans_at_the_edges_have_reports_too() -> None:
    one = nc.Interest.from_pairs([0], [0], [0.0])
    assert "flooding" in report_page(nc.channels.plan(one, groups=1, sessions=1, method="gf"))
    equal = nc.Interest.from_pairs([0, 1], [0, 0], [1.0, 1.0])
    assert "Nobody gets anything" in report_page(nc.channels.plan(equal, groups=1, sessions=1, method="gf"))


def covered(boxes: np.ndarray) -> np.ndarray:
    """Sizes that ranges without an end have too: as if all data lay between 0 and 1."""
    return np.prod(np.ptp(np.clip(boxes, 0, 1), axis=2), axis=1)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_maps_hold_ranges_without_an_end(dimensions: int) -> None:
    boxes = np.sort(np.random.default_rng(0).random((12, dimensions, 2)), axis=2)
    boxes[3, 0, 1], boxes[4, -1, 0] = np.inf, -np.inf
    wanted = QueryDemand(boxes, ("a", "b", "c")[:dimensions])
    page = report_page(nc.plan(wanted, "queries", method="directed", km=1, kt=1, ku=0.1, size=covered))
    drawn = page[page.index('data-plot="map"') : page.index("</svg>", page.index('data-plot="map"'))]
    assert drawn.count('class="query"') == 12
    assert "nan" not in drawn
    assert "inf" not in drawn


def test_gateways_get_what_the_window_says() -> None:
    """Each message of the window, followed by hand to every gateway of its channels."""
    from narrowcast.plans.semantic.report import _read

    plan = semantic()
    read = _read(plan)
    members, where = {}, {}
    for row in plan.to_tables().tables["channel_members"].to_pylist():
        members.setdefault(row["channel"], []).append(row["gateway"])
    for row in plan.to_tables().tables["clients"].to_pylist():
        where.setdefault(row["gateway"], set()).add(row["profile"])
    for gateway, (arrive, wanted) in read.gets.items():
        rows = plan.to_tables().tables["window"].to_pylist()
        assert arrive == sum(row["weight"] for row in rows for c in row["channels"] if gateway in members[c])
        assert wanted == sum(row["weight"] for row in rows if where.get(gateway, set()) & set(row["profiles"]))
        assert arrive >= wanted, "nobody is left out"
    brought = sum(read.brings.values())
    assert brought == sum(arrive - wanted for arrive, wanted in read.gets.values())  # no message goes twice here


def test_a_surface_gets_a_choice_of_series() -> None:
    page = report_page(channels(), parse_whatif(WHATIF))
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))
    assert [len(line) for line in data["whatif"]] == [3, 3]
    assert '<label for="whatif-series">' in page
    assert "With 2 groups and 7 sessions: 45.0\u202f% of flooding’s waste" in data["whatif"][0][0]["says"]


def test_the_sweep_of_filters_is_the_optimal_curve() -> None:
    swept = quick_whatif(filters())
    costs = [point["cost"] for point in swept.series[0][1]]
    assert costs == sorted(costs, reverse=True)
    assert swept.present == 6
    here = next(point for point in swept.series[0][1] if point["filters"] == 6)
    assert here["cost"] == pytest.approx(filters().traffic)


def test_the_command_writes_one_file(tmp_path: Path, capsys) -> None:
    folder = write_tables(channels().to_tables(), tmp_path / "plan")
    (tmp_path / "whatif.json").write_text(json.dumps(WHATIF))
    out = tmp_path / "report.html"
    assert cli.run(["report", str(folder), "--out", str(out), "--whatif", str(tmp_path / "whatif.json"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["bytes"] == out.stat().st_size < 5_000_000
    assert told["whatif"] is True
    assert cli.run(["report", str(folder), "--out", str(out), "--no-sweep"]) == 0
    assert 'id="what-if"' not in out.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["plan", "report.html", "whatif.json"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"x": "groups", "points": []}', '{"x": "groups", "points": [{"cost": 1}]}']
)
def test_a_strange_whatif_file_is_one_line(text: str, tmp_path: Path, capsys) -> None:
    folder = write_tables(channels().to_tables(), tmp_path / "plan")
    (tmp_path / "whatif.json").write_text(text)
    asked = ["report", str(folder), "--out", str(tmp_path / "r.html"), "--whatif", str(tmp_path / "whatif.json")]
    assert cli.run(asked) == 2
    told = capsys.readouterr().err
    assert "whatif.json: not what `narrowcast whatif` writes" in told
    assert told.count("\n") == 1
    assert not (tmp_path / "r.html").exists()


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path, capsys) -> None:
    folder = write_tables(channels().to_tables(), tmp_path / "plan")
    assert cli.run(["report", str(folder), "--no-sweep", "--out", str(tmp_path / "no" / "r.html")]) == 2
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("kind", PLANS)
def test_a_page_has_no_inline_style_and_its_policy_allows_none(kind: str) -> None:
    """So that the console, whose policy is as strict, can show the same markup."""
    text = report_page(PLANS[kind](), None)
    assert re.findall(r"<[^>]*\sstyle=", text) == []
    assert "unsafe" not in re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)[0]
