"""The console without a browser: who may ask what, what rubbish does, and what a refresh costs."""

from __future__ import annotations

import asyncio
import http.client
import json
import re
import stat
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

import narrowcast as nc
from console.systems import KINDS, Running, message, running_console
from narrowcast.console.guard import token_in
from narrowcast.console.server import answering
from narrowcast.console.sketch import labels, planned_at_gateways, sketched
from narrowcast.console.state import Page
from narrowcast.console.watch import FORGET, GONE, LATE, SystemWatch
from narrowcast.console.work import Lately, asked_more, explanation_markup, proposed
from narrowcast.deliver.parts import records
from narrowcast.deliver.routing.routing import Routing
from narrowcast.deliver.transport import Multicast, Overlay, Unicast
from narrowcast.deliver.wire import encode_payload
from narrowcast.errors import UnsupportedError
from narrowcast.plans.verbs import report_page
from narrowcast.reports.system_map import system_map
from reports.pages import PLANS

EDGES, GROUPS = 500, 100


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def told(name: str, role: str = "edge", started: float = 1.0, **more: Any) -> bytes:
    base = {"name": name, "role": role, "started": started, "counts": {}, "carried": {}, "epoch": 1}
    return json.dumps(base | more).encode()


def watched() -> tuple[SystemWatch, Clock]:
    clock = Clock()
    return SystemWatch(clock), clock


# What is watched.


def test_who_falls_silent_is_late_then_gone_then_forgotten_and_may_come_back() -> None:
    watch, clock = watched()
    watch.take(told("source-0", "source"))

    def after(seconds: float) -> None:
        for _ in range(int(seconds / 0.25)):
            clock.now += 0.25
            watch.look()

    after(LATE + 0.25)
    assert watch.processes["source-0"]["state"] == "late"
    after(GONE)
    assert watch.processes["source-0"]["state"] == "gone"
    watch.take(told("source-0", "source", started=2.0))
    assert watch.processes["source-0"]["state"] == "up"
    assert [event["text"] for event in watch.events] == [
        "source-0 is here", "source-0 says nothing", "source-0 is gone", "source-0 was started again",
    ]  # fmt: skip
    after(FORGET + 1)
    assert watch.processes == {}


def test_a_console_that_was_held_up_does_not_call_others_silent() -> None:
    watch, clock = watched()
    watch.take(told("source-0", "source"))
    clock.now += 30
    watch.look()
    assert watch.processes["source-0"]["state"] == "up"


SOUND = {"name": "a", "role": "source", "counts": {}, "carried": {}, "epoch": 1}
WRONG: list[dict[str, Any]] = [
    {"counts": {"group x messages": "many"}}, {"counts": {"messages sent": float("nan")}}, {"epoch": "one"},
    {"groups": ["a"]}, {"subscriptions": {"s": {}}}, {"predicted": {"groups": {"a": 1.0}}}, {"predicted": 7},
    {"predicted": {"edges": {"e": 1}}}, {"predicted": {"gateways": {"g": 1}}}, {"adapting": 3}, {"at": "noon"},
]  # fmt: skip
RUBBISH = [b"", b"{", b"[]", b'{"name": 1}', b"\xff", b'{"name":"a","role":"b"}', b"[" * 9999]
RUBBISH += [json.dumps(SOUND | wrong).encode() for wrong in WRONG]


@pytest.mark.parametrize("rubbish", RUBBISH)
def test_rubbish_from_the_network_is_left_out(rubbish: bytes) -> None:
    watch, clock = watched()
    watch.take(rubbish)
    assert watch.processes == {}
    json.dumps(Page(watch, 1, clock).state(), allow_nan=False)


