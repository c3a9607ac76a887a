"""OpenMetrics: names that are documented, numbers that are those of the snapshot, on every role that asks for it."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import narrowcast as nc
from console.systems import channels
from narrowcast.deliver.processes.logs import EventLog, JsonLines, set_up_logs
from narrowcast.deliver.processes.metrics import CARRIED, COUNTERS, EVENTS, GAUGES, GROUP, serve_metrics
from narrowcast.deliver.processes.supervise import start_detached, stop_running
from narrowcast.deliver.transport.nats.server import free_port
from narrowcast.errors import InputError, TransportError

DOCS = Path(__file__).parents[2] / "docs"
TOLD: dict[str, Any] = {
    "name": "edge\n\"1\"", "role": "edge", "epoch": 3, "started": 1000.5, "groups": [1, 2],
    "counts": {"delivered": 7, "group 2 messages": 5, "malformed length": 1}, "carried": {"bytes": 900, "waits": 2},
    "subscriptions": {"desk": {"profile": "a = 1", "lag": 4}},
}  # fmt: skip


def scraped(port: int) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample, as a collector of OpenMetrics reads it."""
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    end = time.monotonic() + 20
    while True:  # a process may begin to answer a moment after the system is ready
        try:
            with urlopen(Request(f"http://127.0.0.1:{port}/metrics", headers=accept), timeout=10) as answer:
                text = answer.read().decode()
            break
        except URLError:
            assert time.monotonic() < end, "no answer"
            time.sleep(0.1)
    families = text_string_to_metric_families(text)
    return {(s.name, tuple(sorted(s.labels.items()))): s.value for family in families for s in family.samples}


def sample(found: dict[Any, float], name: str, **labels: str) -> float:
    return next(v for (n, given), v in found.items() if n == name and labels.items() <= dict(given).items())


def test_a_scrape_has_the_numbers_of_the_snapshot() -> None:
    async def run() -> Any:
        port, end = serve_metrics(0, "127.0.0.1", lambda: [TOLD])
        try:
            return await asyncio.to_thread(scraped, port)
        finally:
            await asyncio.to_thread(end)

    found = asyncio.run(run())
    assert sample(found, "narrowcast_messages_delivered_total", node=TOLD["name"], role="edge") == 7
    assert sample(found, "narrowcast_group_messages_sent_total", group="2") == 5
    assert sample(found, "narrowcast_events_total", event="malformed length") == 1
    assert sample(found, "narrowcast_events_total", event="carrier waits") == 2
    assert sample(found, "narrowcast_lag_entries", subscription="desk") == 4
    assert sample(found, "narrowcast_epoch") == 3
    assert sample(found, "process_cpu_seconds_total") > 0


def test_a_port_that_is_taken_is_one_line() -> None:
    async def run() -> None:
        port, end = serve_metrics(0, "127.0.0.1", list)
        try:
            with pytest.raises(TransportError, match="metrics cannot be served"):
                serve_metrics(port, "127.0.0.1", list)
        finally:
            await asyncio.to_thread(end)

    asyncio.run(run())


def test_the_page_of_metrics_lists_every_name_and_no_other() -> None:
    counters = [name for name, _ in (*COUNTERS.values(), *CARRIED.values(), GROUP, EVENTS)]
    expected = {f"narrowcast_{name}_total" for name in counters} | {f"narrowcast_{name}" for name in GAUGES}
    text = (DOCS / "metrics.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(narrowcast_\w+)`", text, re.MULTILINE)) == expected
    for name, meaning in (*COUNTERS.values(), *CARRIED.values(), GROUP, EVENTS):
        assert f"| `narrowcast_{name}_total` | {meaning} |" in text
    dashboard = json.loads((DOCS / "grafana-dashboard.json").read_text(encoding="utf-8"))
    asked = {name for panel in dashboard["panels"] for target in panel.get("targets", ())
             for name in re.findall(r"narrowcast_\w+", target["expr"])}  # fmt: skip
    assert asked
    assert asked <= expected, asked - expected


@pytest.mark.engines
def test_every_process_of_a_system_answers_a_scrape(tmp_path: Path) -> None:
    port = free_port()
    channels().plan.save(tmp_path / "plan")
    arguments = [str(tmp_path / "plan"), "--system", str(tmp_path / "data"), "--no-multicast", "--metrics", str(port)]
    start_detached(arguments, tmp_path / "data")
    try:
        with nc.connect(tmp_path / "data") as client:
            client.publish([{"symbol": "IBM", "n": n} for n in range(10)])
        end = time.monotonic() + 30
        while not sample(scraped(port), "narrowcast_leads", role="coordinator"):
            assert time.monotonic() < end, "no coordinator took the lease"
        source = scraped(port + 1)
        assert sample(source, "narrowcast_start_time_seconds", role="source", node="source-0") > 0
        assert "source-0" in (tmp_path / "data" / "source-0.log").read_text()
    finally:
        stop_running(tmp_path / "data")


def test_a_line_for_each_event_that_matters(caplog: pytest.LogCaptureFixture) -> None:
    events = EventLog()
    with caplog.at_level(logging.INFO):
        events.take({"name": "c", "role": "coordinator", "epoch": 1, "counts": {"elected": 1}, "carried": {}})
        events.take(
            {"name": "c", "role": "coordinator", "epoch": 1, "counts": {"elected": 1, "gaps": 2}, "carried": {}}
        )
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [
        ("INFO", "c: epoch 1 in force"), ("INFO", "c: elected, 1 more"), ("WARNING", "c: gaps, 2 more"),
    ]  # fmt: skip
    line = json.loads(JsonLines().format(caplog.records[-1]))
    assert (line["level"], line["node"], line["event"], line["more"]) == ("warning", "c", "gaps", 2)


def test_an_unknown_log_format_is_refused() -> None:
    with pytest.raises(InputError, match="text, json"):
        set_up_logs(logging.INFO, "xml")
