"""Traces from publish to delivery: off by default, the same numbers in every process, no word in any frame."""

from __future__ import annotations

import builtins
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

import narrowcast as nc
from narrowcast.deliver.parts.effects import Deliver, Send
from narrowcast.deliver.processes import traces
from narrowcast.deliver.processes.traces import SHARE, Traces, numbers_of, share_asked, tracer_to, traces_of
from narrowcast.deliver.transport import Multicast
from narrowcast.deliver.wire import Frame
from narrowcast.deliver.wire.place import place
from narrowcast.errors import InputError, TransportError

pytest.importorskip("opentelemetry.sdk", reason="needs the extra otel")


def test_nothing_is_traced_unless_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SHARE, raising=False)
    assert traces_of(1, "a", "edge") is None
    code = "import narrowcast.deliver.processes.drive, sys; print(any('opentelemetry' in m for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


@pytest.mark.parametrize("text", ["2", "-0.1", "some", "nan"])
def test_a_share_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="must be a share from 0 to 1"):
        share_asked(text)


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def absent(name: str, *arguments: Any, **more: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ImportError(name)
        return usual(name, *arguments, **more)

    traces._tracer.cache_clear()
    monkeypatch.setattr(builtins, "__import__", absent)
    monkeypatch.setenv(SHARE, "1")
    with pytest.raises(TransportError, match=r"narrowcast\[otel\]"):
        traces_of(1, "a", "edge")


def test_all_parts_agree_on_the_trace_of_an_entry_and_on_the_share() -> None:
    from opentelemetry.sdk.trace.export import SpanExportResult

    kept: list[Any] = []

    class Kept:
        def export(self, spans: Any) -> Any:
            kept.extend(spans)
            return SpanExportResult.SUCCESS

        def shutdown(self) -> None: ...

        def force_flush(self, timeout_millis: int = 0) -> bool:
            return True

    publisher, source, edge = (
        Traces(7, role, role, 0.25, tracer_to(Kept())) for role in ("publisher", "source", "edge")
    )
    for sequence in range(1, 401):
        publisher.published(0, sequence, 1_000)
        messages = ((place(sequence, 0), 0, b"a"), (place(sequence, 1), 0, b"b"))
        source.sent([Send(Multicast(3, 0), Frame(0, 5, 1, 0, messages[-1][0], messages))], 2_000)
        edge.delivered(Deliver("mine", 0, ((messages[0][0], b"a"),), messages[0][0]))
    for each in (publisher, source, edge):
        each._tracer.span_processor.force_flush()
    by_trace: dict[int, list[Any]] = {}
    for span in kept:
        by_trace.setdefault(span.context.trace_id, []).append(span)
    assert 60 < len(by_trace) < 140  # a quarter of 400
    for trace, spans in by_trace.items():
        assert sorted(span.name for span in spans) == ["narrowcast deliver", "narrowcast publish", "narrowcast send"]
        first = next(span for span in spans if span.name == "narrowcast publish")
        assert (trace, first.context.span_id) == numbers_of(7, 0, first.attributes["narrowcast.sequence"])
        assert all(span.parent.span_id == first.context.span_id for span in spans if span is not first)
    assert numbers_of(8, 0, 1) != numbers_of(7, 0, 1), "another system has other traces"


@pytest.fixture
def collector() -> Iterator[tuple[str, list[Any]]]:
    """What an OTLP collector would get."""
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    got: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            import gzip

            body = self.rfile.read(int(self.headers["Content-Length"]))
            body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                got.extend(span for scope in resource.scope_spans for span in scope.spans)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *arguments: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", got
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.engines
@pytest.mark.slow
def test_a_message_is_traced_from_publish_to_delivery(
    collector: tuple[str, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    url, got = collector
    monkeypatch.setenv(SHARE, "1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
    traces._tracer.cache_clear()
    interest = nc.Interest.from_pairs([0], [0], [5.0], flow_names=["IBM"], user_names=["desk"])
    plan = nc.channels.plan(nc.Demand(interest, key=("symbol",)), groups=1, sessions=1, method="gf")
    with nc.up(plan, tmp_path / "data", domain=131) as system, system.connect() as connection:
        subscription = connection.subscribe("symbol = 'IBM'", name="desk")
        connection.publish([{"symbol": "IBM", "price": 3}])
        assert [row["price"] for row in next(iter(subscription))] == [3]
        wanted = {"narrowcast publish", "narrowcast send", "narrowcast deliver"}
        limit = time.monotonic() + 20

        def whole() -> list[bytes]:
            names: dict[bytes, set[str]] = {}
            for span in list(got):
                names.setdefault(span.trace_id, set()).add(span.name)
            return [trace for trace, found in names.items() if found >= wanted]

        while not whole():
            assert time.monotonic() < limit, [span.name for span in got]
            connection.publish([{"symbol": "IBM", "price": 3}])  # the first may come from the log
            time.sleep(0.3)
    spans = sorted((span for span in got if span.trace_id == whole()[0]), key=lambda span: span.start_time_unix_nano)
    assert spans[0].name == "narrowcast publish"
    assert all(span.parent_span_id == spans[0].span_id for span in spans[1:])