@pytest.mark.parametrize(
    ("key", "data"), [("epoch", b"{}"), ("sub.zz", b"{}"), ("plan.x", b""), ("plan.1", b"rubbish")]
)
def test_rubbish_in_the_registry_is_a_value_error_and_changes_nothing(key: str, data: bytes) -> None:
    watch, _ = watched()

    async def run() -> None:
        watch.epoch = watch.epoch | {"current": 1}
        with pytest.raises(ValueError):
            await watch.heard(key, data)

    asyncio.run(run())
    assert watch.subscriptions == {}
    assert watch.routing.addresses == {}


def test_what_was_held_up_on_its_way_does_not_count_as_a_burst() -> None:
    watch, clock = watched()
    for n in range(4):
        watch.take(told("source-0", "source", at=50.0 + n, counts={"messages sent": 100 * n}))
        clock.now += 0.001
    assert Page(watch, 1, clock).state()["totals"]["messages_s"] == pytest.approx(100, rel=0.01)


def test_what_a_plan_says_of_gateways_stands_beside_what_is_measured() -> None:
    from narrowcast.deliver.processes.prediction import predicted
    from narrowcast.deliver.routing.routing import nothing

    for given in (KINDS["filters"](), KINDS["semantic"]()):
        found = predicted(given.plan, nothing())["gateways"]
        assert {gateway for _, _, gateway in given.wishes} <= found.keys()
        for shares in found.values():
            assert sum(shares.values()) == pytest.approx(1.0)
    # By hand: 14 of 100 messages are IBM's, wanted behind left; 20 are cheap, wanted behind right.
    rows = [message(n) for n in range(100)]
    ibm, cheap = sum(row["symbol"] == "IBM" for row in rows), sum(row["price"] < 20 for row in rows)
    assert found["left"]["useful"] == pytest.approx(ibm / 100)
    assert found["right"]["useful"] == pytest.approx(cheap / 100)
    # An edge alone behind a gateway gets its gateway's; of two behind one, nobody knows whose is what.
    edges = [{"name": name, "predicted": {}} for name in ("one", "two", "three")]
    records_ = {"a": {"edge": "one", "gateway": "left"}, "b": {"edge": "two", "gateway": "right"},
                "c": {"edge": "three", "gateway": "right"}}  # fmt: skip
    planned_at_gateways({"edges": edges, "gateways": found}, records_)
    assert [bool(edge["predicted"]) for edge in edges] == [True, False, False]


@pytest.mark.parametrize("kind", PLANS)
def test_the_plan_page_of_every_kind_is_its_report(kind: str, tmp_path: Path) -> None:
    """Network plans too, which the page must know as soon as they run."""
    from narrowcast.console.answers import live_section
    from narrowcast.console.work import reported

    plan = PLANS[kind]()
    plan.save(tmp_path / "plan")
    found = reported(str(tmp_path / "plan"), plan.key or ("symbol",), live_section(watched()[0]))
    page = report_page(nc.load(tmp_path / "plan"))
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    assert re.findall(r"<h3 id[^>]*>(.*?)</h3>", found["sections"]) == ["Now, beside the plan", *titles]
    assert found["data"] == json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))


def test_a_plan_without_a_budget_is_made_anew_and_what_if_says_what_can_be_asked(tmp_path: Path) -> None:
    given = KINDS["queries"]()
    given.plan.save(tmp_path / "plan")
    wishes = {who: text for who, text, _ in given.wishes}
    lately = Lately([encode_payload(message(n)) for n in range(200)], 10.0, wishes, {}, ())
    found = proposed(str(tmp_path / "plan"), None, lately, str(tmp_path / "new"))
    assert found["how"].startswith("Made anew from the last 200 messages")
    assert nc.load(tmp_path / "new").check().sound
    with pytest.raises(UnsupportedError, match="no budget to raise; narrowcast whatif can change its km, kt, ku, ka"):
        asked_more(str(tmp_path / "plan"), 2, lately)
    with pytest.raises(UnsupportedError, match="another number of groups does not support queries plans"):
        proposed(str(tmp_path / "plan"), 3, lately, str(tmp_path / "other"))


def test_of_a_subscriber_that_the_plan_does_not_name_its_broker_is_explained(tmp_path: Path) -> None:
    KINDS["filters"]().plan.save(tmp_path / "plan")
    told = explanation_markup(str(tmp_path / "plan"), "subscriber", "ibm", (), "w-1")
    assert "Of w-1, the broker it is behind" in told
    assert "<dl" in told
    assert explanation_markup(str(tmp_path / "plan"), "node", "<b>", ()).startswith("<p>The plan has no")
    KINDS["queries"]().plan.save(tmp_path / "queries")
    assert "<dl" in explanation_markup(str(tmp_path / "queries"), "subscriber", "high", ())


def test_a_fault_is_an_answer_that_the_page_can_read(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(request: Request) -> Response:
        raise IndexError("tuple index out of range")

    scope = {"type": "http", "method": "GET", "path": "/api/x", "headers": [], "query_string": b"", "server": ("a", 1)}
    answer = asyncio.run(answering(broken)(Request(scope)))
    assert answer.status_code == 500
    assert "fault" in json.loads(bytes(answer.body))["error"]
    assert "tuple index" in caplog.text


# The map.


def test_the_map_has_a_line_for_every_way_that_a_subscriber_is_served() -> None:
    routing = Routing(
        {1: Multicast(3, 0), 2: Multicast(4, 0), 3: Unicast("c"), 4: Overlay("hub", (("hub", "left"),))},
        {"a": (1, 2), "b": (3,), "d": (4,)},
    )
    subscriptions = {
        "a": {"edge": "x"}, "b": {"edge": "y"}, "new": {"edge": "z"}, "d": {"edge": "w", "gateway": "left"},
    }  # fmt: skip
    columns, legs = sketched(routing, subscriptions, ["source-0"], ["x", "y", "z", "w"], {}, ())
    lines = {(leg.start, leg.end) for leg in legs}
    assert {("group:3", "edge:x"), ("group:4", "edge:x"), ("unicast", "edge:y"), ("log", "edge:z")} <= lines
    assert {("broker:hub", "broker:left"), ("broker:left", "edge:w"), ("source:source-0", "broker:hub")} <= lines
    assert ("log", "edge:x") not in lines
    boxes = {station.key for _, stations in columns for station in stations}
    assert all(leg.start in boxes and leg.end in boxes for leg in legs)
    drawn = system_map(columns, legs, "<&>")
    assert "<&>" not in drawn
    assert drawn.count("<path") == 2 * len(legs), "each line on both drawings"


def test_brokers_stand_in_the_order_of_the_largest_tree_whatever_other_trees_begin_with() -> None:
    """Gateways that are the root of a small tree of their own are still at the end of the way."""
    routing = Routing(
        {1: Overlay("hub", (("hub", "mid"), ("mid", "left"), ("mid", "right"))), 2: Overlay("left", ()),
         3: Overlay("right", (("right", "mid"),)), 4: Overlay("alone", ())},
        {},
    )  # fmt: skip
    columns, legs = sketched(routing, {}, ["source-0"], [], {}, ())
    brokers = [[station.label for station in stations] for _, stations in columns[1:-1]]
    assert brokers == [["alone", "hub"], ["mid"], ["left", "right"]]
    ends = [
        (float(d.split()[0][1:]), float(d.split()[-2]))
        for d in re.findall(r' d="([^"]*)"', system_map(columns, legs, ""))
    ]
    assert ends
    assert all(start < end for start, end in ends), "a line runs back through its box"
    narrow = re.search(r'<svg class="narrow"[^>]*viewBox="0 0 (\d+)', system_map(columns, legs, ""))
    assert narrow is not None
    assert int(narrow[1]) >= 100 * len(columns), "no room for names"


def test_who_wants_nothing_any_more_and_gets_nothing_is_not_shown() -> None:
    watch, clock = watched()
    watch.take(told("here", subscriptions={"s": {"profile": "a = 1", "lag": 0}}, at=1.0))
    watch.take(told("left", subscriptions={}, at=1.0))
    assert [edge["name"] for edge in Page(watch, 1, clock).state()["edges"]] == ["here"]


def test_an_edge_is_called_by_its_only_subscription() -> None:
    assert labels({"desk": {"edge": "x"}, "one": {"edge": "y"}, "two": {"edge": "y"}}) == {"x": "desk", "y": "y"}


# What a refresh costs.


def crowd(n: int) -> Iterator[bytes]:
    """What 500 edges, a source and a coordinator say in second n."""
    groups = {f"group {g} messages": 100 * n for g in range(GROUPS)}
    yield told("source-0", "source", at=float(n), counts={"messages sent": 10_000 * n} | groups)
    predicted = {"groups": {str(g): 0.01 for g in range(GROUPS)}, "edges": {}}
    yield told("coordinator", "coordinator", at=float(n), predicted=predicted)
    for k in range(EDGES):
        counts = {"messages arrived": 100 * n, "delivered": (60 + k % 40) * n, "filtered by flow": k % 40 * n}
        one = {f"sub-{k}": {"profile": "symbol = 'IBM'", "lag": k % 3}}
        yield told(
            f"edge-{k}",
            at=float(n),
            counts=counts,
            carried={"frames": n, "bytes": n},
            groups=[k % GROUPS],
            subscriptions=one,
        )


def test_five_hundred_subscribers_cost_the_server_less_than_a_twentieth_of_a_core() -> None:
    """Counted in CPU time of this process, so that others on the machine do not matter: a refresh a second."""
    watch, clock = watched()
    watch.routing = Routing(
        {g: Multicast(g, 0) for g in range(GROUPS)}, {f"sub-{k}": (k % GROUPS,) for k in range(EDGES)}
    )
    watch.subscriptions = {f"sub-{k}": {"edge": f"edge-{k}", "profile": "symbol = 'IBM'"} for k in range(EDGES)}
    page = Page(watch, 1, clock)
    spent = []
    for n in range(1, 25):
        said = list(crowd(n))
        begin = time.process_time()
        for data in said:
            watch.take(data)
        clock.now += 1
        for _ in range(4):
            watch.look()
        text = json.dumps(page.state())
        spent.append(time.process_time() - begin)
    assert json.loads(text)["totals"]["subscribers"] == EDGES
    assert len(text) < 60_000, "a refresh is small"
    assert sorted(spent)[len(spent) // 2] < 0.05, f"{sorted(spent)}"


# Who may ask what.


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running_console(tmp_path_factory.mktemp("quiet") / "data", KINDS["semantic"](), 124) as it:
        yield it


def asked(
    it: Running, path: str, method: str = "GET", body: str | None = None, **headers: str | None
) -> tuple[int, Any, Any]:
    """Status, body and headers of an answer; headers that are None are left out, `host` and `authorization` too."""
    port = int(it.url.split(":")[2].split("/")[0])
    given = {"host": f"127.0.0.1:{port}", "authorization": f"Bearer {it.url.split('token=')[1]}"} | headers
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in given.items():
            if value is not None:
                connection.putheader(name.replace("_", "-"), value.replace("PORT", str(port)))
        if body is not None:
            connection.putheader("content-length", str(len(body)))
        connection.endheaders(None if body is None else body.encode())
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if "json" in answer.headers["content-type"] else text, answer.headers
    finally:
        connection.close()


OWN = {"origin": "http://127.0.0.1:PORT", "content_type": "application/json"}


@pytest.mark.engines
@pytest.mark.xdist_group("browser")
@pytest.mark.parametrize(
    ("path", "method", "body", "headers", "status"),
    [
        ("/", "GET", None, {"authorization": None}, 200),
        ("/api/about", "GET", None, {}, 200),
        ("/api/about", "GET", None, {"host": "localhost:PORT"}, 200),
        ("/api/about", "GET", None, {"host": "evil.example"}, 421),
        ("/api/about", "GET", None, {"host": "127.0.0.1"}, 421),
        ("/", "GET", None, {"host": "evil.example:PORT"}, 421),
        ("/api/about", "GET", None, {"authorization": None}, 401),
        ("/api/live", "GET", None, {"authorization": "Bearer "}, 401),
        ("/api/map", "GET", None, {"authorization": "Bearer é"}, 401),
        ("/api/install", "POST", '{"id": 1}', OWN, 403),
        ("/api/install", "POST", '{"id": 1}', OWN | {"authorization": None}, 401),
        ("/api/install", "POST", '{"id": 1}', OWN | {"origin": "http://evil.example"}, 403),
        ("/api/install", "POST", '{"id": 1}', {"content_type": "application/json"}, 403),
        ("/api/install", "POST", '{"id": 1}', OWN | {"content_type": "text/plain"}, 415),
        ("/api/install", "GET", None, {}, 405),
        ("/api/about", "DELETE", None, {}, 405),
        ("/api/whatif?more=0", "GET", None, {}, 422),
        ("/api/whatif?more=1e9", "GET", None, {}, 422),
        ("/api/whatif?more=" + "9" * 5000, "GET", None, {}, 422),
        ("/static/../guard.py", "GET", None, {}, 404),
        ("/static/%2e%2e/guard.py", "GET", None, {}, 404),
        ("/api/nothing", "GET", None, {}, 404),
    ],
)  # fmt: skip
def test_only_who_knows_the_token_and_asks_the_right_host_gets_an_answer(
    quiet: Running, path: str, method: str, body: str | None, headers: dict[str, str | None], status: int
) -> None:
    found, answer, given = asked(quiet, path, method, body, **headers)
    assert found == status, answer
    policy = given["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert given["x-content-type-options"] == "nosniff"


@pytest.mark.engines
@pytest.mark.xdist_group("browser")
def test_names_that_look_like_markup_come_back_as_text(quiet: Running) -> None:
    hostile = "%3Cscript%3Ealert(1)%3C/script%3E"
    _, answer, _ = asked(quiet, f"/api/explain?what=subscriber&name={hostile}")
    assert "<script" not in answer["live"] + answer["plan"]
    assert "&lt;script&gt;" in answer["live"]
    assert asked(quiet, f"/api/explain?what={hostile}&name=x")[0] == 200
    assert asked(quiet, f"/api/find?q={hostile}")[1] == {"found": []}


@pytest.mark.engines
@pytest.mark.xdist_group("browser")
def test_rubbish_in_the_registry_does_not_end_the_console(quiet: Running) -> None:
    from narrowcast.deliver.processes.backbone import backbone, url_of

    async def write() -> None:
        base = await backbone(url_of(quiet.folder), name="vandal")
        await base.registry.put(records.named(records.SUBSCRIPTION, "bad"), b"rubbish")
        await base.registry.delete(records.named(records.SUBSCRIPTION, "bad"))
        await base.publish_statistics("bad", b"rubbish")
        await base.close()

    asyncio.run_coroutine_threadsafe(write(), quiet.loop).result(20)
    assert asked(quiet, "/api/about")[1]["kind"] == "semantic"


def test_the_token_is_made_once_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "data" / "console.token"
    token = token_in(path)
    assert len(token) >= 32
    assert token_in(path) == token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_page_has_no_inline_script_or_style_and_names_no_other_host() -> None:
    static = files("narrowcast.console").joinpath("static")
    html, script, style = (
        static.joinpath(f"console.{kind}").read_text(encoding="utf-8") for kind in ("html", "js", "css")
    )
    assert re.findall(r"<style|style=|\son\w+=|javascript:", html) == []
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", html))
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", html + script + style) == []
    used = set(re.findall(r'\$\("([\w-]+)"\)', script))
    assert used - set(re.findall(r'id="([\w-]+)"', html)) == set(), "the script asks for what the page has not"
